import Platform
import Postgres

/// The tables of a segment: open while it takes rows, closing once its index and filter stand, sealed
/// once its upkeep is done.
package enum Segments {
    /// Makes partitions anew that somebody has dropped, so that loading goes on: rows go into the open one,
    /// and closed ones are asked for keys.
    ///
    /// Nothing is forgotten of what was in them: the books show what is missing until it is back.
    static func mend(_ connection: borrowing PostgresConnection) throws(LoadError) {
        guard try missing(connection).rows > 0 else { return }
        _ = try connection.statement("BEGIN; SELECT 1 FROM tapline.turn FOR UPDATE")
        // Once more, as another daemon may have made them meanwhile.
        let missing = try missing(connection)
        guard missing.rows > 0 else {
            _ = try connection.statement("ROLLBACK")
            return
        }
        for row in 0..<missing.rows {
            guard let segment = missing.int64(row, 0).map({ Int($0) }) else { continue }
            let isOpen = missing.bool(row, 1) == true
            _ = try connection.statement(
                """
                \(create(segment));
                \(isOpen ? "" : index(segment));
                UPDATE tapline.segment SET rows = 0, closing = NULL
                WHERE segment = \(segment) AND state <> 'open';
                UPDATE tapline.turn SET segment_rows = 0 WHERE segment = \(segment)
                """)
        }
        // A new generation, so that each daemon reads the open segment again: what it knows of keys and units
        // that are gone would make duplicates of them, and wrong cells.
        _ = try connection.statement(
            """
            UPDATE tapline.turn SET generation = generation + 1;
            DELETE FROM tapline.batch_news
            """)
        _ = try connection.statement("COMMIT")
        for row in 0..<missing.rows {
            Log.error(
                "partition tapline.event_\(missing.int64(row, 0) ?? 0) is gone with its "
                    + "\(missing.int64(row, 2) ?? 0) events; made anew",
                hint: "What the spool still has comes back by \"tapline replay\", the rest if you "
                    + "restore a backup. Then run \"tapline rebuild\": reports count what is gone.")
        }
    }

    /// SQL for whether a partition is gone; to count them is less than to look for each.
    static let isAnyMissing = """
        (SELECT count(*) FROM tapline.segment)
            <> (SELECT count(*) FROM pg_inherits WHERE inhparent = 'tapline.event'::regclass)
        AND EXISTS (SELECT FROM tapline.segment s
            WHERE to_regclass(format('tapline.event_%s', s.segment)) IS NULL)
        """

    /// The segments without a partition, whether they are open, and how many events they had.
    private static func missing(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> PostgresResult {
        try connection.statement(
            """
            SELECT s.segment, s.state = 'open',
                CASE WHEN s.state = 'open' THEN t.segment_rows ELSE s.rows END
            FROM tapline.segment s CROSS JOIN tapline.turn t
            WHERE to_regclass(format('tapline.event_%s', s.segment)) IS NULL ORDER BY s.segment
            """)
    }

    // MARK: Detached partitions

    /// The partitions that somebody has detached, oldest first: their rows are there, and whatever reads
    /// `tapline.event` does not see them.
    package static func detached(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [Int] {
        let rows = try findDetached(connection)
        return (0..<rows.rows).map { Int(rows.int64($0, 0) ?? 0) }
    }

    /// Attaches partitions again that somebody has detached.
    ///
    /// Nothing is lost or doubled meanwhile, as loading and dedupe name partitions themselves; but the books
    /// miss their events, and so do reports that read events.
    ///
    /// - Returns: How many.
    /// - Throws: ``LoadError``; nothing is changed then.
    static func attachDetached(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> Int {
        guard try findDetached(connection).rows > 0 else { return 0 }
        do throws(LoadError) {
            // Before any other lock, as in a load transaction: whoever closes a segment holds the turn and
            // then waits for the event table, which attaching locks too.
            _ = try connection.statement("BEGIN; SELECT 1 FROM tapline.turn FOR UPDATE")
            // Once more, as another daemon may have attached them meanwhile.
            let detached = try findDetached(connection)
            var events: [Int64] = []
            for row in 0..<detached.rows {
                let segment = Int(detached.int64(row, 0) ?? 0)
                // One that was begun CONCURRENTLY and not completed has no rows for anybody, either.
                if detached.bool(row, 1) == true {
                    _ = try connection.statement(
                        """
                        ALTER TABLE tapline.event DETACH PARTITION tapline.event_\(segment) FINALIZE
                        """)
                }
                _ = try connection.statement(attach(segment))
                let count = try connection.statement(
                    "SELECT count(*) FROM tapline.event_\(segment)")
                events.append(count.int64(0, 0) ?? 0)
            }
            _ = try connection.statement("COMMIT")
            for row in 0..<detached.rows {
                Log.error(
                    "partition tapline.event_\(detached.int64(row, 0) ?? 0) was detached with its "
                        + "\(events[row]) events; attached again",
                    hint: "Reports, \"tapline check\" and \"tapline explain\" did not see them "
                        + "meanwhile. What is old is removed by \"tapline retention\".")
            }
            return detached.rows
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }

    /// Segments whose partition is a table by itself, and whether it is about to become one.
    private static func findDetached(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> PostgresResult {
        try connection.statement(
            """
            SELECT s.segment, i.inhrelid IS NOT NULL
            FROM tapline.segment s
            JOIN pg_class c ON c.oid = to_regclass(format('tapline.event_%s', s.segment))
            LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
                AND i.inhparent = 'tapline.event'::regclass
            WHERE i.inhrelid IS NULL OR i.inhdetachpending ORDER BY s.segment
            """)
    }

    /// SQL that makes a table the partition of a segment.
    private static func attach(_ segment: Int) -> String {
        """
        ALTER TABLE tapline.event ATTACH PARTITION tapline.event_\(segment)
            FOR VALUES IN (\(segment))
        """
    }

    /// SQL that makes the partition of a segment; without an index, and without autovacuum: its rows are
    /// changed by erase, retention and device apply only, and ``Vacuum`` comes after those.
    static func create(_ segment: Int) -> String {
        """
        CREATE TABLE IF NOT EXISTS tapline.event_\(segment)
            (LIKE tapline.event INCLUDING ALL) WITH (autovacuum_enabled = false);
        \(attach(segment))
        """
    }

    /// SQL that makes the indexes of a segment that takes no more rows.
    ///
    /// - Parameter hasInbox: Whether its events may name inbox messages: an index of none takes a scan of all.
    static func index(_ segment: Int, hasInbox: Bool = true) -> String {
        let unique = """
            CREATE UNIQUE INDEX IF NOT EXISTS event_\(segment)_unit_key
                ON tapline.event_\(segment) (unit, key)
            """
        guard hasInbox else { return unique }
        return """
            \(unique);
            CREATE INDEX IF NOT EXISTS event_\(segment)_inbox_unit
                ON tapline.event_\(segment) (inbox_unit) WHERE inbox_unit IS NOT NULL
            """
    }

    /// The segments whose events may name inbox messages: of the others none is to be asked for one.
    package static func withInbox(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [Int64] {
        let rows = try connection.statement(
            "SELECT segment::bigint FROM tapline.segment WHERE has_inbox")
        return (0..<rows.rows).compactMap { rows.int64($0, 0) }
    }

    /// Whether ``sealClosing(_:)`` has something to do.
    static func hasClosing(_ connection: borrowing PostgresConnection) throws(LoadError) -> Bool {
        try connection.statement(
            "SELECT FROM tapline.segment WHERE state = 'closing' LIMIT 1"
        ).rows > 0
    }

    /// Merges the cells of closing segments and marks them sealed.
    ///
    /// They are vacuumed only if erase or retention changed rows while they were open: else none is dead
    /// but for a failed transaction, building the index has set their hint bits, and freezing them can
    /// wait until the transaction ids are far older.
    static func sealClosing(_ connection: borrowing PostgresConnection) throws(LoadError) {
        let oldest = try connection.statement(
            "SELECT min(segment)::bigint FROM tapline.segment WHERE state = 'closing'")
        guard let first = oldest.int64(0, 0) else { return }
        let next = try Vacuum.closed(connection, from: first)
        let sealed = try connection.statement("SELECT tapline.merge_cells()").int64(0, 0) ?? 0
        // Else another session is at it, and at the rest.
        guard sealed > 0 else { return }
        // What was closed since it was looked at.
        try Vacuum.closed(connection, from: next)
        // What was moved, and what daemons wrote for each other, is free for that of the next segment.
        _ = try connection.statement("VACUUM tapline.cell_change, tapline.batch_news")
        Log.info("sealed \(sealed) segments of the event table")
    }
}
