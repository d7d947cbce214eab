import Event

/// What one daemon knows of the keys in the database: exact for the segments without an index, a
/// filter for each sealed one.
///
/// It mirrors the database as of ``batch``; the loader brings it up to date under the turn lock
/// before it decides, and adds its own keys only after the commit. So it never answers `duplicate`
/// for a row that is not durable.
final class DedupeIndex {
    /// A segment's keys; a class, as an array cannot hold a noncopyable value.
    final class Segment {
        let number: Int
        /// Every key of a segment without an index.
        var table: KeyTable?
        /// The filter over a sealed segment.
        var filter: KeyFilter?

        init(number: Int, table: consuming KeyTable) {
            self.number = number
            self.table = consume table
        }

        init(number: Int, filter: consuming KeyFilter) {
            self.number = number
            self.filter = consume filter
        }

        /// Replaces the exact keys by a filter, as the database can now be asked by index.
        func seal() {
            guard let count = table?.count else { return }
            var filter = KeyFilter(keys: count)
            table?.forEach { key, _ in filter.insert(key) }
            self.filter = consume filter
            table = nil
        }
    }

    /// The newest batch whose rows are known here, and its time in the database: together they
    /// tell whether a database still has the history that this mirrors.
    var batch: Int64 = -1
    var storedAt: Int64 = 0
    /// Newest last; the last one is open.
    var segments: [Segment] = []

    /// The open segment; takes new keys.
    var open: Segment? { segments.last }

    /// Keys of the open segment.
    var openCount: Int { segments.last?.table?.count ?? 0 }

    /// Whether a segment waits for its index, so that its keys take memory meanwhile.
    var hasClosingSegment: Bool { segments.dropLast().contains { $0.table != nil } }

    /// The content stored with `key` in a segment that is known exactly.
    func exactContent(of key: Identity) -> EventContent? {
        for segment in segments.reversed() {
            if let content = segment.table?.content(of: key) { return content }
        }
        return nil
    }

    /// The sealed segments that may hold `key`, as indices into ``segments``.
    func forEachSealedCandidate(of key: Identity, _ body: (Int) -> Void) {
        for index in segments.indices where segments[index].filter?.mayContain(key) == true {
            body(index)
        }
    }
}
