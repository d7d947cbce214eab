import Platform
import Postgres

/// The tables of a segment: open while it takes rows, closing once its index and filter stand, sealed
/// once its upkeep is done.
enum Segments {
    /// Makes the open segment's partition anew if somebody has dropped it, so that loading goes on.
    static func mendOpen(_ connection: borrowing PostgresConnection) throws(LoadError) {
        let missing = try connection.statement(
            """
            SELECT segment FROM tapline.turn
            WHERE to_regclass(format('tapline.event_%s', segment)) IS NULL
            """)
        guard missing.rows == 1, let segment = missing.int64(0, 0) else { return }
        Log.error(
            "partition tapline.event_\(segment) is gone, making it anew",
            hint: "Its events are lost to reports and to dedupe: restore a backup, then replay.")
        _ = try connection.statement(
            """
            BEGIN;
            SELECT 1 FROM tapline.turn FOR UPDATE;
            \(create(Int(segment)));
            UPDATE tapline.turn SET segment_rows = 0;
            COMMIT
            """)
    }

    /// SQL that makes the partition of a segment; without an index, and without autovacuum: its rows are
    /// changed by erase and retention only, and ``Vacuum`` comes after those.
    static func create(_ segment: Int) -> String {
        """
        CREATE TABLE IF NOT EXISTS tapline.event_\(segment)
            (LIKE tapline.event INCLUDING ALL) WITH (autovacuum_enabled = false);
        ALTER TABLE tapline.event ATTACH PARTITION tapline.event_\(segment)
            FOR VALUES IN (\(segment))
        """
    }

    /// SQL that makes the indexes of a segment that takes no more rows.
    static func index(_ segment: Int) -> String {
        """
        CREATE UNIQUE INDEX IF NOT EXISTS event_\(segment)_unit_key
            ON tapline.event_\(segment) (unit, key);
        CREATE INDEX IF NOT EXISTS event_\(segment)_inbox_unit
            ON tapline.event_\(segment) (inbox_unit) WHERE inbox_unit IS NOT NULL
        """
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
        let sealed = try connection.statement("SELECT tapline.merge_cells()")
        // What was closed since it was looked at.
        try Vacuum.closed(connection, from: next)
        // What was moved is free for the changes of the next segment.
        _ = try connection.statement("VACUUM tapline.cell_change")
        Log.info("sealed \(sealed.int64(0, 0) ?? 0) segments of the event table")
    }
}
