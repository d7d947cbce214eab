import Postgres
import Schema

/// What ``Erasure``, ``Retention`` and ``DeadLetters`` have in common: an event keeps its row, without
/// its content, and conflicts and dead letters go; all of it stays counted.
enum Removal {
    /// Lets one of them run at a time, for as long as the connection lives.
    ///
    /// - Throws: ``LoadError/removalIsRunning``.
    static func begin(_ connection: borrowing PostgresConnection) throws(LoadError) {
        let lock = try connection.statement(
            "SELECT pg_try_advisory_lock(hashtextextended('tapline.removal', 0))")
        guard lock.bool(0, 0) == true else { throw .removalIsRunning }
    }

    /// Makes events of a segment anonymous.
    ///
    /// - Parameter which: A condition on events `e`.
    /// - Returns: How many were not yet.
    static func anonymise(
        _ connection: borrowing PostgresConnection, segment: Int, which: String,
        _ parameters: [PostgresValue]
    ) throws(LoadError) -> Int64 {
        let emptied = try connection.statement(
            Schema.anonymise(segment: segment, which: which), parameters)
        return emptied.int64(0, 0) ?? 0
    }

    /// What is kept beside the events.
    enum Kept: String {
        case conflict, deadLetter = "dead_letter"

        /// SQL for how many verdicts a row stands for, and the term of law 4 that has them.
        fileprivate var verdicts: String { self == .conflict ? "times" : "1" }
        fileprivate var term: String { self == .conflict ? "conflict" : "dead_lettered" }
    }

    /// Deletes conflicts or dead letters, and counts them as removed, in one statement.
    ///
    /// - Parameter which: A condition on rows `k`.
    /// - Returns: How many rows.
    static func delete(
        _ connection: borrowing PostgresConnection, _ kept: Kept, which: String,
        _ parameters: [PostgresValue]
    ) throws(LoadError) -> Int64 {
        let row = try connection.statement(
            """
            WITH gone AS (
                DELETE FROM tapline.\(kept.rawValue) k WHERE \(which)
                RETURNING \(kept.verdicts) AS verdicts
            ), counted AS (
                UPDATE tapline.removed
                SET events = events + (SELECT coalesce(sum(verdicts), 0) FROM gone)
                WHERE term = '\(kept.term)' AND EXISTS (SELECT FROM gone)
            )
            SELECT count(*) FROM gone
            """, parameters)
        return row.int64(0, 0) ?? 0
    }

    /// The segments whose partition is there, oldest first.
    static func segments(_ connection: borrowing PostgresConnection) throws(LoadError) -> [Int] {
        let rows = try connection.statement(
            """
            SELECT segment FROM tapline.segment
            WHERE to_regclass(format('tapline.event_%s', segment)) IS NOT NULL ORDER BY segment
            """)
        return (0..<rows.rows).map { Int(rows.int64($0, 0) ?? 0) }
    }
}
