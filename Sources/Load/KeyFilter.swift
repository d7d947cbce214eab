import Event

/// A split-block Bloom filter over the keys of one sealed segment.
///
/// It never says no to a key that was added; to another one it says yes about once in 800 with the
/// 16 bits a key used here. Layout and salts are those of the Apache Parquet format's bloom filter
/// (https://github.com/apache/parquet-format/blob/master/BloomFilter.md): a key picks one block of
/// 256 bits and sets one bit in each of its eight 32-bit words.
@safe
struct KeyFilter: ~Copyable, @unchecked Sendable {
    private static let salts: InlineArray<8, UInt32> = [
        0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d,
        0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31,
    ]

    // SAFETY: points to `blocks * 8` initialized words from `init` to `deinit`.
    private let words: UnsafeMutablePointer<UInt32>
    private let blocks: UInt64

    /// A filter for about `keys` keys, two bytes each.
    init(keys: Int) {
        blocks = UInt64(max(1, (keys + 15) / 16))
        unsafe words = .allocate(capacity: Int(blocks) * 8)
        unsafe words.initialize(repeating: 0, count: Int(blocks) * 8)
    }

    deinit { unsafe words.deallocate() }

    /// Adds `key`.
    mutating func insert(_ key: Identity) {
        let first = firstWord(key)
        for index in 0..<8 {
            unsafe words[first + index] |= bit(key, index)
        }
    }

    /// Whether `key` may have been added; never false for one that was.
    func mayContain(_ key: Identity) -> Bool {
        let first = firstWord(key)
        for index in 0..<8 where unsafe words[first + index] & bit(key, index) == 0 {
            return false
        }
        return true
    }

    /// Block by the high half of the key, bits by the low one: they are independent.
    private func firstWord(_ key: Identity) -> Int {
        Int(key.high.multipliedFullWidth(by: blocks).high) * 8
    }

    private func bit(_ key: Identity, _ index: Int) -> UInt32 {
        1 << ((UInt32(truncatingIfNeeded: key.low) &* Self.salts[index]) >> 27)
    }
}
