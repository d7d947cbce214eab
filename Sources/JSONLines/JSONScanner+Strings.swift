internal import CScan

extension JSONScanner {
    /// The bytes that end a run of plain text among the 16 at `index`, one bit each.
    @inline(__always)
    private static func specialMask(_ bytes: RawSpan, _ index: Int) -> UInt32 {
        precondition(index >= 0 && index <= bytes.byteCount &- 16)
        // SAFETY: the 16 bytes are within the span by the precondition.
        return unsafe bytes.withUnsafeBytes {
            unsafe tapline_special_mask($0.baseAddress! + index)
        }
    }

    /// Passes over a string whose opening quote is behind `index`, and over its closing quote.
    @inline(__always)
    mutating func string(_ bytes: RawSpan) -> Bool {
        hasEscape = false
        while true {
            if end &- index >= 16 {
                let match = Self.specialMask(bytes, index)
                index &+= match == 0 ? 16 : match.trailingZeroBitCount
                if match == 0 { continue }
            }
            let byte = peek(bytes)
            if byte == Ascii.quote {
                index &+= 1
                return true
            }
            if byte >= 0x20, byte < 0x80, byte != Ascii.backslash {
                index &+= 1  // One of the last 15 bytes of the text.
                continue
            }
            guard specialByte(byte, bytes) else { return false }
        }
    }

    /// Passes over an escape or one character that is not ASCII; kept out of the loop over plain text.
    @inline(never)
    private mutating func specialByte(_ byte: UInt8, _ bytes: RawSpan) -> Bool {
        if byte == Ascii.backslash {
            hasEscape = true
            return escape(bytes)
        }
        if byte < 0x20 { return fail(at: index) }
        while peek(bytes) >= 0x80 {
            let count = UTF8Sequence.count(in: bytes, at: index, end: end)
            guard count > 0 else {
                failure = .invalidUTF8(offset: index)
                return false
            }
            index &+= count
        }
        return true
    }

    private mutating func escape(_ bytes: RawSpan) -> Bool {
        index &+= 1
        switch peek(bytes) {
        case 0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74:
            index &+= 1
            return true
        case 0x75:
            guard let unit = JSONText.codeUnit(in: bytes, at: index &+ 1, end: end) else {
                return fail(at: index)
            }
            index &+= 5
            if unit == 0 || unit & 0xFC00 == 0xDC00 { hasRefusedText = true }
            if unit & 0xFC00 == 0xD800 {
                // The low half has to follow at once, as an escape of its own.
                if let low = JSONText.escapedUnit(in: bytes, at: index, end: end),
                    low & 0xFC00 == 0xDC00
                {
                    index &+= 6
                } else {
                    hasRefusedText = true
                }
            }
            return true
        default:
            return fail(at: index)
        }
    }
}

/// UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing above U+10FFFF.
enum UTF8Sequence {
    /// The length of the sequence of two to four bytes at `index`, or 0 if it is none.
    static func count(in bytes: RawSpan, at index: Int, end: Int) -> Int {
        let lead = bytes.byte(at: index)
        let count: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch lead {
        case 0xC2...0xDF: count = 2
        case 0xE0: (count, second) = (3, 0xA0...0xBF)
        case 0xED: (count, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: count = 3
        case 0xF0: (count, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: count = 4
        case 0xF4: (count, second) = (4, 0x80...0x8F)
        default: return 0
        }
        guard end &- index >= count, second.contains(bytes.byte(at: index &+ 1)) else { return 0 }
        for offset in 2..<max(count, 2) where bytes.byte(at: index &+ offset) & 0xC0 != 0x80 {
            return 0
        }
        return count
    }
}
