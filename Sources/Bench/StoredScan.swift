import Client
import Event
import JSONLines
import Platform
import Postgres

/// Reads every stored event of a run and holds it against the one that the plan gives.
struct StoredScan {
    let maker: EventMaker
    var states: EventStates
    /// Rows of ids of the run that it never sent, and the first few of them.
    var unknownCount = 0
    var unknown: [String] = []
    /// The first few altered events, with the columns.
    var altered: [String] = []
    /// Why events are dead letters: reasons with counts.
    var deadLetterReasons: [String] = []

    /// How many of each kind are named.
    static let namesMax = 20

    init(_ log: AckLogContent, app: String) {
        maker = EventMaker(log.plan, app: app)
        states = EventStates(log)
    }

    /// Reads the tables, row by row, in one pass each.
    mutating func read(_ connection: borrowing PostgresConnection) throws(PostgresError) {
        let prefix = maker.plan.prefix
        var expected = ByteBuffer(capacity: 1024)
        let columns = BenchRow.columns.joined(separator: ", ")
        _ = try connection.copyOut(
            """
            COPY (SELECT \(columns) FROM tapline.event
                WHERE starts_with(message_uid, '\(prefix)') OR starts_with(event_uid, '\(prefix)')
                    OR starts_with(device_id, '\(prefix)'))
            TO STDOUT (FORMAT binary)
            """
        ) { row throws(PostgresError) in take(row, &expected) }
        try readAside(connection, "conflict", "'kept as a conflict'", .conflict)
        deadLetterReasons = try readAside(
            connection, "dead_letter", "sqlstate || ' ' || reason", .deadLetter)
    }

    private mutating func take(_ row: borrowing CopyRow, _ expected: inout ByteBuffer) {
        let type = row.int64(BenchRow.type).flatMap { EventType(rawValue: Int16($0)) }
        guard let type,
            let number = maker.number(
                messageUID: row.field(BenchRow.messageUID), eventUID: row.field(BenchRow.eventUID),
                type: type, typeRaw: row.field(BenchRow.typeRaw)),
            states[number].contains(.issued)
        else {
            unknownCount += 1
            if unknown.count < Self.namesMax { unknown.append(Self.name(row)) }
            return
        }
        if states[number].contains(.stored) { states[number].insert(.doubled) }
        states[number].insert(.stored)
        expected.truncate(to: 0)
        maker.appendRow(maker.event(number), to: &expected)
        let count = row.bytes.byteCount
        if count >= 2 + expected.count,
            row.bytes.extracting(2..<2 + expected.count).isEqual(to: expected.rawSpan)
        {
            return
        }
        let columns = Self.differing(row, expected.rawSpan)
        guard !columns.isEmpty else { return }
        states[number].insert(.altered)
        if altered.count < Self.namesMax {
            altered.append(maker.name(number) + ": " + columns.joined(separator: ", "))
        }
    }

    /// The columns of a row that are not as expected; properties are compared as JSON.
    private static func differing(_ row: borrowing CopyRow, _ expected: RawSpan) -> [String] {
        var columns: [String] = []
        var index = 0
        for column in 0..<BenchRow.key {
            let length = length(in: expected, at: index)
            let start = index + 4
            index = start + max(length, 0)
            let wanted = length < 0 ? nil : (start..<index).map { expected.byte(at: $0) }
            let found = row.array(column)
            if found == wanted { continue }
            if column == BenchRow.properties, let wanted, let found,
                let value = JSONValue.parse(found), value == JSONValue.parse(wanted)
            {
                continue
            }
            columns.append(BenchRow.names[column])
        }
        return columns
    }

    private static func length(in row: RawSpan, at start: Int) -> Int {
        var value: UInt32 = 0
        for index in start..<start + 4 { value = value << 8 | UInt32(row.byte(at: index)) }
        return Int(Int32(bitPattern: value))
    }

    /// What a row without a number is called: its ids and its identity.
    private static func name(_ row: borrowing CopyRow) -> String {
        var parts: [String] = []
        let ids = [(BenchRow.messageUID, "message_uid"), (BenchRow.eventUID, "event_uid")]
        for (column, name) in ids {
            if let text = row.array(column) {
                parts.append("\(name) \(String(decoding: text, as: UTF8.self))")
            }
        }
        let key = Hex.encode(row.array(BenchRow.key) ?? [])
        return (parts + ["key \(key)"]).joined(separator: ", ")
    }

    /// Marks the events of a table that keeps them as JSON.
    ///
    /// - Returns: Each reason with its count, the commonest first.
    @discardableResult
    private mutating func readAside(
        _ connection: borrowing PostgresConnection, _ table: String, _ reason: String,
        _ mark: EventStates.Mark
    ) throws(PostgresError) -> [String] {
        let result = try connection.execute(
            """
            SELECT body::jsonb->>'message_uid', body::jsonb->>'event_uid', body::jsonb->>'type',
                \(reason)
            FROM tapline.\(table) WHERE strpos(body, '"\(maker.plan.prefix)') > 0
            """)
        var reasons: [String: Int] = [:]
        for row in 0..<result.rows {
            let word = result.array(row, 2) ?? []
            let type = unsafe EventType(word: word.span.bytes)
            reasons[result.string(row, 3) ?? "", default: 0] += 1
            let message = result.isNull(row, 0) ? nil : result.bytes(row, 0)
            let event = result.isNull(row, 1) ? nil : result.bytes(row, 1)
            if let number = unsafe maker.number(
                messageUID: message, eventUID: event, type: type, typeRaw: word.span.bytes)
            {
                states[number].insert(mark)
            }
        }
        return reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.value) × \($0.key)" }
    }
}

extension EventMaker {
    /// What an event is called in messages: number, type and the ids that find it in the tables.
    package func name(_ number: Int) -> String {
        let event = event(number)
        var text = "event \(number), \(event.word)"
        if let message = event.message { text += ", message_uid \(plan.prefix)m\(message)" }
        if event.hasEventUID { text += ", event_uid \(plan.prefix)e\(number)" }
        return text
    }
}
