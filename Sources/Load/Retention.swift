import Postgres

/// Removes the content of what was received before a time: `tapline retention`.
///
/// Segment by segment, each in a transaction of its own; what a closed segment needs is written down, so
/// that the next run looks only at what has grown old since.
package enum Retention {
    /// What was done.
    package struct Outcome: Equatable, Sendable {
        /// Rows.
        package var events: Int64 = 0
        package var conflicts: Int64 = 0
        package var deadLetters: Int64 = 0
        /// Segments that were made smaller, and by how many bytes.
        package var compacted = 0
        package var bytes: Int64 = 0
        /// Segments that a report held on to: the next run makes them smaller.
        package var busy: [Int] = []
        /// Segments whose table is not of the role that retention runs as, so that they stay as large.
        package var notOwned: [Int] = []
        /// Whether waiting for older transactions was in vain once.
        fileprivate var isHeld = false
    }

    /// A segment, as it is before.
    private struct Segment {
        let number: Int
        let isOpen: Bool
        /// Microseconds since 1970 UTC.
        var first: Int64?
        var last: Int64?
        let bareBefore: Int64?
        let isCompact: Bool
    }

    /// Removes the content of what was received before `horizon`, in microseconds since 1970 UTC.
    ///
    /// - Parameter progress: Called with how many segments are done, and of how many.
    /// - Throws: ``LoadError``; what was done by then stays done, and doing it again does the rest.
    package static func run(
        _ connection: borrowing PostgresConnection, receivedBefore horizon: Int64,
        progress: (Int, Int) -> Void = { _, _ in }
    ) throws(LoadError) -> Outcome {
        try Removal.begin(connection)
        var outcome = Outcome()
        var changed: Set<Int> = []
        let numbers = try Removal.segments(connection)
        for (index, number) in numbers.enumerated() {
            progress(index, numbers.count)
            let segment = try look(connection, number)
            let events = try empty(connection, segment, horizon)
            outcome.events += events
            if events > 0 { changed.insert(number) }
            if !segment.isOpen, !segment.isCompact, let last = segment.last, last < horizon,
                try compact(connection, number, &outcome)
            {
                changed.remove(number)
            }
        }
        let isOld = "k.received_at < $1"
        outcome.conflicts = try Removal.delete(
            connection, .conflict, which: isOld, [.timestamp(horizon)])
        outcome.deadLetters = try Removal.delete(
            connection, .deadLetter, which: isOld, [.timestamp(horizon)])
        // What has to stay goes with the next run.
        _ = try Vacuum.run(connection, changed: changed)
        return outcome
    }

    /// Reads what is known of a segment; of a closed one, finds out when its events were received.
    private static func look(
        _ connection: borrowing PostgresConnection, _ number: Int
    ) throws(LoadError) -> Segment {
        let row = try connection.statement(
            """
            SELECT state = 'open', received_first, received_last, bare_before, is_compact
            FROM tapline.segment WHERE segment = $1
            """, [.int32(Int32(number))], format: .binary)
        var segment = Segment(
            number: number, isOpen: row.bool(0, 0) ?? true, first: row.timestamp(0, 1),
            last: row.timestamp(0, 2), bareBefore: row.timestamp(0, 3),
            isCompact: row.bool(0, 4) ?? false)
        guard !segment.isOpen, segment.first == nil else { return segment }
        let times = try connection.statement(
            """
            UPDATE tapline.segment SET received_first = t.first, received_last = t.last
            FROM (SELECT min(received_at) AS first, max(received_at) AS last
                FROM tapline.event_\(number)) t
            WHERE segment = $1 RETURNING received_first, received_last
            """, [.int32(Int32(number))], format: .binary)
        segment.first = times.timestamp(0, 0)
        segment.last = times.timestamp(0, 1)
        return segment
    }

    /// - Returns: How many events lost their content.
    private static func empty(
        _ connection: borrowing PostgresConnection, _ segment: Segment, _ horizon: Int64
    ) throws(LoadError) -> Int64 {
        if !segment.isOpen {
            guard let first = segment.first, let last = segment.last, first < horizon else {
                return 0
            }
            if let bare = segment.bareBefore, bare > min(last, horizon - 1) { return 0 }
        }
        do throws(LoadError) {
            _ = try connection.statement("BEGIN")
            let events = try Removal.anonymise(
                connection, segment: segment.number, which: "e.received_at < $1",
                [.timestamp(horizon)])
            if !segment.isOpen {
                _ = try connection.statement(
                    "UPDATE tapline.segment SET bare_before = $2 WHERE segment = $1",
                    [.int32(Int32(segment.number)), .timestamp(horizon)])
            }
            _ = try connection.statement("COMMIT")
            return events
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }

    /// Gives back the space of what was removed. Whoever reads the segment meanwhile waits: loaders and
    /// reports, so this does not wait long for them either.
    ///
    /// - Returns: Whether it is done.
    private static func compact(
        _ connection: borrowing PostgresConnection, _ number: Int, _ outcome: inout Outcome
    ) throws(LoadError) -> Bool {
        // What an older transaction may see would be written anew, too.
        if !outcome.isHeld { outcome.isHeld = try !Vacuum.waitForOlder(connection) }
        guard !outcome.isHeld else {
            outcome.busy.append(number)
            return false
        }
        let before = try file(of: number, connection)
        _ = try connection.statement("SET lock_timeout = '1s'")
        do throws(LoadError) {
            _ = try connection.statement("VACUUM (FULL) tapline.event_\(number)")
        } catch .postgres(.refused(let report)) where report.sqlstate == "55P03" {
            outcome.busy.append(number)
            _ = try connection.statement("SET lock_timeout = 0")
            return false
        }
        _ = try connection.statement("SET lock_timeout = 0")
        let after = try file(of: number, connection)
        // PostgreSQL only warns whoever does not own the table.
        guard after.node != before.node else {
            outcome.notOwned.append(number)
            return false
        }
        _ = try connection.statement(
            "UPDATE tapline.segment SET is_compact = true WHERE segment = $1",
            [.int32(Int32(number))])
        outcome.compacted += 1
        outcome.bytes += before.bytes - after.bytes
        return true
    }

    /// The file of a segment's table, and the bytes that it takes with its index.
    private static func file(
        of number: Int, _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> (node: Int64, bytes: Int64) {
        let table = "'tapline.event_\(number)'"
        let row = try connection.statement(
            "SELECT pg_relation_filenode(\(table))::bigint, pg_total_relation_size(\(table))")
        return (row.int64(0, 0) ?? 0, row.int64(0, 1) ?? 0)
    }
}
