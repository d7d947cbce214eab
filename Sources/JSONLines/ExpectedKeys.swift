/// The keys that an object may have, and which of them came after which of them last.
///
/// The lines of a body have their keys in one order, so almost every key is found by one comparison
/// with the one that is expected, instead of being scanned and looked up.
public struct ExpectedKeys: ~Copyable, Sendable {
    // Not private: Swift 6.3.1 then fails to build this without optimisation.
    struct Key: BitwiseCopyable, Sendable {
        /// `"name":`, and which bits of the three words are of it.
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        var masks: (UInt64, UInt64, UInt64) = (0, 0, 0)
        var bytes = 0
        /// The number of the key that came after it.
        var next: UInt8
    }

    /// Of a name, for quotes and colon have a place too.
    private static let nameBytesMax = 21

    /// The keys by their number, then any other key and the start of an object.
    private var keys: FixedTable<Key>
    /// The number of a key that is none of these, or not the one that was expected.
    package let other: Int

    /// No keys; nothing is ever expected.
    static let none = ExpectedKeys([])

    /// - Parameter names: At most 253, of at most 21 bytes that need no escape; the number of each is its
    ///   place.
    package init(_ names: [StaticString]) {
        precondition(names.count <= 253)
        other = names.count
        let none = UInt8(names.count)
        keys = FixedTable(repeating: Key(next: none), count: names.count + 2)
        for (number, name) in names.enumerated() {
            let text = Array("\"\(name)\":".utf8)
            precondition(text.count <= Self.nameBytesMax + 3, "\(name) is too long")
            func word(_ place: Int, _ byte: (Int) -> UInt8) -> UInt64 {
                (0..<8).reduce(0) { $0 | UInt64(byte(8 * place + $1)) &<< UInt64(8 * $1) }
            }
            func words(_ byte: (Int) -> UInt8) -> (UInt64, UInt64, UInt64) {
                (word(0, byte), word(1, byte), word(2, byte))
            }
            keys[number] = Key(
                words: words { $0 < text.count ? text[$0] : 0 },
                masks: words { $0 < text.count ? 0xFF : 0 }, bytes: text.count, next: none)
        }
    }

    /// Where the members of an object begin, as if it were a key.
    package var start: Int { other + 1 }

    /// Notes that the key `number` came after the key `last`; both may be `other`, the latter `start`.
    package mutating func note(_ number: Int, after last: Int) {
        keys[last].next = UInt8(truncatingIfNeeded: number)
    }

    /// The key that is expected after `last`, if it is what stands at `index`, and the bytes of it with
    /// quotes and colon.
    @inline(__always)
    func match(after last: Int, _ bytes: RawSpan, _ index: Int, _ end: Int) -> (Int, bytes: Int)? {
        let number = Int(keys[last].next)
        guard number < other, end &- index >= 24 else { return nil }
        let key = keys[number]
        var difference = (bytes.word(at: index) ^ key.words.0) & key.masks.0
        difference |= (bytes.word(at: index &+ 8) ^ key.words.1) & key.masks.1
        difference |= (bytes.word(at: index &+ 16) ^ key.words.2) & key.masks.2
        return difference == 0 ? (number, key.bytes) : nil
    }
}
