internal import CScan
import JSONLines

/// A member of an object that is its own canonical form but for its number, if it has one: no white
/// space inside, no escapes, and a value that is a string, a word or a number.
struct PlainMember {
    /// Where its key ends, the quote included.
    let keyEnd: Int
    /// Where its value ends.
    let end: Int
    /// Up to where it is canonical: its end, or where a number begins that has to be rewritten.
    let copiedEnd: Int

    /// The member at `start` of a valid text; nil if it has to be rewritten, or may have to be.
    @inline(__always)
    init?(_ bytes: RawSpan, at start: Int) {
        guard let keyEnd = Self.endOfString(bytes, start), bytes.byte(at: keyEnd) == Ascii.colon
        else { return nil }
        let value = keyEnd &+ 1
        let first = bytes.byte(at: value)
        switch first {
        case Ascii.quote:
            guard let end = Self.endOfString(bytes, value) else { return nil }
            self.end = end
            copiedEnd = end
        case 0x2D, 0x30...0x39:
            let number = Self.endOfNumber(bytes, value)
            end = number.end
            copiedEnd = number.isCanonical ? number.end : value
        case 0x74, 0x6E:
            end = value &+ 4
            copiedEnd = end
        case 0x66:
            end = value &+ 5
            copiedEnd = end
        default: return nil
        }
        self.keyEnd = keyEnd
    }

    /// Where the string ends whose opening quote is at `start`; nil if it has an escape.
    @inline(__always)
    private static func endOfString(_ bytes: RawSpan, _ start: Int) -> Int? {
        var index = start &+ 1
        while bytes.byteCount &- index >= 16 {
            // SAFETY: the 16 bytes are within the span by the condition of the loop.
            let found = unsafe bytes.withUnsafeBytes {
                unsafe tapline_quote_mask($0.baseAddress! + index)
            }
            guard found == 0 else {
                index &+= found.trailingZeroBitCount
                return bytes.byte(at: index) == Ascii.quote ? index &+ 1 : nil
            }
            index &+= 16
        }
        while true {
            let byte = bytes.byte(at: index)
            if byte == Ascii.quote { return index &+ 1 }
            if byte == Ascii.backslash { return nil }
            index &+= 1
        }
    }

    /// Where the number at `start` ends; it is sure to be canonical if it is an integer whose last digit
    /// is not a zero.
    @inline(__always)
    private static func endOfNumber(
        _ bytes: RawSpan, _ start: Int
    ) -> (end: Int, isCanonical: Bool) {
        var index = start &+ 1
        while Ascii.isDigit(bytes.byte(at: index)) { index &+= 1 }
        let isCanonical = bytes.byte(at: index &- 1) != 0x30
        let integerEnd = index
        while isNumberByte(bytes.byte(at: index)) { index &+= 1 }
        return (index, isCanonical && index == integerEnd)
    }

    /// Whether a number may have the byte behind its first digits: `.`, `e`, `E`, `+`, `-` or a digit.
    @inline(__always)
    private static func isNumberByte(_ byte: UInt8) -> Bool {
        byte == 0x2E || byte | 0x20 == 0x65 || byte == 0x2B || byte == 0x2D || Ascii.isDigit(byte)
    }

    /// The first eight bytes of a key, the first in the highest bits; 0 after its end.
    @inline(__always)
    static func prefix(_ text: RawSpan, _ start: Int, _ end: Int) -> UInt64 {
        if text.byteCount - start >= 8 {
            let word = text.word(at: start).byteSwapped
            return end - start >= 8 ? word : word & ~(UInt64.max &>> UInt64(8 * (end - start)))
        }
        var word: UInt64 = 0
        for index in start..<end {
            word |= UInt64(text.byte(at: index)) &<< UInt64(56 - 8 * (index - start))
        }
        return word
    }
}

/// The members of an object that has few and only plain ones, in canonical order.
struct PlainMembers: ~Copyable {
    // Not private: Swift 6.3.1 then fails to build this without optimisation.
    struct Entry: BitwiseCopyable {
        /// The first bytes of the key, by which the members are in order.
        var prefix: UInt64 = 0
        var start: UInt32 = 0
        /// Up to where it is copied.
        var end: UInt32 = 0
        var endsWithNumber = false
    }

    private static let countMax = 16

    private var entries = FixedTable<Entry>(repeating: Entry(), count: countMax)
    private var count = 0

    /// Reads the object at `start` of a valid text.
    ///
    /// - Returns: Where it ends; nil if a member is not plain, or two keys begin with the same bytes.
    mutating func read(_ bytes: RawSpan, at start: Int) -> Int? {
        count = 0
        var index = start &+ 1
        while true {
            while Ascii.isSpace(bytes.byte(at: index)) { index &+= 1 }
            switch bytes.byte(at: index) {
            case Ascii.rightBrace: return index &+ 1
            case Ascii.comma: index &+= 1
            default:
                guard count < Self.countMax, let member = PlainMember(bytes, at: index),
                    insert(
                        Entry(
                            prefix: PlainMember.prefix(bytes, index, member.keyEnd),
                            start: UInt32(truncatingIfNeeded: index),
                            end: UInt32(truncatingIfNeeded: member.copiedEnd),
                            endsWithNumber: member.copiedEnd < member.end))
                else { return nil }
                index = member.end
            }
        }
    }

    /// Puts an entry in its place; false if there is one of the same prefix.
    @inline(__always)
    private mutating func insert(_ entry: Entry) -> Bool {
        var hole = count
        while hole > 0 {
            let other = entries[hole &- 1]
            if other.prefix < entry.prefix { break }
            if other.prefix == entry.prefix { return false }
            entries[hole] = other
            hole &-= 1
        }
        entries[hole] = entry
        count &+= 1
        return true
    }

    /// Appends the object that was read.
    @inline(__always)
    func write(_ bytes: RawSpan, to output: inout ByteBuffer) {
        output.append(Ascii.leftBrace)
        for index in 0..<count {
            if index > 0 { output.append(Ascii.comma) }
            let entry = entries[index]
            output.append(bytes, Int(entry.start)..<Int(entry.end))
            if entry.endsWithNumber {
                var index = Int(entry.end)
                CanonicalNumber.append(bytes, &index, to: &output)
            }
        }
        output.append(Ascii.rightBrace)
    }
}
