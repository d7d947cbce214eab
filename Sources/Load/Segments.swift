import Platform
import Postgres

/// The life of a segment of the event table: open, closing while its index is built, sealed.
enum Segments {
    /// Closes the open segment when it is full and opens the next one.
    ///
    /// One transaction under the turn lock, so that no load transaction is under way. Readers are
    /// not held up: ATTACH PARTITION of an empty table takes a lock that lets them through.
    ///
    /// - Parameter rowsMax: The size from which a segment is full.
    /// - Returns: The number of the segment opened, or nil when the open one was not full.
    static func openNext(
        _ connection: borrowing PostgresConnection, rowsMax: Int
    ) throws(LoadError) -> Int? {
        let turn = try connection.statement(
            "BEGIN; SELECT segment, segment_rows FROM tapline.turn FOR UPDATE")
        guard turn.rows == 1, let full = turn.int64(0, 0), let rows = turn.int64(0, 1),
            rows >= Int64(rowsMax)
        else {
            _ = try connection.statement("ROLLBACK")
            return nil
        }
        let next = full + 1
        _ = try connection.statement(
            """
            \(create(next));
            UPDATE tapline.segment SET state = 'closing', rows = \(rows)
                WHERE segment = \(full);
            INSERT INTO tapline.segment (segment, state) VALUES (\(next), 'open');
            UPDATE tapline.turn SET segment = \(next), segment_rows = 0;
            COMMIT
            """)
        return Int(next)
    }

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
            \(create(segment));
            UPDATE tapline.turn SET segment_rows = 0;
            COMMIT
            """)
    }

    /// SQL that makes the partition of a segment; without an index, and with nothing for autovacuum
    /// to do, as its rows never change.
    private static func create(_ segment: Int64) -> String {
        """
        CREATE TABLE IF NOT EXISTS tapline.event_\(segment)
            (LIKE tapline.event INCLUDING ALL) WITH (autovacuum_enabled = false);
        ALTER TABLE tapline.event ATTACH PARTITION tapline.event_\(segment)
            FOR VALUES IN (\(segment))
        """
    }

    /// Builds the index of each closing segment and marks it sealed.
    ///
    /// The unique index is also a proof: it fails if an event was stored twice.
    static func sealClosing(_ connection: borrowing PostgresConnection) throws(LoadError) {
        let closing = try connection.statement(
            "SELECT segment FROM tapline.segment WHERE state = 'closing' ORDER BY segment")
        for row in 0..<closing.rows {
            guard let number = closing.int64(row, 0) else { continue }
            // Another daemon may be at it: the second one waits for the lock and finds it done.
            _ = try connection.statement(
                """
                BEGIN;
                SELECT 1 FROM tapline.segment WHERE segment = \(number) FOR UPDATE;
                CREATE UNIQUE INDEX IF NOT EXISTS event_\(number)_unit_key
                    ON tapline.event_\(number) (unit, key);
                ALTER TABLE tapline.event_\(number) RESET (autovacuum_enabled);
                UPDATE tapline.segment SET state = 'sealed' WHERE segment = \(number);
                COMMIT
                """)
            _ = try connection.statement("VACUUM (FREEZE, ANALYZE) tapline.event_\(number)")
            Log.info("sealed segment \(number) of the event table")
        }
    }
}
