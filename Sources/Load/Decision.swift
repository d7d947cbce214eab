import Event

/// Decides what becomes of each row of a batch, given what the database already holds.
struct Decision: ~Copyable {
    /// A verdict a row; `stored` until something says otherwise.
    private(set) var verdicts: [StoredVerdict]
    /// How many rows are to be stored.
    private(set) var storedCount = 0

    /// Decides in spool order, so that of two equal events in one batch the first is stored.
    ///
    /// - Parameters:
    ///   - batch: The rows.
    ///   - open: What the open segment holds.
    ///   - older: What the closed segments hold of the keys that the open one does not.
    init(
        _ batch: borrowing LoadBatch, _ open: borrowing OpenSegment,
        _ older: borrowing OlderUnits
    ) {
        verdicts = Array(repeating: .stored, count: batch.count)
        let events = batch.events
        for row in events.indices {
            if row &+ Self.lookAhead < events.count {
                open.keys.prefetch(events[row &+ Self.lookAhead].key)
            }
            let key = events[row].key
            let content = batch.contents[row]
            let first = batch.firstRow(withKeyOf: row)
            if let existing = open.keys.content(of: key) ?? older.content(of: key)
                ?? (first == row ? nil : batch.contents[first])
            {
                verdicts[row] = existing.verdict(for: content)
            } else {
                storedCount += 1
            }
        }
    }

    /// How many rows ahead what is needed is asked of memory: it takes about as long to come.
    static let lookAhead = 8

    /// Notes that PostgreSQL refused a row that was to be stored.
    mutating func deadLetter(_ row: Int) {
        verdicts[row] = .deadLettered
        storedCount -= 1
    }
}
