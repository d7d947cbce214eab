/// The limits of the loader.
package struct LoadSettings: Sendable {
    /// Rows of one load transaction, about: a body is never split.
    package var batchRowsMax = 75_000
    /// Bytes of one load transaction, about: what bounds the memory when rows are large.
    package var batchBytesMax = 32 << 20
    /// How long the first event of a batch waits for more.
    package var batchAgeMilliseconds = 200
    /// Rows from which a segment of the event table is closed.
    package var segmentRowsMax = 500_000
    /// Bytes of the files of identities of closed segments; the oldest go, 0 keeps none.
    package var identityFilesBytesMax = 4 << 30
    /// Events of a unit from which on a closed segment is asked for single keys of it: to read them all
    /// would take longer with each that comes.
    package var heavyUnitEvents = 1_000
    /// Whether to write each batch for other daemons too, even if none is seen.
    package var alwaysWritesNews = false
    /// How long a load transaction may wait for a lock: then it is tried again.
    package var lockTimeoutMilliseconds = 10_000
    /// How long a statement may run: a hung server is given up.
    package var statementTimeoutMilliseconds = 60_000

    package init() {}

    /// Whether a batch takes no more records.
    func isFull(_ batch: borrowing LoadBatch) -> Bool {
        batch.count >= batchRowsMax || batch.bytes >= batchBytesMax
    }
}
