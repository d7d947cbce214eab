import Platform
import Postgres

/// Takes the old versions of changed and deleted rows out of the tables' files, which autovacuum does not
/// do for segments and may never do for small tables.
///
/// Never of the open segment: loads would fill the free space, and a batch has to be in one place.
enum Vacuum {
    /// How long to wait for transactions that still see old versions.
    private static let patienceMilliseconds = 10_000
    private static let pollSeconds = 0.02

    /// Vacuums closed segments, and conflicts and dead letters.
    ///
    /// - Parameter changed: Of these segments it is known that they need it; of others statistics say.
    /// - Returns: Whether old versions had to stay, as in ``waitForOlder(_:)``.
    static func run(
        _ connection: borrowing PostgresConnection, changed: Set<Int>
    ) throws(LoadError) -> Bool {
        let rows = try connection.statement(
            """
            SELECT s.segment::bigint FROM tapline.segment s
                JOIN pg_stat_all_tables t
                    ON t.relid = to_regclass(format('tapline.event_%s', s.segment))
            WHERE s.state <> 'open' AND (s.segment = ANY ($1::bigint[]) OR t.n_dead_tup > 0)
            ORDER BY s.segment
            """, [.int64Array(changed.map { Int64($0) })])
        let segments = (0..<rows.rows).compactMap { rows.int64($0, 0) }
        let isDone = try waitForOlder(connection)
        for table in segments.map({ "event_\($0)" }) + ["conflict", "dead_letter"] {
            _ = try connection.statement("VACUUM tapline.\(table)")
        }
        return !isDone
    }

    /// Vacuums the closed segments from one on, if rows of them were changed while they were open.
    ///
    /// - Returns: The number after the last of them.
    @discardableResult
    static func closed(
        _ connection: borrowing PostgresConnection, from first: Int64
    ) throws(LoadError) -> Int64 {
        let rows = try connection.statement(
            """
            SELECT segment::bigint,
                has_old_versions AND to_regclass(format('tapline.event_%s', segment)) IS NOT NULL
            FROM tapline.segment WHERE state <> 'open' AND segment >= $1 ORDER BY segment
            """, [.int64(first)])
        var next = first
        for row in 0..<rows.rows {
            guard let segment = rows.int64(row, 0) else { continue }
            next = segment + 1
            // Not by statistics, which come seconds later.
            guard rows.bool(row, 1) == true else { continue }
            _ = try connection.statement("VACUUM tapline.event_\(segment)")
        }
        return next
    }

    /// Waits until no transaction is left that began before now: what it may see is not vacuumed.
    ///
    /// - Returns: False when one is left after the patience.
    static func waitForOlder(_ connection: borrowing PostgresConnection) throws(LoadError) -> Bool {
        let now = try connection.statement("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        let deadline = Clock.deadline(inMilliseconds: patienceMilliseconds)
        while true {
            let older = try connection.statement(
                """
                SELECT FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND greatest(age(backend_xid), age(backend_xmin)) > age($1::xid8::xid) LIMIT 1
                """, [.text(now.string(0, 0) ?? "")])
            if older.rows == 0 { return true }
            guard Clock.monotonic() < deadline else { return false }
            _ = try connection.statement("SELECT pg_sleep(\(pollSeconds))")
        }
    }
}
