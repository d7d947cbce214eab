/// A member of an object that is its own canonical form but for its number, if it has one: no white
/// space inside, no escapes, and a value that is a string, a word or a number.
public struct PlainMember {
    /// Where its key ends, the quote included.
    public let keyEnd: Int
    /// Where its value ends.
    public let end: Int
    /// Up to where it is canonical: its end, or where a number begins that has to be rewritten.
    public let copiedEnd: Int

    init(keyEnd: Int, end: Int, copiedEnd: Int) {
        self.keyEnd = keyEnd
        self.end = end
        self.copiedEnd = copiedEnd
    }

    /// The member at `start`; nil if it has to be rewritten, or may have to be.
    public init?(_ bytes: RawSpan, at start: Int) {
        var scanner = JSONScanner(start..<bytes.byteCount, of: bytes)
        guard let member = scanner.plainMember(bytes) else { return nil }
        self = member
    }

    /// The first eight bytes of a key, the first in the highest bits; 0 after its end.
    @inlinable @inline(__always)
    public static func prefix(_ text: RawSpan, _ start: Int, _ end: Int) -> UInt64 {
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
public struct PlainMembers: ~Copyable {
    /// A member, up to where it is copied.
    public struct Entry: BitwiseCopyable, Sendable {
        /// The first bytes of the key, by which the members are in order.
        @usableFromInline var prefix: UInt64 = 0
        @usableFromInline var start: UInt32 = 0
        @usableFromInline var end: UInt32 = 0
        /// Whether a number is still to be written, which begins where this ends.
        public var endsWithNumber = false

        /// The bytes to copy.
        @inlinable @inline(__always)
        public var range: Range<Int> { Int(start)..<Int(end) }
    }

    private static let countMax = 16

    @usableFromInline var entries = FixedTable<Entry>(repeating: Entry(), count: countMax)
    /// How many members there are.
    public private(set) var count = 0
    /// Where the object is that was read last; empty when it turned out to be no such object.
    public private(set) var object = 0..<0

    /// No members.
    public init() {}

    /// The members in order, from 0.
    @inlinable
    public subscript(index: Int) -> Entry {
        @inline(__always) get { entries[index] }
    }

    /// Reads the object at `start`.
    ///
    /// - Returns: Where it ends; nil if a member is not plain, or two keys begin with the same bytes.
    public mutating func read(_ bytes: RawSpan, at start: Int) -> Int? {
        var scanner = JSONScanner(start..<bytes.byteCount, of: bytes)
        return scanner.plainObject(bytes, into: &self) ? scanner.index : nil
    }

    /// Forgets what was read.
    @inline(__always)
    mutating func begin() {
        count = 0
        object = 0..<0
    }

    @inline(__always)
    fileprivate mutating func finish(_ range: Range<Int>) { object = range }

    /// Puts a member in its place; false if there are too many, or one that begins with the same bytes.
    @inline(__always)
    fileprivate mutating func insert(
        _ bytes: RawSpan, _ start: Int, _ member: PlainMember
    ) -> Bool {
        guard count < Self.countMax else { return false }
        let entry = Entry(
            prefix: PlainMember.prefix(bytes, start, member.keyEnd),
            start: UInt32(truncatingIfNeeded: start),
            end: UInt32(truncatingIfNeeded: member.copiedEnd),
            endsWithNumber: member.copiedEnd < member.end)
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
}

extension JSONScanner {
    /// Passes over the member at `index`; nil if it is not plain, or not valid, and it stopped somewhere.
    @inline(__always)
    fileprivate mutating func plainMember(_ bytes: RawSpan) -> PlainMember? {
        guard peek(bytes) == Ascii.quote else { return nil }
        index &+= 1
        guard string(bytes), !hasEscape, peek(bytes) == Ascii.colon else { return nil }
        let keyEnd = index
        index &+= 1
        let value = index
        let byte = peek(bytes)
        if byte == Ascii.quote {
            index &+= 1
            guard string(bytes), !hasEscape else { return nil }
        } else {
            guard scalar(byte, bytes) else { return nil }
            // Of numbers only an integer is sure to be canonical, if its last digit is not a zero.
            if byte == 0x2D || Ascii.isDigit(byte),
                !isInteger || bytes.byte(at: index &- 1) == 0x30
            {
                return PlainMember(keyEnd: keyEnd, end: index, copiedEnd: value)
            }
        }
        return PlainMember(keyEnd: keyEnd, end: index, copiedEnd: index)
    }

    /// Passes over the object at `index` if it is one of plain members; else it stays where it is.
    mutating func plainObject(_ bytes: RawSpan, into members: inout PlainMembers) -> Bool {
        let start = index
        members.begin()
        index &+= 1
        skipSpace(bytes)
        var isAtEnd = peek(bytes) == Ascii.rightBrace
        while !isAtEnd {
            skipSpace(bytes)
            let first = index
            guard let member = plainMember(bytes), members.insert(bytes, first, member) else {
                return stay(at: start)
            }
            skipSpace(bytes)
            isAtEnd = peek(bytes) == Ascii.rightBrace
            if !isAtEnd {
                guard peek(bytes) == Ascii.comma else { return stay(at: start) }
                index &+= 1
            }
        }
        index &+= 1
        members.finish(start..<index)
        return true
    }

    private mutating func stay(at start: Int) -> Bool {
        index = start
        failure = nil
        return false
    }
}
