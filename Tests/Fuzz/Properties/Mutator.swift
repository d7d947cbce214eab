import GzipOracle

/// Changes inputs at random, from a seed, so that a run can be repeated.
package struct Mutator {
    private var random: Random
    private var pool: [[UInt8]]
    private let bytesMax = 1 << 16

    /// - Parameter pool: Inputs to begin with; they are spliced into each other.
    package init(seed: UInt64, pool: [[UInt8]]) {
        random = Random(state: seed)
        self.pool = pool.isEmpty ? [[]] : pool
    }

    /// What is put into texts: brackets, escapes, and bytes that are at some limit.
    private static let tokens: [[UInt8]] =
        [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\n", "\r\n", " ", "0", "-", "+", ".", "e",
            "E", "1e308", "1e309", "null", "true", "\\u0000", "\\ud83d", "\\ude00", "\\u", "Z",
            "T", "24:00:00", "9999", "0000", "9223372036854775808", "\u{FEFF}", "é", "😀", "\0",
            "type", "clicked", "message_uid",
        ].map { Array($0.utf8) }
        + [
            [0x1F, 0x8B, 8], [0xFF], [0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80],
            [0xF4, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
        ]

    /// The next input.
    package mutating func next() -> [UInt8] {
        var bytes = pool[random.below(pool.count)]
        for _ in 0...random.below(4) { change(&bytes) }
        return bytes.count > bytesMax ? Array(bytes[..<bytesMax]) : bytes
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        let index = random.below(bytes.count + 1)
        let rest = bytes.count - index
        switch random.below(10) {
        case 0 where rest > 0: bytes[index] ^= 1 << UInt8(random.below(8))
        case 1 where rest > 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
        case 2 where rest > 0: bytes[index] = [0, 0x7F, 0x80, 0xFF][random.below(4)]
        case 3: bytes.removeSubrange(index..<index + min(rest, random.below(1 + rest)))
        case 4: bytes.removeSubrange(index..<index + min(rest, 1 + random.below(4)))
        case 5:
            let count = min(rest, 1 + random.below(32))
            bytes.insert(contentsOf: bytes[index..<index + count], at: index)
        case 6:
            let other = pool[random.below(pool.count)]
            let start = random.below(other.count + 1)
            bytes = Array(bytes[..<index]) + other[start...]
        case 7:
            let token = Self.tokens[random.below(Self.tokens.count)]
            bytes.replaceSubrange(index..<index + min(rest, token.count), with: token)
        case 8:
            // A number of several bytes, as lengths are.
            for offset in 0..<min(rest, 4) {
                bytes[index + offset] = UInt8(truncatingIfNeeded: random.next())
            }
        default:
            bytes.insert(contentsOf: Self.tokens[random.below(Self.tokens.count)], at: index)
        }
    }
}
