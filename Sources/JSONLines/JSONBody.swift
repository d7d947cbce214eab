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
        elements.removeAll(keepingCapacity: true)
        let hasMark = bytes.byteCount >= 3 && bytes.matches("\u{FEFF}", at: 0)
        var scanner = JSONScanner(hasMark ? 3..<bytes.byteCount : 0..<bytes.byteCount, of: bytes)
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

    private static func failure(_ scanner: JSONScanner) -> Failure {
        .invalid(scanner.failure ?? .syntax(offset: scanner.index))
    }

    private static func element(
        _ bytes: RawSpan, _ scanner: inout JSONScanner, into elements: inout [Range<Int>]
    ) throws(Failure) {
        scanner.skipSpace(bytes)
        let start = scanner.index
        if !scanner.value(bytes, depth: 0) {
            guard scanner.failure == .tooDeep, scanner.skipUnchecked(bytes, from: start) else {
                throw failure(scanner)
            }
        }
        elements.append(start..<scanner.index)
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
