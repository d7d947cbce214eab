import Event
import JSONLines

/// What a word in the field `type` was found to say.
struct KnownType {
    /// A word of 4 to 16 bytes; equal exactly when the words are.
    struct Key: Equatable {
        private let count: Int
        private let first, last: UInt64

        /// Nil for a word that is shorter or longer.
        @inline(__always)
        init?(_ word: RawSpan) {
            count = word.byteCount
            guard count >= 4, count <= 16 else { return nil }
            if count >= 8 {
                first = word.word(at: 0)
                last = word.word(at: count &- 8)
            } else {
                first = UInt64(word.halfWord(at: 0))
                last = UInt64(word.halfWord(at: count &- 4))
            }
        }
    }

    /// The word; nil when there was none yet.
    var key: Key?
    var type: EventType
    /// Whether the word is spelled as the type is named.
    var isExact: Bool
}
