import JSONLines

/// A text in the shape of a UUID, in lower case; eight bytes at a time.
struct LoweredUUID {
    private let words: (UInt64, UInt64, UInt64, UInt64)
    private let last: UInt32

    /// Nil if `text`, of 36 bytes, has another shape or is in lower case already.
    @inline(__always)
    init?(folding text: RawSpan) {
        let words = (text.word(at: 0), text.word(at: 8), text.word(at: 16), text.word(at: 24))
        let end = text.word(at: 28)
        // Bytes from 0x40 to 0x5F, A to Z among them, have the bit 0x40 and not the bit 0x20.
        var upper = words.0 & ~(words.0 &<< 1) | words.1 & ~(words.1 &<< 1)
        upper |= words.2 & ~(words.2 &<< 1) | words.3 & ~(words.3 &<< 1) | end & ~(end &<< 1)
        if upper & 0x4040_4040_4040_4040 == 0 { return nil }
        // The hyphens are at 8, 13, 18 and 23.
        guard Self.isHex(words.0), Self.isHex(words.1, hyphens: 0x0000_FF00_0000_00FF),
            Self.isHex(words.2, hyphens: 0xFF00_0000_00FF_0000), Self.isHex(words.3),
            Self.isHex(end)
        else { return nil }
        // Digits and hyphens have the bit of lower case already.
        let lower: UInt64 = 0x2020_2020_2020_2020
        self.words = (words.0 | lower, words.1 | lower, words.2 | lower, words.3 | lower)
        last = UInt32(truncatingIfNeeded: (end | lower) &>> 32)
    }

    /// Whether the bytes are hexadecimal digits, and hyphens where `hyphens` has ones.
    @inline(__always)
    private static func isHex(_ word: UInt64, hyphens: UInt64 = 0) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highBits = ones &* 0x80
        guard word & hyphens == ones &* 0x2D & hyphens, word & highBits == 0 else { return false }
        let digits = word & ~hyphens | ones &* 0x30 & hyphens
        let lower = digits | ones &* 0x20
        // The high bit of a byte of `x + (0x80 - n)` says that it is at least n.
        let isDigit = (digits &+ ones &* 0x50) & ~(digits &+ ones &* 0x46)
        let isLetter = (lower &+ ones &* 0x1F) & ~(lower &+ ones &* 0x19)
        return (isDigit | isLetter) & highBits == highBits
    }

    /// Appends the 36 bytes.
    @inline(__always)
    func append(to output: inout ByteBuffer) {
        output.append(littleEndian: words.0)
        output.append(littleEndian: words.1)
        output.append(littleEndian: words.2)
        output.append(littleEndian: words.3)
        output.append(bigEndian: last.byteSwapped)
    }
}
