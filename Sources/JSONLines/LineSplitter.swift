internal import Glibc

/// One line of a body: where its bytes are and which physical line it is.
package struct Line: Equatable, Sendable {
    /// The bytes of the line without its line end.
    package let range: Range<Int>
    /// The physical line, from 1; blank lines count.
    package let number: Int
}

/// Splits an NDJSON body into lines.
///
/// A line ends with LF or CRLF or with the body. Lines of nothing but white space are passed over, and
/// so is a byte order mark at the start.
package struct LineSplitter: Sendable {
    private var index = 0
    private var number = 0

    /// A splitter at the start of a body.
    package init() {}

    /// The next line that is not blank, or nil at the end.
    ///
    /// - Parameter bytes: The whole body, the same at each call.
    package mutating func next(in bytes: RawSpan) -> Line? {
        if index == 0, bytes.byteCount >= 3, bytes.matches("\u{FEFF}", at: 0) { index = 3 }
        while index < bytes.byteCount {
            let start = index
            let newline = newlineIndex(in: bytes, from: start)
            index = newline &+ 1
            number &+= 1
            var end = newline
            if end > start, bytes.byte(at: end &- 1) == Ascii.carriageReturn { end &-= 1 }
            var first = start
            while first < end, Ascii.isSpace(bytes.byte(at: first)) { first &+= 1 }
            if first < end { return Line(range: start..<end, number: number) }
        }
        return nil
    }
}

/// The index of the first LF at or after `start`, or the count.
private func newlineIndex(in bytes: RawSpan, from start: Int) -> Int {
    unsafe bytes.withUnsafeBytes { buffer in
        // SAFETY: `start` is less than the count, so base and length describe bytes of the span.
        guard let base = buffer.baseAddress,
            let found = unsafe memchr(base + start, Int32(Ascii.newline), buffer.count - start)
        else { return buffer.count }
        return unsafe UnsafeRawPointer(found) - base
    }
}

/// The bytes that JSON gives a meaning.
public enum Ascii {
    /// LF
    @inlinable public static var newline: UInt8 { 0x0A }
    /// CR
    @inlinable public static var carriageReturn: UInt8 { 0x0D }
    /// `"`
    @inlinable public static var quote: UInt8 { 0x22 }
    /// `,`
    @inlinable public static var comma: UInt8 { 0x2C }
    /// `:`
    @inlinable public static var colon: UInt8 { 0x3A }
    /// `[`
    @inlinable public static var leftBracket: UInt8 { 0x5B }
    /// `\`
    @inlinable public static var backslash: UInt8 { 0x5C }
    /// `]`
    @inlinable public static var rightBracket: UInt8 { 0x5D }
    /// `{`
    @inlinable public static var leftBrace: UInt8 { 0x7B }
    /// `}`
    @inlinable public static var rightBrace: UInt8 { 0x7D }

    /// Whether JSON takes the byte for white space.
    @inlinable @inline(__always)
    public static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    /// Whether the byte is one of 0 to 9.
    @inlinable @inline(__always)
    public static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 <= 9 }

    /// The value of a hexadecimal digit, or nil.
    @inlinable
    public static func hexValue(_ byte: UInt8) -> UInt32? {
        switch byte {
        case 0x30...0x39: UInt32(byte &- 0x30)
        case 0x41...0x46: UInt32(byte &- 0x37)
        case 0x61...0x66: UInt32(byte &- 0x57)
        default: nil
        }
    }
}
