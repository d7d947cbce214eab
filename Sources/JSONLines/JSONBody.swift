/// Splits an `application/json` body, an array of events or one event, into its elements.
package enum JSONBody {
    /// Why a body as a whole is not read.
    package enum Failure: Error, Equatable, Sendable {
        /// It is JSON, but neither an array nor an object.
        case neitherArrayNorObject
        /// It is not JSON; never a limit, which concerns its element alone.
        case invalid(JSONFailure)
    }

    /// Lists the elements of the body.
    ///
    /// Every element is validated but for the limits: one that is too deep is listed, so that its own
    /// scan refuses it and its neighbours live.
    ///
    /// - Parameters:
    ///   - bytes: The whole body; a byte order mark is passed over.
    ///   - elements: Loses what it had. The element at `i` is element number `i + 1`.
    /// - Throws: ``Failure``; `elements` then holds a prefix.
    package static func split(
        _ bytes: RawSpan, into elements: inout [Range<Int>]
    ) throws(Failure) {
        try split(bytes, whole(bytes), into: &elements)
    }

    /// The bytes of a body but for a byte order mark.
    package static func whole(_ bytes: RawSpan) -> Range<Int> {
        let hasMark = bytes.byteCount >= 3 && bytes.matches("\u{FEFF}", at: 0)
        return (hasMark ? 3 : 0)..<bytes.byteCount
    }

    /// Lists the elements of the array in the bytes `range`, or the object there as the only one.
    ///
    /// As ``split(_:into:)``, whose offsets it has.
    package static func split(
        _ bytes: RawSpan, _ range: Range<Int>, into elements: inout [Range<Int>]
    ) throws(Failure) {
        elements.removeAll(keepingCapacity: true)
        var scanner = JSONScanner(range, of: bytes)
        scanner.skipSpace(bytes)
        let first = scanner.peek(bytes)
        guard first == Ascii.leftBracket else {
            try element(bytes, &scanner, into: &elements)
            guard scanner.isAtEnd(bytes) else { throw failure(scanner) }
            guard first == Ascii.leftBrace else { throw .neitherArrayNorObject }
            return
        }
        scanner.index += 1
        scanner.skipSpace(bytes)
        if scanner.peek(bytes) == Ascii.rightBracket {
            scanner.index += 1
        } else {
            while true {
                try element(bytes, &scanner, into: &elements)
                scanner.skipSpace(bytes)
                if scanner.peek(bytes) != Ascii.comma { break }
                scanner.index += 1
            }
            guard scanner.expect(Ascii.rightBracket, bytes) else { throw failure(scanner) }
        }
        guard scanner.isAtEnd(bytes) else { throw failure(scanner) }
    }

    /// A member of an object whose value is valid but for the limits.
    package struct Member: Sendable {
        /// What is between the quotes of the key.
        package let key: Range<Int>
        /// Whether the key has an escape.
        package let isKeyEscaped: Bool
        /// The whole value.
        package let value: Range<Int>
    }

    /// Lists the members of the object in the bytes `range`, in order, equal keys too.
    ///
    /// Values are validated as ``split(_:into:)`` does it: one beyond the limits is listed.
    ///
    /// - Throws: ``Failure``, also for what is JSON and no object.
    package static func members(
        _ bytes: RawSpan, _ range: Range<Int>
    ) throws(Failure) -> [Member] {
        var members: [Member] = []
        var scanner = JSONScanner(range, of: bytes)
        scanner.skipSpace(bytes)
        guard scanner.peek(bytes) == Ascii.leftBrace else { throw .neitherArrayNorObject }
        scanner.index += 1
        scanner.skipSpace(bytes)
        if scanner.peek(bytes) == Ascii.rightBrace {
            scanner.index += 1
        } else {
            while true {
                guard scanner.expect(Ascii.quote, bytes) else { throw failure(scanner) }
                let start = scanner.index
                guard scanner.string(bytes) else { throw failure(scanner) }
                let key = start..<scanner.index - 1
                let isEscaped = scanner.hasEscape
                guard scanner.expect(Ascii.colon, bytes) else { throw failure(scanner) }
                let value = try value(bytes, &scanner)
                members.append(Member(key: key, isKeyEscaped: isEscaped, value: value))
                scanner.skipSpace(bytes)
                if scanner.peek(bytes) != Ascii.comma { break }
                scanner.index += 1
            }
            guard scanner.expect(Ascii.rightBrace, bytes) else { throw failure(scanner) }
        }
        guard scanner.isAtEnd(bytes) else { throw failure(scanner) }
        return members
    }

    private static func failure(_ scanner: JSONScanner) -> Failure {
        .invalid(scanner.failure ?? .syntax(offset: scanner.index))
    }

    private static func element(
        _ bytes: RawSpan, _ scanner: inout JSONScanner, into elements: inout [Range<Int>]
    ) throws(Failure) {
        elements.append(try value(bytes, &scanner))
    }

    private static func value(
        _ bytes: RawSpan, _ scanner: inout JSONScanner
    ) throws(Failure) -> Range<Int> {
        scanner.skipSpace(bytes)
        let start = scanner.index
        if !scanner.value(bytes, depth: 0) {
            guard scanner.failure == .tooDeep, scanner.skipUnchecked(bytes, from: start) else {
                throw failure(scanner)
            }
        }
        return start..<scanner.index
    }
}

extension JSONScanner {
    /// Passes over a container by counting brackets outside of strings, however deep it is.
    ///
    /// What is inside is not validated: the element is refused for its depth anyway.
    fileprivate mutating func skipUnchecked(_ bytes: RawSpan, from start: Int) -> Bool {
        failure = nil
        index = start
        var depth = 0
        while index < end {
            let byte = bytes.byte(at: index)
            index &+= 1
            switch byte {
            case Ascii.quote:
                guard string(bytes) else { return false }
            case Ascii.leftBrace, Ascii.leftBracket:
                depth &+= 1
            case Ascii.rightBrace, Ascii.rightBracket:
                depth &-= 1
                if depth == 0 { return true }
            default:
                break
            }
        }
        return fail(at: index)
    }
}
