import Event
import Postgres

/// Removes what events say of devices and persons, wherever it is: `tapline erase`.
///
/// The erasure itself is kept, as hashes. It is written under the lock of the turn, so what is loaded
/// after it knows of it (``LoadSession/eraseLoaded(_:_:_:)``), and what was loaded before it is all
/// there to be found. Each step is a transaction, and each can be repeated.
package enum Erasure {
    /// Whose events.
    package struct Subjects: Sendable {
        package let devices: [String]
        package let persons: [String]
        /// Only those of an app.
        package let app: String?

        package init(devices: [String], persons: [String], app: String?) {
            self.devices = devices
            self.persons = persons
            self.app = app
        }

        /// Three parameters: devices, persons, app.
        fileprivate var parameters: [PostgresValue] {
            [.textArray(devices), .textArray(persons), app.map { .text($0) } ?? .null]
        }
    }

    /// How many rows it was.
    package struct Outcome: Equatable, Sendable {
        package var events: Int64 = 0
        package var conflicts: Int64 = 0
        package var deadLetters: Int64 = 0
        /// Of registered devices: rows of `tapline.device_state`, which are deleted.
        package var deviceStates: Int64 = 0
        /// Devices among them that are marked as test devices; the mark stays.
        package var testDevices: Int64 = 0
        /// Whether a transaction from before was still under way, so that old versions of rows are left in
        /// the files.
        package var isHeld = false
    }

    /// Erases.
    ///
    /// - Parameter progress: Called with how many segments are done, and of how many.
    /// - Throws: ``LoadError``; what was done by then stays done, and doing it again does the rest.
    package static func run(
        _ connection: borrowing PostgresConnection, _ subjects: Subjects,
        progress: (Int, Int) -> Void = { _, _ in }
    ) throws(LoadError) -> Outcome {
        try Removal.begin(connection)
        var outcome = Outcome()
        let batch = try remember(connection, subjects, &outcome)
        var changed: Set<Int> = []
        let segments = try Removal.segments(connection)
        for (index, segment) in segments.enumerated() {
            progress(index, segments.count)
            // Later batches knew of it when they were loaded.
            let events = try Removal.anonymise(
                connection, segment: segment,
                which: """
                    e.batch <= $4 AND (e.device_id = ANY ($1) OR e.person_id = ANY ($2))
                        AND ($3::text IS NULL OR e.app = $3)
                    """, subjects.parameters + [.int64(batch)])
            outcome.events += events
            if events > 0 { changed.insert(segment) }
        }
        let isOfThem = """
            (k.body::json ->> 'device_id' = ANY ($1) OR k.body::json ->> 'person_id' = ANY ($2))
                AND ($3::text IS NULL OR k.app = $3)
            """
        outcome.conflicts = try Removal.delete(
            connection, .conflict, which: isOfThem, subjects.parameters)
        outcome.deadLetters = try Removal.delete(
            connection, .deadLetter,
            which: isOfThem + " AND k.received_at <= (SELECT erased_until FROM tapline.turn)",
            subjects.parameters)
        let marks = try connection.statement(
            """
            SELECT count(*) FROM tapline.test_device
            WHERE device_id = ANY ($1) AND ($2::text IS NULL OR app = $2)
            """, [.textArray(subjects.devices), subjects.app.map { .text($0) } ?? .null])
        outcome.testDevices = marks.int64(0, 0) ?? 0
        outcome.isHeld = try Vacuum.run(connection, changed: changed)
        return outcome
    }

    /// Writes the erasure down, and deletes what was known of the devices up to it.
    ///
    /// - Returns: The last batch that was loaded without knowing of it.
    private static func remember(
        _ connection: borrowing PostgresConnection, _ subjects: Subjects, _ outcome: inout Outcome
    ) throws(LoadError) -> Int64 {
        do throws(LoadError) {
            _ = try connection.statement("BEGIN")
            // First, so that the time below is later than all that is loaded.
            let turn = try connection.statement("SELECT batch FROM tapline.turn FOR UPDATE")
            _ = try connection.statement(
                """
                WITH at AS (SELECT clock_timestamp() AS now), kept AS (
                    INSERT INTO tapline.erasure (subject, app, requested_at)
                    SELECT tapline.subject(kind, id), coalesce($3, ''), at.now
                    FROM at, (
                        SELECT 'device', unnest($1::text[]) UNION SELECT 'person', unnest($2::text[])
                    ) s (kind, id)
                    ON CONFLICT (subject, app) DO UPDATE SET requested_at = excluded.requested_at)
                UPDATE tapline.turn SET erased_until = at.now FROM at
                """, subjects.parameters)
            let states = try connection.statement(
                """
                DELETE FROM tapline.device_state
                WHERE (device_id = ANY ($1) OR person_id = ANY ($2))
                    AND ($3::text IS NULL OR app = $3)
                """, subjects.parameters)
            _ = try connection.statement("COMMIT")
            outcome.deviceStates = Int64(states.affectedRows)
            return turn.int64(0, 0) ?? 0
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }
}

extension LoadSession {
    /// Makes anonymous, before it is committed, what a batch holds of erased devices and persons: lines
    /// that came before the erasure and are loaded after it.
    ///
    /// Of a conflict the time does not matter: it comes again whenever the line is sent again.
    func eraseLoaded(
        _ batch: borrowing LoadBatch, _ verdicts: [StoredVerdict], _ turn: Turn
    ) throws(LoadError) {
        guard let until = turn.erasedUntil else { return }
        let counts = VerdictCounts(verdicts)
        if batch.oldestReceivedAt <= until {
            if counts.stored > 0 {
                // A scan, as the open segment has no index; it ends when all older lines are loaded.
                _ = try Removal.anonymise(
                    connection, segment: turn.segment,
                    which: "e.batch = $1 AND "
                        + Self.isErased(app: "e.app", "e.device_id", "e.person_id", "e.received_at"),
                    [.int64(turn.batch)])
            }
            if counts.deadLettered > 0, !batch.isReplay {
                _ = try Removal.delete(
                    connection, .deadLetter,
                    which: "k.stored_at = $1 AND " + Self.isErased(of: "k", "k.received_at"),
                    [.timestamp(turn.storedAt)])
            }
        }
        if counts.conflict > 0 {
            var keys: [UInt8] = []
            for (row, verdict) in verdicts.enumerated() where verdict == .conflict {
                keys += batch.events[row].key.bytes
            }
            _ = try Removal.delete(
                connection, .conflict,
                which: "k.key = ANY ($1) AND " + Self.isErased(of: "k", "'-infinity'"),
                [.uuidArray(keys)])
        }
    }

    private static func isErased(of row: String, _ receivedAt: String) -> String {
        isErased(
            app: "\(row).app", "\(row).body::json ->> 'device_id'",
            "\(row).body::json ->> 'person_id'", receivedAt)
    }

    /// A condition: whether an erasure is of this app, device and person, and later than this time.
    static func isErased(
        app: String, _ device: String, _ person: String, _ receivedAt: String
    ) -> String {
        """
        EXISTS (SELECT FROM tapline.erasure x
            WHERE x.subject = ANY (ARRAY[
                    tapline.subject('device', \(device)), tapline.subject('person', \(person))])
                AND x.app IN ('', \(app)) AND x.requested_at >= \(receivedAt))
        """
    }
}
