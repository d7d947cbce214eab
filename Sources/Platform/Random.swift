internal import CPlatform

/// Random numbers from the kernel, fit for keys and identifiers.
package enum Random {
    /// Unpredictable bytes.
    ///
    /// - Parameter count: How many; any number.
    package static func bytes(_ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            // SAFETY: writes exactly `count` bytes, which the buffer has room for.
            unsafe tapline_random(buffer.baseAddress, count)
            initialized = count
        }
    }

    /// A number drawn evenly from `0..<1`, for jitter.
    package static func uniform() -> Double { Double.random(in: 0..<1) }
}

/// Hexadecimal text of bytes, in lower case.
package enum Hex {
    /// Two digits a byte.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var digits: [UInt8] = []
        for byte in bytes {
            digits.append(digit(byte >> 4))
            digits.append(digit(byte & 15))
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The bytes of hexadecimal text of either case.
    ///
    /// - Returns: Nil when the length is odd or a character is no digit.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text.utf8 {
            guard let value = value(character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return high == nil ? bytes : nil
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 87 + value }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 48...57: digit - 48
        case 65...70: digit - 55
        case 97...102: digit - 87
        default: nil
        }
    }
}
