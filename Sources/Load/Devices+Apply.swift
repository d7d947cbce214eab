import Event
import Postgres

extension Devices {
    /// What ``apply(_:progress:)`` did.
    package struct Applied: Equatable, Sendable {
        /// Events that have values of their devices now, and had not.
        package var events: Int64 = 0
        /// See ``Erasure/Outcome/isHeld``.
        package var isHeld = false
    }

    /// Gives stored events what is known of their devices by now, which may have been loaded after them.
    ///
    /// All of it is one transaction: units are counted anew at its end, for which loads wait.
    ///
    /// - Parameter progress: Called with how many segments are done, and of how many.
    /// - Throws: ``LoadError``; nothing is changed then.
    package static func apply(
        _ connection: borrowing PostgresConnection, progress: (Int, Int) -> Void = { _, _ in }
    ) throws(LoadError) -> Applied {
        try Removal.begin(connection)
        var applied = Applied()
        var changed: Set<Int> = []
        do throws(LoadError) {
            _ = try connection.statement("BEGIN")
            _ = try connection.statement("SET LOCAL statement_timeout = 0")
            _ = try connection.statement(
                "SELECT pg_advisory_xact_lock(hashtextextended('tapline.cells', 0))")
            let segments = try Removal.segments(connection)
            for (index, segment) in segments.enumerated() {
                progress(index, segments.count)
                let updated = try connection.statement(statement(segment: segment))
                applied.events += Int64(updated.affectedRows)
                if updated.affectedRows > 0 { changed.insert(segment) }
            }
            if applied.events > 0 {
                // What daemons wrote for each other says what the events were before.
                _ = try connection.statement("DELETE FROM tapline.batch_news")
                _ = try connection.statement("SELECT tapline.rebuild_cells()")
            }
            _ = try connection.statement("COMMIT")
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
        guard !changed.isEmpty else { return applied }
        applied.isHeld = try Vacuum.run(connection, changed: changed)
        return applied
    }

    private static func statement(segment: Int) -> String {
        let columns = LoadBatch.filledColumns.map(\.name)
        func list(_ text: (String) -> String, _ separator: String = ", ") -> String {
            columns.map(text).joined(separator: separator)
        }
        // What the event says itself; else what is known now; else, of a device that was erased since,
        // what was.
        func own(_ column: String) -> String {
            let bit = 1 << (columns.firstIndex(of: column) ?? 0)
            return "CASE WHEN coalesce(e.filled, 0) & \(bit) = 0 THEN e.\(column) END"
        }
        let bits = columns.enumerated().map { index, column in
            "CASE WHEN x.own_\(column) IS NULL AND x.\(column) IS NOT NULL THEN \(1 << index) ELSE 0 END"
        }
        return """
            UPDATE tapline.event_\(segment) e
            SET \(list { "\($0) = x.\($0)" }), filled = nullif(\(bits.joined(separator: " + ")), 0)
            FROM (
                SELECT e.ctid AS place, \(list { "\(own($0)) AS own_\($0)" }),
                    \(list { "coalesce(\(own($0)), d.\($0), e.\($0)) AS \($0)" })
                FROM tapline.event_\(segment) e,
                    LATERAL tapline.device_at(e.app, e.device_id, e.event_time) d
                WHERE e.message_uid <> '' AND e.device_id <> ''
                    AND (e.filled IS NOT NULL OR num_nulls(\(list { "e.\($0)" })) > 0)
                    AND EXISTS (SELECT FROM tapline.device_state s
                        WHERE s.app = e.app AND s.device_id = e.device_id)) x
            WHERE e.ctid = x.place AND (\(list({ "e.\($0) IS DISTINCT FROM x.\($0)" }, " OR ")))
            """
    }
}
