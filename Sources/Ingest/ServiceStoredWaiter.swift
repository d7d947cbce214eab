import Spool

/// What became of the accepted lines of one body in the database.
package struct StoredCounts: Equatable, Sendable {
    /// Newly stored.
    package var accepted: Int
    /// Stored before.
    package var duplicates: Int
    /// Another event of the same identity was stored before.
    package var conflicts: Int
    /// Refused by the database, and kept with the reason.
    package var deadLettered: Int

    /// Creates the counts.
    package init(accepted: Int, duplicates: Int, conflicts: Int, deadLettered: Int) {
        self.accepted = accepted
        self.duplicates = duplicates
        self.conflicts = conflicts
        self.deadLettered = deadLettered
    }
}

/// Waits for the loader, for `?ack=stored`.
package protocol StoredWaiter: AnyObject, Sendable {
    /// A body is about to be spooled and its answer will wait: from now on results have to be kept,
    /// as the loader may be done before the answer asks. One call of ``whenStored(_:timeoutMilliseconds:_:)``
    /// or ``withdraw()`` follows.
    func announce()

    /// The announced body did not become durable.
    func withdraw()

    /// Tells once what became of a record.
    ///
    /// - Parameters:
    ///   - mark: The record, which is durable.
    ///   - timeoutMilliseconds: How long to wait.
    ///   - completion: Runs once on any thread, with nil when the time is over. Must not block.
    func whenStored(
        _ mark: SpoolMark, timeoutMilliseconds: Int,
        _ completion: @escaping @Sendable (StoredCounts?) -> Void)
}
