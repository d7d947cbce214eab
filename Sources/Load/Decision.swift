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
    ///   - known: For each row the content that the database holds under its key, if it does.
    init(_ batch: borrowing LoadBatch, known: [EventContent?]) {
        let count = batch.rows.count
        verdicts = Array(repeating: .stored, count: count)
        var newKeys = KeyTable(capacity: count)
        for row in 0..<count {
            let content = batch.contents[row]
            if let existing = known[row] ?? newKeys.insert(batch.keys[row], content) {
                verdicts[row] = existing.verdict(for: content)
            } else {
                storedCount += 1
            }
        }
    }

    /// Notes that PostgreSQL refused a row that was to be stored.
    mutating func deadLetter(_ row: Int) {
        verdicts[row] = .deadLettered
        storedCount -= 1
    }
}
