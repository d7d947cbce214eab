import JSONLines

/// The lines that a dialect makes of a body.
struct DialectLines {
    private(set) var bytes: [UInt8] = []
    /// Where the lines are.
    private(set) var ranges: [Range<Int>] = []
    /// Whether there were more than a body may have; those are not written.
    private(set) var isOver = false
    /// The vendor's id of the app, where the body has it.
    var vendorApp: String?
    /// What was said of the first line that was rejected here.
    private(set) var complaint: String?
    private let countMax: Int

    init(countMax: Int) { self.countMax = countMax }

    /// Adds an event; fields without a value are left out.
    mutating func add(_ fields: KeyValuePairs<StaticString, SourceJSON?>) {
        line { bytes in
            var separator = Ascii.leftBrace
            for case (let name, let value?) in fields {
                bytes.append(separator)
                separator = Ascii.comma
                bytes.append(Ascii.quote)
                bytes += name.description.utf8
                bytes.append(Ascii.quote)
                bytes.append(Ascii.colon)
                bytes += value.raw
            }
            if separator == Ascii.leftBrace { bytes.append(separator) }
            bytes.append(Ascii.rightBrace)
        }
    }

    /// Adds what is no event of the source, to be judged as it is; nothing where nothing was sent.
    mutating func add(raw value: SourceJSON) {
        if !value.isEmpty { line { $0 += value.raw } }
    }

    /// Adds a line that is rejected for a reason that only the source has.
    mutating func reject(_ complaint: String) {
        // A line without a type is what the decoder rejects.
        add([:])
        if self.complaint == nil { self.complaint = complaint }
    }

    private mutating func line(_ write: (inout [UInt8]) -> Void) {
        guard ranges.count < countMax else {
            isOver = true
            return
        }
        let start = bytes.count
        write(&bytes)
        ranges.append(start..<bytes.count)
    }
}
