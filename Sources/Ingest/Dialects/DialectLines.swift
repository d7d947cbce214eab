import Event
import JSONLines
import Platform

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
            var members = Members()
            for (name, value) in fields { members.put(name, value, &bytes) }
            members.end(&bytes)
        }
    }

    /// Adds what a call says of a device. It has no id and is no event that is counted, so each time that
    /// it is sent is one, in the order in which they came.
    ///
    /// - Parameters:
    ///   - receivedAt: Microseconds since 1970 UTC.
    ///   - fields: The columns of an event.
    ///   - properties: What else, by the names that the device table has.
    ///   - rest: An object of what else, as the source has it; its push tokens are left out.
    mutating func add(
        _ change: DeviceChange, of device: SourceJSON?, receivedAt: Int64,
        _ fields: KeyValuePairs<StaticString, SourceJSON?>,
        _ properties: KeyValuePairs<StaticString, SourceJSON?> = [:], rest: SourceJSON? = nil
    ) {
        let id = "\(receivedAt)-\(Hex.encode(Random.bytes(8)))"
        line { bytes in
            var members = Members()
            members.put("type", .text(change.rawValue), &bytes)
            members.put("event_uid", .text(id), &bytes)
            members.put("device_id", device, &bytes)
            for (name, value) in fields { members.put(name, value, &bytes) }
            for (name, value) in properties { members.put(name, value, &bytes) }
            members.put("properties", rest?.object?.withoutTokens(), &bytes)
            members.end(&bytes)
        }
    }

    /// Writes members of an object, but for its last brace; one without a value is left out.
    private struct Members {
        private var separator = Ascii.leftBrace

        mutating func put(_ name: StaticString, _ value: SourceJSON?, _ bytes: inout [UInt8]) {
            guard let value else { return }
            bytes.append(separator)
            separator = Ascii.comma
            bytes.append(Ascii.quote)
            bytes += name.description.utf8
            bytes.append(Ascii.quote)
            bytes.append(Ascii.colon)
            bytes += value.raw
        }

        mutating func end(_ bytes: inout [UInt8]) {
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
