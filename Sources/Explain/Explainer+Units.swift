import Event
import Load
import Platform
import Postgres
import Schema

/// The units of the messages of the events, by the rules of reports.
extension Explainer {
    /// Messages whose units are told of, those that inbox events lead to included.
    private static let messagesMax = 100
    private static let dimensions = [
        ("platform", "app_version"), ("os_version", "locale"), ("country", "provider"),
    ]

    mutating func units(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [UnitStory] {
        let messages = try relatedMessages(connection)
        guard !messages.isEmpty else { return [] }
        let range = MessageRange.sql(messages, "e.unit")
        let events = "(SELECT * FROM tapline.event e WHERE \(range)) e"
        let newest = try connection.statement("SELECT batch FROM tapline.turn").int64(0, 0) ?? 0
        let parameters: [PostgresValue] = [.int64(newest), .null, .null, .null, .null]
        var units: [UnitStory] = []
        for (first, second) in Self.dimensions {
            let statement = Schema.explainedUnits(of: events)
                .filled(["first": "e.\(first)", "second": "e.\(second)"])
            let rows = try connection.statement(statement, parameters, format: .binary)
            if units.isEmpty { units = (0..<rows.rows).map { UnitStory(rows, $0) } }
            for row in units.indices {
                for (name, column) in [(first, 3), (second, 4)] {
                    guard let value = rows.string(row, column) else { continue }
                    units[row].dimensions.append((name, value))
                }
            }
        }
        try readNames(connection, events, &units)
        try readCounts(connection, events, parameters + [.bool(false)], &units)
        for index in units.indices { try readCell(connection, &units[index]) }
        return units
    }

    /// The halves of the events' messages, of those whose events name them as inbox messages, and of
    /// those that they name, and so on.
    private mutating func relatedMessages(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [String] {
        var known: Set<String> = []
        var fresh = Set(
            explanation.events.filter { $0.stored != nil && $0.row.unit.message != 0 }
                .map { Hex.encode($0.row.unit.message.bigEndianBytes) })
        let withInbox = fresh.isEmpty ? [] : try Segments.withInbox(connection)
        while !fresh.isEmpty {
            known.formUnion(fresh)
            guard known.count <= Self.messagesMax else {
                note("there are more messages than the \(Self.messagesMax) that are looked at")
                return known.sorted().prefix(Self.messagesMax).map { $0 }
            }
            let rows = try connection.statement(
                """
                SELECT DISTINCT encode(tapline.unit_message(e.inbox_unit), 'hex')
                FROM tapline.event e
                WHERE \(MessageRange.sql(fresh, "e.unit")) AND e.inbox_unit IS NOT NULL
                UNION
                SELECT DISTINCT encode(tapline.unit_message(e.unit), 'hex')
                FROM tapline.event e
                WHERE \(MessageRange.inbox(fresh, in: withInbox)) AND e.message_uid IS NOT NULL
                """)
            fresh = Set((0..<rows.rows).compactMap { rows.string($0, 0) }).subtracting(known)
        }
        return known.sorted()
    }

    private func readNames(
        _ connection: borrowing PostgresConnection, _ events: String, _ units: inout [UnitStory]
    ) throws(LoadError) {
        let rows = try connection.statement(
            "SELECT DISTINCT ON (e.unit) e.unit::text, e.message_uid, e.device_id FROM \(events)")
        for row in 0..<rows.rows {
            for index in units.indices where units[index].unit == rows.string(row, 0) {
                units[index].messageUID = rows.string(row, 1)
                units[index].deviceID = rows.string(row, 2)
            }
        }
    }

    private func readCounts(
        _ connection: borrowing PostgresConnection, _ events: String,
        _ parameters: [PostgresValue], _ units: inout [UnitStory]
    ) throws(LoadError) {
        let rows = try connection.statement(
            Schema.explainedCounts(of: events), parameters, format: .binary)
        for row in 0..<rows.rows {
            for index in units.indices where units[index].unit == rows.string(row, 0) {
                units[index].flags =
                    rows.string(row, 1)?.split(separator: " ").map(String.init) ?? []
                units[index].counts = Schema.explainedCounts.enumerated().map { place, name in
                    (name, rows.int64(row, 2 + place))
                }
            }
        }
    }

    /// Where it is counted: in a cell, or by itself.
    private func readCell(
        _ connection: borrowing PostgresConnection, _ unit: inout UnitStory
    ) throws(LoadError) {
        let special = try connection.statement(
            "SELECT EXISTS (SELECT FROM tapline.special_unit WHERE unit = $1::text::uuid)",
            [.text(unit.unit)])
        unit.isSpecial = special.bool(0, 0) ?? false
        guard !unit.isSpecial else { return }
        func value(_ name: String) -> PostgresValue {
            unit.dimensions.first { $0.name == name }.map { .text($0.value) } ?? .null
        }
        let names = Self.dimensions.flatMap { [$0.0, $0.1] }
        let conditions = names.enumerated().map { "\($1) IS NOT DISTINCT FROM $\($0 + 5)::text" }
        let condition = """
            app = $1 AND campaign_id IS NOT DISTINCT FROM $2::text AND quarter = $3
                AND states & \(Schema.eventStates) = $4
                AND \(conditions.joined(separator: " AND "))
            """
        let cell = try connection.statement(
            """
            SELECT coalesce(sum(units), 0)::bigint FROM (
                SELECT units FROM tapline.cell WHERE \(condition)
                UNION ALL SELECT units FROM tapline.cell_change WHERE \(condition)) c
            """,
            [
                .text(unit.app), unit.campaign.map { .text($0) } ?? .null,
                .int32(Int32(truncatingIfNeeded: unit.quarter)),
                .int32(Int32(truncatingIfNeeded: unit.states)),
            ] + names.map(value))
        unit.unitsOfCell = cell.int64(0, 0)
    }
}

extension UnitStory {
    /// A row of ``Schema/explainedUnits(of:)``.
    fileprivate init(_ rows: borrowing PostgresResult, _ row: Int) {
        unit = rows.string(row, 0) ?? ""
        app = rows.string(row, 1) ?? ""
        campaign = rows.string(row, 2)
        firstAt = rows.timestamp(row, 5) ?? 0
        states = rows.int64(row, 6) ?? 0
        isTest = rows.bool(row, 7) ?? false
    }
}
