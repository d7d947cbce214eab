/// Reads and repairs the text of JSON strings that a scan found valid.
package enum JSONText {
    /// U+FFFD, which takes the place of what PostgreSQL cannot hold.
    private static let replacement: UInt32 = 0xFFFD

    /// The four hexadecimal digits at `index`, or nil.
    static func codeUnit(in bytes: RawSpan, at index: Int, end: Int) -> UInt32? {
        guard end &- index >= 4 else { return nil }
        var unit: UInt32 = 0
        for offset in 0..<4 {
            guard let digit = Ascii.hexValue(bytes.byte(at: index &+ offset)) else { return nil }
            unit = unit &<< 4 | digit
        }
        return unit
    }

    /// The unit of a whole `\uXXXX` at `index`, or nil.
    static func escapedUnit(in bytes: RawSpan, at index: Int, end: Int) -> UInt32? {
        guard end &- index >= 6, bytes.byte(at: index) == Ascii.backslash,
            bytes.byte(at: index &+ 1) == 0x75
        else { return nil }
        return codeUnit(in: bytes, at: index &+ 2, end: end)
    }

    /// Appends the text that the inside of a string stands for, as UTF-8.
    ///
    /// `\u0000` and lone surrogates become U+FFFD.
    ///
    /// - Parameters:
    ///   - bytes: The text that was scanned.
    ///   - range: What is between the quotes.
    ///   - output: Receives at most as many bytes as `range` has.
    package static func unescape(
        _ bytes: RawSpan, _ range: Range<Int>, into output: inout ByteBuffer
    ) {
        var index = range.lowerBound
        let end = range.upperBound
        while index < end {
            let plain = index
            while index < end, bytes.byte(at: index) != Ascii.backslash { index &+= 1 }
            output.append(bytes, plain..<index)
            guard index < end else { return }
            let escape = nextEscape(in: bytes, at: index, end: end)
            index &+= escape.count
            append(escape.isRefused ? replacement : escape.scalar, to: &output)
        }
    }

    /// Appends JSON text with the escapes that jsonb refuses written as `\ufffd`.
    ///
    /// The text keeps its length: each of them has six bytes.
    package static func sanitize(
        _ bytes: RawSpan, _ range: Range<Int>, into output: inout ByteBuffer
    ) {
        var index = range.lowerBound
        let end = range.upperBound
        var plain = index
        while index < end {
            guard bytes.byte(at: index) == Ascii.backslash else {
                index &+= 1
                continue
            }
            let escape = nextEscape(in: bytes, at: index, end: end)
            if escape.isRefused {
                output.append(bytes, plain..<index)
                output.append("\\ufffd" as StaticString)
                plain = index &+ escape.count
            }
            index &+= escape.count
        }
        output.append(bytes, plain..<end)
    }

    private struct Escape {
        var scalar: UInt32
        var count: Int
        var isRefused = false
    }

    /// The escape at a backslash; a pair of surrogates is one.
    private static func nextEscape(in bytes: RawSpan, at index: Int, end: Int) -> Escape {
        guard end &- index >= 2 else { return Escape(scalar: replacement, count: end &- index) }
        switch bytes.byte(at: index &+ 1) {
        case 0x62: return Escape(scalar: 0x08, count: 2)
        case 0x66: return Escape(scalar: 0x0C, count: 2)
        case 0x6E: return Escape(scalar: 0x0A, count: 2)
        case 0x72: return Escape(scalar: 0x0D, count: 2)
        case 0x74: return Escape(scalar: 0x09, count: 2)
        case 0x75:
            guard let unit = codeUnit(in: bytes, at: index &+ 2, end: end) else {
                return Escape(scalar: replacement, count: 2)
            }
            if unit & 0xFC00 == 0xD800, let low = escapedUnit(in: bytes, at: index &+ 6, end: end),
                low & 0xFC00 == 0xDC00
            {
                let offset = (unit & 0x3FF) &<< 10 | low & 0x3FF
                return Escape(scalar: 0x10000 &+ offset, count: 12)
            }
            return Escape(scalar: unit, count: 6, isRefused: unit == 0 || unit & 0xF800 == 0xD800)
        case let other: return Escape(scalar: UInt32(other), count: 2)
        }
    }

    /// Appends one scalar, which is no surrogate, as UTF-8.
    private static func append(_ scalar: UInt32, to output: inout ByteBuffer) {
        func byte(_ value: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: value) }
        func tail(_ shift: UInt32) -> UInt8 { byte(0x80 | scalar &>> shift & 0x3F) }
        if scalar < 0x80 {
            output.append(byte(scalar))
        } else if scalar < 0x800 {
            output.append(byte(0xC0 | scalar &>> 6))
            output.append(tail(0))
        } else if scalar < 0x10000 {
            output.append(byte(0xE0 | scalar &>> 12))
            output.append(tail(6))
            output.append(tail(0))
        } else {
            output.append(byte(0xF0 | scalar &>> 18))
            output.append(tail(12))
            output.append(tail(6))
            output.append(tail(0))
        }
    }
}

extension JSONText {
    /// Where the string whose opening quote is at `index` ends, its closing quote included.
    package static func endOfString(
        in bytes: RawSpan, at index: Int
    ) -> (end: Int, hasEscape: Bool) {
        var scanner = JSONScanner(index + 1..<bytes.byteCount, of: bytes)
        let isString = scanner.string(bytes)
        precondition(isString, "no JSON string at byte \(index)")
        return (scanner.index, scanner.hasEscape)
    }

    /// Writes the text from `start` on as the inside of a JSON string, with as few escapes as can be.
    package static func escape(from start: Int, in output: inout ByteBuffer) {
        func isPlain(_ byte: UInt8) -> Bool {
            byte >= 0x20 && byte != Ascii.quote && byte != Ascii.backslash
        }
        var extra = 0
        for index in start..<output.count where !isPlain(output[index]) {
            extra += output[index] < 0x20 ? 5 : 1
        }
        guard extra > 0 else { return }
        // From the back, so that nothing is overwritten before it is read.
        var from = output.count
        for _ in 0..<extra { output.append(0) }
        var to = output.count
        while from > start {
            from -= 1
            let byte = output[from]
            if isPlain(byte) {
                to -= 1
                output[to] = byte
            } else if byte >= 0x20 {
                to -= 2
                output[to] = Ascii.backslash
                output[to + 1] = byte
            } else {
                to -= 6
                let digit = byte & 0x0F
                output[to] = Ascii.backslash
                output[to + 1] = 0x75
                output[to + 2] = 0x30
                output[to + 3] = 0x30
                output[to + 4] = 0x30 + byte >> 4
                output[to + 5] = digit < 10 ? 0x30 + digit : 0x57 + digit
            }
        }
    }
}
