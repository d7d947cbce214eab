import Event
import Ingest
import JSONLines
import Load
import Postgres
import Spool

/// Gathers an ``Explanation``: the tables in one snapshot, then the spool of this machine.
package struct Explainer: ~Copyable {
    /// At most so many events and units are told of.
    static let eventsMax = 1_000

    let uid: String
    let app: String?
    let dataDirectory: String
    private(set) var explanation: Explanation
    private var places: [EventID: Int] = [:]

    private struct EventID: Hashable {
        let app: String
        let key: Identity
    }

    /// - Parameters:
    ///   - uid: A message_uid, an inbox_message_uid or an event_uid.
    ///   - app: Only events of this app.
    ///   - dataDirectory: Where the spool of this machine is, if it has one.
    package init(uid: String, app: String?, dataDirectory: String) {
        // As the daemon folds it.
        self.uid = SpoolID(uid) == nil ? uid : uid.lowercased()
        self.app = app
        self.dataDirectory = dataDirectory
        explanation = Explanation(uid: self.uid)
    }

    /// Looks everywhere.
    ///
    /// - Throws: ``LoadError`` when the database does not answer. A spool that cannot be read is a note.
    package consuming func explain(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> Explanation {
        _ = try connection.statement(
            """
            BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
            SET LOCAL jit = off; SET LOCAL timezone = 'UTC'
            """)
        try readStored(connection)
        try readConflicts(connection)
        try readDeadLetters(connection)
        let own = spoolID()
        let checkpoint = try own.map { id throws(LoadError) in
            try Books.checkpoint(connection, of: id)
        }
        try noteOtherSpools(connection, own)
        explanation.units = try units(connection)
        _ = try connection.statement("COMMIT")
        if let own { readSpool(own, checkpoint ?? nil) }
        explanation.events.sort { $0.row.eventTime < $1.row.eventTime }
        return explanation
    }

    private var spoolDirectory: String { dataDirectory + "/spool" }

    private func isAskedFor(_ row: EventRow) -> Bool {
        guard app == nil || row.text(.app) == app else { return false }
        return [.messageUID, .inboxMessageUID, .eventUID].contains { row.text($0) == uid }
    }

    private func isKnown(_ row: EventRow) -> Bool {
        places[EventID(app: row.text(.app) ?? "", key: row.key)] != nil
    }

    /// Changes the story of an event, which begins with this if there is none.
    private mutating func tell(_ row: EventRow, _ change: (inout EventStory) -> Void) {
        let id = EventID(app: row.text(.app) ?? "", key: row.key)
        if let place = places[id] { return change(&explanation.events[place]) }
        guard explanation.events.count < Self.eventsMax else {
            note("there are more events than the \(Self.eventsMax) that are shown")
            return
        }
        places[id] = explanation.events.count
        var story = EventStory(row)
        change(&story)
        explanation.events.append(story)
    }

    mutating func note(_ text: String) {
        if !explanation.notes.contains(text) { explanation.notes.append(text) }
    }

    // MARK: Stored events

    private mutating func readStored(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) {
        let ranges = try connection.statement(
            """
            SELECT encode(tapline.hash64(app, $1), 'hex') FROM (
                SELECT app FROM tapline.api_key UNION SELECT app FROM tapline.cell_campaign) a
            WHERE $2::text IS NULL OR app = $2
            """, [.text(uid), app.map { .text($0) } ?? .null])
        let messages = (0..<ranges.rows).compactMap { ranges.string($0, 0) }
        if !messages.isEmpty {
            // By index; of those that are found both ways once.
            let ofMessage = MessageRange.sql(messages, "e.unit")
            let ofInbox = MessageRange.inbox(messages, in: try Segments.withInbox(connection))
            for range in [ofMessage, "\(ofInbox) AND NOT \(ofMessage)"] {
                try readStored(
                    connection,
                    where: "\(range) AND (e.message_uid IN ($1, '') OR e.inbox_message_uid = $1)")
            }
        }
        guard explanation.events.isEmpty else {
            return note("it is a message; no event was looked for that has it as event_uid")
        }
        try readStored(
            connection,
            where: "(e.event_uid = $1 OR e.message_uid = $1 OR e.inbox_message_uid = $1)")
    }

    private mutating func readStored(
        _ connection: borrowing PostgresConnection, where condition: String
    ) throws(LoadError) {
        let columns = EventColumn.allCases.map { "e.\($0.name)" }.joined(separator: ", ")
        let rows = try connection.statement(
            """
            SELECT \(columns), e.batch, e.segment::bigint, e.xmin::text, e.ctid::text,
                b.stored_at, b.spool::text, s.state
            FROM tapline.event e
                LEFT JOIN tapline.batch b ON b.batch = e.batch
                LEFT JOIN tapline.segment s ON s.segment = e.segment
            WHERE \(condition) AND ($2::text IS NULL OR e.app = $2)
            ORDER BY e.batch, e.event_time, e.key LIMIT \(Self.eventsMax + 1)
            """, [.text(uid), app.map { .text($0) } ?? .null], format: .binary)
        let first = EventColumn.count
        for row in 0..<rows.rows {
            let spool = rows.string(row, first + 5)
            let stored = EventStory.Stored(
                batch: rows.int64(row, first) ?? 0, storedAt: rows.timestamp(row, first + 4),
                spool: spool == SpoolID.replay.description ? nil : spool,
                segment: rows.int64(row, first + 1) ?? 0,
                segmentState: rows.string(row, first + 6) ?? "gone",
                transaction: rows.string(row, first + 2) ?? "",
                place: rows.string(row, first + 3) ?? "")
            let event = EventRow(rows, row)
            if event.text(.messageUID) == "" {
                note("the content of some events was removed, by erase or retention")
            }
            tell(event) { $0.stored = stored }
        }
    }

    // MARK: What is kept beside them

    /// Rows whose event has the id, or the identity of an event that has: $1 to $3.
    private static let bodies = """
        (strpos(body, $1) > 0 OR key = ANY ($2)) AND ($3::text IS NULL OR app = $3)
        """

    private var bodyParameters: [PostgresValue] {
        var keys: [UInt8] = []
        for event in explanation.events { keys += event.row.key.bytes }
        // In a body a text may be escaped: what is around that is searched, and looked at then.
        let plain = uid.unicodeScalars.allSatisfy { $0 != "\"" && $0 != "\\" && $0.value >= 0x20 }
        return [.text(plain ? uid : ""), .uuidArray(keys), app.map { .text($0) } ?? .null]
    }

    private mutating func readConflicts(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) {
        let rows = try connection.statement(
            """
            SELECT app, body, received_at, times FROM tapline.conflict WHERE \(Self.bodies)
            ORDER BY received_at, content
            """, bodyParameters, format: .binary)
        for row in 0..<rows.rows {
            let (line, receivedAt) = (rows.string(row, 1) ?? "", rows.timestamp(row, 2) ?? 0)
            guard let event = Self.event(line, app: rows.string(row, 0) ?? "", receivedAt),
                isAskedFor(event) || isKnown(event)
            else { continue }
            let conflict = EventStory.Conflict(
                times: rows.int64(row, 3) ?? 0, receivedAt: receivedAt, line: line)
            tell(event) { $0.conflicts.append(conflict) }
        }
    }

    private mutating func readDeadLetters(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) {
        let rows = try connection.statement(
            "SELECT id FROM tapline.dead_letter WHERE \(Self.bodies)", bodyParameters)
        let ids = (0..<rows.rows).compactMap { rows.int64($0, 0) }
        for letter in try DeadLetters.page(connection, after: 0, .ids(ids)) {
            guard let event = Self.event(letter.line, app: letter.app, letter.receivedAt),
                isAskedFor(event) || isKnown(event)
            else { continue }
            tell(event) { $0.deadLetters.append(letter) }
        }
    }

    /// The row that a line gave when it came; nil where this version does not take it.
    private static func event(_ line: String, app: String, _ receivedAt: Int64) -> EventRow? {
        let payload = try? KeptLine.payload(line, app: app, receivedAt: receivedAt).get()
        return payload.flatMap { try? BodyRecord(payload: $0).rows().first }
    }

    // MARK: The spool

    private mutating func noteOtherSpools(
        _ connection: borrowing PostgresConnection, _ own: SpoolID?
    ) throws(LoadError) {
        for spool in try Books.recountSpools(connection, ownSpool: own) {
            note("\(spool.spooled) events wait in spool \(spool.id), which is on another machine")
        }
    }

    /// The spool of this machine; nil when it has none.
    private mutating func spoolID() -> SpoolID? {
        do throws(SpoolError) {
            return try SpoolFiles.identity(directory: spoolDirectory)?.id
        } catch {
            note("the spool of this machine could not be read: \(error)")
            return nil
        }
    }

    private mutating func readSpool(_ own: SpoolID, _ checkpoint: SpoolMark?) {
        let (pattern, spool) = (Array(uid.utf8), "\(own)")
        var found: [(EventRow, EventStory.Arrival)] = []
        do throws(SpoolError) {
            try SpoolFiles.scan(directory: spoolDirectory) { record in
                guard record.payload.contains(bytes: pattern),
                    let body = try? BodyRecord(payload: record.payload),
                    let rows = try? body.rows()
                else { return }
                let arrival = EventStory.Arrival(
                    spool: spool, mark: record.mark, receivedAt: body.receivedAt,
                    lines: body.received, rejected: body.rejected,
                    isLoaded: checkpoint.map { record.mark <= $0 } ?? false)
                for row in rows where isAskedFor(row) { found.append((row, arrival)) }
            }
        } catch {
            note("the spool of this machine could not be read: \(error)")
        }
        for (row, arrival) in found {
            tell(row) { story in
                if story.arrivals.last?.mark == arrival.mark {
                    story.arrivals[story.arrivals.count - 1].times += 1
                } else {
                    story.arrivals.append(arrival)
                }
            }
        }
    }
}
