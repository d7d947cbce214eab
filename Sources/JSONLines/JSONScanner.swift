/// What PostgreSQL's jsonb can hold and a line may ask for; JSON itself knows no limits.
package enum JSONLimits {
    /// Containers in each other, the outermost counted.
    package static let depthMax = 64
    /// Digits of a number, without those of its exponent.
    package static let digitsMax = 1000
    /// Absolute value of an exponent: `1e131071` is legal in jsonb and prints as 131 KB.
    package static let exponentMax = 308
}

/// Why a text is refused.
package enum JSONFailure: Error, Equatable, Sendable {
    /// Not the grammar of RFC 8259 at this byte of the text.
    case syntax(offset: Int)
    /// The bytes of a string are not UTF-8 here (overlong forms and surrogates are not).
    case invalidUTF8(offset: Int)
    /// More than ``JSONLimits/depthMax`` containers in each other.
    case tooDeep
    /// A number over ``JSONLimits/digitsMax`` or ``JSONLimits/exponentMax``.
    case numberTooLarge
}

/// The kind of a JSON value.
public enum JSONKind: UInt8, Sendable, BitwiseCopyable {
    case string, number, object, array, `true`, `false`, null
}

/// Validates JSON values in one pass and without a stack; the bytes are passed to each call.
///
/// After a call answered false, `failure` is set and the scanner is of no further use. What JSON allows
/// and jsonb refuses (``hasRefusedText``, ``isNumberTooLarge``) is noted and scanning goes on.
struct JSONScanner {
    /// The next byte to be read.
    var index: Int
    let end: Int
    /// Whether the last string had an escape.
    var hasEscape = false
    /// Whether a string since this was last cleared had `\u0000` or a lone surrogate.
    var hasRefusedText = false
    /// Whether a number was over a limit.
    var isNumberTooLarge = false
    /// Whether the last number had neither fraction nor exponent.
    var isInteger = false
    var failure: JSONFailure?

    /// - Parameter bytes: The same at each call, or others that are no shorter.
    @inline(__always)
    init(_ range: Range<Int>, of bytes: RawSpan) {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.byteCount)
        index = range.lowerBound
        end = range.upperBound
    }

    @inline(never)
    mutating func fail(at offset: Int) -> Bool {
        index = offset
        failure = .syntax(offset: offset)
        return false
    }

    @inline(__always)
    mutating func skipSpace(_ bytes: RawSpan) {
        while true {
            let byte = peek(bytes)
            // One comparison for what is there almost always; 0 at the end is no space.
            if byte > 0x20 || !Ascii.isSpace(byte) { return }
            index &+= 1
        }
    }

    /// The byte at `index`, or 0, which is nowhere legal, at the end.
    @inline(__always)
    func peek(_ bytes: RawSpan) -> UInt8 {
        // SAFETY: `index` is never negative, and `end` is within the span by `init`.
        index < end ? unsafe bytes.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self) : 0
    }

    /// Passes over white space and one `byte`.
    @inline(__always)
    mutating func expect(_ byte: UInt8, _ bytes: RawSpan) -> Bool {
        skipSpace(bytes)
        guard peek(bytes) == byte else { return fail(at: index) }
        index &+= 1
        return true
    }

    /// Passes over one value of any kind, `depth` containers deep already.
    mutating func value(_ bytes: RawSpan, depth base: Int) -> Bool {
        var isObject: UInt64 = 0  // One bit a container, the innermost lowest.
        var depth = base
        var isKeyNext = false
        while true {
            if isKeyNext {
                guard expect(Ascii.quote, bytes), string(bytes), expect(Ascii.colon, bytes) else {
                    return false
                }
            }
            skipSpace(bytes)
            let byte = peek(bytes)
            switch byte {
            case Ascii.quote:
                index &+= 1
                guard string(bytes) else { return false }
            case Ascii.leftBrace, Ascii.leftBracket:
                guard depth < JSONLimits.depthMax else {
                    failure = .tooDeep
                    return false
                }
                index &+= 1
                skipSpace(bytes)
                // The closing byte of each is two above its opening one.
                if peek(bytes) == byte &+ 2 {
                    index &+= 1
                } else {
                    isKeyNext = byte == Ascii.leftBrace
                    isObject = isObject &<< 1 | (isKeyNext ? 1 : 0)
                    depth &+= 1
                    continue
                }
            default:
                guard scalar(byte, bytes) else { return false }
            }
            while true {
                if depth == base { return true }
                skipSpace(bytes)
                let next = peek(bytes)
                if next == Ascii.comma {
                    index &+= 1
                    isKeyNext = isObject & 1 == 1
                    break
                }
                let close = isObject & 1 == 1 ? Ascii.rightBrace : Ascii.rightBracket
                guard next == close else { return fail(at: index) }
                index &+= 1
                isObject &>>= 1
                depth &-= 1
            }
        }
    }

    /// Passes over a number or a word that begins with `byte`.
    @inline(__always)
    mutating func scalar(_ byte: UInt8, _ bytes: RawSpan) -> Bool {
        switch byte {
        case 0x2D, 0x30...0x39: number(bytes)
        case 0x74: word("true", bytes)
        case 0x66: word("false", bytes)
        case 0x6E: word("null", bytes)
        default: fail(at: index)
        }
    }

    @inline(__always)
    private mutating func word(_ text: StaticString, _ bytes: RawSpan) -> Bool {
        guard end &- index >= text.utf8CodeUnitCount, bytes.matches(text, at: index) else {
            return fail(at: index)
        }
        index &+= text.utf8CodeUnitCount
        return true
    }

    private mutating func number(_ bytes: RawSpan) -> Bool {
        if peek(bytes) == 0x2D { index &+= 1 }
        let first = index
        guard Ascii.isDigit(peek(bytes)) else { return fail(at: index) }
        if peek(bytes) == 0x30 { index &+= 1 } else { skipDigits(bytes) }
        var digits = index &- first
        isInteger = true
        if peek(bytes) == 0x2E {
            index &+= 1
            let start = index
            skipDigits(bytes)
            guard index > start else { return fail(at: index) }
            digits &+= index &- start
            isInteger = false
        }
        if peek(bytes) | 0x20 == 0x65 {
            index &+= 1
            if peek(bytes) == 0x2B || peek(bytes) == 0x2D { index &+= 1 }
            let start = index
            var exponent = 0
            while Ascii.isDigit(peek(bytes)) {
                exponent = min(exponent &* 10 &+ Int(peek(bytes) &- 0x30), 100_000)
                index &+= 1
            }
            guard index > start else { return fail(at: index) }
            if exponent > JSONLimits.exponentMax { isNumberTooLarge = true }
            isInteger = false
        }
        if digits > JSONLimits.digitsMax { isNumberTooLarge = true }
        return true
    }

    @inline(__always)
    private mutating func skipDigits(_ bytes: RawSpan) {
        while Ascii.isDigit(peek(bytes)) { index &+= 1 }
    }
}
