/// One member of an object: where its key and its value are, and what is special about them.
public struct JSONMember: Sendable, BitwiseCopyable {
    @usableFromInline let keyStart, keyEnd, valueStart, valueEnd: UInt32
    /// The kind of the value.
    public let kind: JSONKind
    @usableFromInline let flags: Flags
    @usableFromInline let number: UInt8

    /// One bit a property; no OptionSet, whose calls are not inlined in other modules.
    @usableFromInline
    struct Flags: Sendable, BitwiseCopyable {
        @usableFromInline var bits: UInt8 = 0
    }

    @inline(__always)
    init(key: Range<Int>, value: Range<Int>, kind: JSONKind, flags: Flags, number: Int) {
        keyStart = UInt32(truncatingIfNeeded: key.lowerBound)
        keyEnd = UInt32(truncatingIfNeeded: key.upperBound)
        valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
        valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
        self.kind = kind
        self.flags = flags
        self.number = UInt8(truncatingIfNeeded: number)
    }

    /// The number of the key where it was the expected one, else ``ExpectedKeys/other``.
    @inlinable @inline(__always)
    public var keyNumber: Int { Int(number) }

    /// What is between the quotes of the key.
    @inlinable @inline(__always)
    public var key: Range<Int> { Int(keyStart)..<Int(keyEnd) }

    /// The whole value, a string with its quotes.
    @inlinable @inline(__always)
    public var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }

    /// What is between the quotes of a value that is a string.
    @inlinable @inline(__always)
    public var text: Range<Int> { Int(valueStart) &+ 1..<Int(valueEnd) &- 1 }

    /// Whether the value is a string.
    @inlinable @inline(__always)
    public var isString: Bool { if case .string = kind { true } else { false } }

    /// Whether the value is a number.
    @inlinable @inline(__always)
    public var isNumber: Bool { if case .number = kind { true } else { false } }

    /// Whether the value is an object.
    @inlinable @inline(__always)
    public var isObject: Bool { if case .object = kind { true } else { false } }

    /// Whether the value is null.
    @inlinable @inline(__always)
    public var isNull: Bool { if case .null = kind { true } else { false } }

    /// Whether the key has an escape.
    @inlinable @inline(__always)
    public var isKeyEscaped: Bool { flags.bits & 1 != 0 }

    /// Whether the key has `\u0000` or a lone surrogate.
    @inlinable @inline(__always)
    public var isKeyRefused: Bool { flags.bits & 2 != 0 }

    /// Whether the value is a string with an escape.
    @inlinable @inline(__always)
    public var isValueEscaped: Bool { flags.bits & 4 != 0 }

    /// Whether the value has, at any depth, `\u0000` or a lone surrogate.
    @inlinable @inline(__always)
    public var isValueRefused: Bool { flags.bits & 8 != 0 }

    /// Whether the value is a number without fraction and exponent.
    @inlinable @inline(__always)
    public var isInteger: Bool { flags.bits & 16 != 0 }
}

/// Scans a text that should be one object.
package enum JSONObject {
    /// Why a text is not an object that can be taken.
    package enum Failure: Error, Equatable, Sendable {
        /// It is a JSON value, but not an object.
        case notAnObject
        /// It is not a JSON text, or one beyond the limits.
        case invalid(JSONFailure)
    }

    /// Validates the bytes `range` and lists the members of the object, in order, equal keys too.
    ///
    /// - Parameters:
    ///   - bytes: At most 4 GiB.
    ///   - members: Loses what it had and keeps its capacity; holds a prefix after a failure.
    /// - Returns: nil when all is well.
    package static func scan(
        _ bytes: RawSpan, _ range: Range<Int>, into members: inout GrowingTable<JSONMember>
    ) -> Failure? {
        scan(bytes, range, ExpectedKeys.none, into: &members) { scanner, _ in
            scanner.value(bytes, depth: 1)
        }
    }

    /// The same, where some keys are expected: what comes out is no other, only sooner.
    ///
    /// - Parameter plain: Receives the members of the last object that is a member and has only plain ones.
    package static func scan(
        _ bytes: RawSpan, _ range: Range<Int>, expecting keys: borrowing ExpectedKeys,
        into members: inout GrowingTable<JSONMember>, plain: inout PlainMembers
    ) -> Failure? {
        plain.begin()
        return scan(bytes, range, keys, into: &members) { scanner, first in
            first == Ascii.leftBrace && scanner.plainObject(bytes, into: &plain)
                || scanner.value(bytes, depth: 1)
        }
    }

    @inline(__always)
    private static func scan(
        _ bytes: RawSpan, _ range: Range<Int>, _ keys: borrowing ExpectedKeys,
        into members: inout GrowingTable<JSONMember>,
        container: (inout JSONScanner, _ first: UInt8) -> Bool
    ) -> Failure? {
        precondition(bytes.byteCount <= Int(UInt32.max) && range.upperBound <= bytes.byteCount)
        members.removeAll()
        var scanner = JSONScanner(range, of: bytes)
        scanner.skipSpace(bytes)
        guard scanner.peek(bytes) == Ascii.leftBrace else {
            guard scanner.value(bytes, depth: 0), scanner.isAtEnd(bytes) else {
                return .invalid(scanner.failure ?? .syntax(offset: scanner.index))
            }
            return .notAnObject
        }
        guard scanner.object(bytes, keys, into: &members, container: container),
            scanner.isAtEnd(bytes)
        else {
            return .invalid(scanner.failure ?? .syntax(offset: scanner.index))
        }
        return scanner.isNumberTooLarge ? .invalid(.numberTooLarge) : nil
    }
}

extension JSONScanner {
    /// Whether nothing but white space is left.
    mutating func isAtEnd(_ bytes: RawSpan) -> Bool {
        skipSpace(bytes)
        return index == end || fail(at: index)
    }

    /// Passes over the object at `index`, the outermost one, and appends its members.
    @inline(__always)
    fileprivate mutating func object(
        _ bytes: RawSpan, _ keys: borrowing ExpectedKeys,
        into members: inout GrowingTable<JSONMember>,
        container: (inout JSONScanner, _ first: UInt8) -> Bool
    ) -> Bool {
        index &+= 1
        skipSpace(bytes)
        if peek(bytes) == Ascii.rightBrace {
            index &+= 1
            return true
        }
        var last = keys.start
        while true {
            hasRefusedText = false
            skipSpace(bytes)
            let key: Range<Int>
            var flags = JSONMember.Flags()
            if let (number, count) = keys.match(after: last, bytes, index, end) {
                last = number
                key = index &+ 1..<index &+ count &- 2
                index &+= count
            } else {
                last = keys.other
                guard expect(Ascii.quote, bytes) else { return false }
                let keyStart = index
                guard string(bytes) else { return false }
                key = keyStart..<index &- 1
                if hasEscape { flags.bits |= 1 }
                if hasRefusedText {
                    flags.bits |= 2
                    hasRefusedText = false
                }
                guard expect(Ascii.colon, bytes) else { return false }
            }
            skipSpace(bytes)
            let start = index
            let byte = peek(bytes)
            let kind: JSONKind
            switch byte {
            case Ascii.quote:
                kind = .string
                index &+= 1
                guard string(bytes) else { return false }
                if hasEscape { flags.bits |= 4 }
            case Ascii.leftBrace, Ascii.leftBracket:
                kind = byte == Ascii.leftBrace ? .object : .array
                guard container(&self, byte) else { return false }
            default:
                guard scalar(byte, bytes) else { return false }
                switch byte {
                case 0x74: kind = .true
                case 0x66: kind = .false
                case 0x6E: kind = .null
                default:
                    kind = .number
                    if isInteger { flags.bits |= 16 }
                }
            }
            if hasRefusedText { flags.bits |= 8 }
            members.append(
                JSONMember(
                    key: key, value: start..<index, kind: kind, flags: flags, number: last))
            skipSpace(bytes)
            let next = peek(bytes)
            index &+= 1
            if next == Ascii.comma { continue }
            return next == Ascii.rightBrace || fail(at: index &- 1)
        }
    }
}
