import Event
import Ingest
import JSONLines
import Platform

/// Makes events of the rows of one file.
struct RowMapper {
    /// The column that a file of refused rows has before the others: ``Rejects``.
    static let reasonColumn = "tapline_reason"

    private let map: ColumnMap
    private let columns: [String]
    private let places: [String: Int]
    /// Columns, by name, that go into the properties.
    private let kept: [(name: String, place: Int)]
    /// Columns, by name, that tell one row from another.
    private let identifying: [(name: String, place: Int)]
    /// What the column that names the app has in the first row.
    private var app: String?

    /// - Parameters:
    ///   - columns: Their names, in the order of the file.
    /// - Throws: What of the map the file does not have.
    init(_ map: ColumnMap, columns: [String]) throws(RowError) {
        self.map = map
        self.columns = columns
        var places: [String: Int] = [:]
        for (place, name) in columns.enumerated() {
            guard places.updateValue(place, forKey: name) == nil else {
                throw RowError("has two columns \"\(name)\"")
            }
        }
        self.places = places
        var used: Set<String> = []
        for (column, isOptional) in map.named {
            used.insert(column)
            guard isOptional || places[column] != nil else {
                let there = columns.map { "\"\($0)\"" }.joined(separator: ", ")
                throw RowError("has no column \"\(column)\", which the map needs; it has \(there)")
            }
        }
        let sorted = places.sorted { $0.key < $1.key }.filter { $0.key != Self.reasonColumn }
            .map { (name: $0.key, place: $0.value) }
        switch map.kept {
        case .allBut(let dropped):
            kept = sorted.filter { !used.contains($0.name) && !dropped.contains($0.name) }
            identifying = sorted.filter { !dropped.contains($0.name) }
        case .only(let names):
            kept = sorted.filter { names.contains($0.name) }
            identifying = sorted.filter { names.contains($0.name) || used.contains($0.name) }
        }
    }

    /// The events of a row, each a line of NDJSON without its end; nil for a row that is not asked for.
    ///
    /// - Parameter fields: As many as there are columns.
    mutating func lines(of fields: [String]) throws(RowError) -> [String]? {
        for (column, value) in map.only where self.value(column, fields) != value { return nil }
        try checkApp(fields)
        var lines: [String] = []
        for event in map.events {
            guard holds(event.condition, fields) else { continue }
            lines.append(try line(of: event, fields))
        }
        guard !lines.isEmpty else { throw RowError("makes no event by this map") }
        return lines
    }

    private mutating func checkApp(_ fields: [String]) throws(RowError) {
        guard let column = map.app, !map.only.contains(where: { $0.column == column }),
            case let value = value(column, fields), !value.isEmpty
        else { return }
        guard let app else {
            app = value
            return
        }
        guard app == value else {
            throw RowError(
                "\(column) is \"\(value)\", and \"\(app)\" in the first row: a key is of one app, "
                    + "choose one with --only \(column)=\(app)")
        }
    }

    /// Empty where there is none.
    private func value(_ column: String, _ fields: [String]) -> String {
        guard let place = places[column], !map.nulls.contains(fields[place]) else { return "" }
        return fields[place]
    }

    private func holds(_ condition: ColumnMap.Condition?, _ fields: [String]) -> Bool {
        condition.map { $0.holds(value($0.column, fields)) } ?? true
    }

    /// The value of an assignment; empty where one of its columns is.
    private func value(_ assignment: ColumnMap.Assignment, _ fields: [String]) -> String {
        guard holds(assignment.condition, fields) else { return "" }
        var result = ""
        for term in assignment.terms {
            switch term {
            case .text(let text): result += text
            case .row: result += identity(of: fields)
            case .column(let name, _):
                let value = value(name, fields)
                if value.isEmpty { return "" }
                result += value
            }
        }
        return result
    }

    /// The first 128 bits of SHA-256 over the names and values of all columns that are not dropped and
    /// not empty, by name, each as its length, a colon and its bytes.
    private func identity(of fields: [String]) -> String {
        var bytes: [UInt8] = []
        for (name, _) in identifying {
            let value = value(name, fields)
            if value.isEmpty { continue }
            for text in [name, value] {
                bytes += "\(text.utf8.count):".utf8
                bytes += text.utf8
            }
        }
        return "row-" + Hex.encode(sha256(bytes).prefix(16))
    }

    private func line(of event: ColumnMap.Event, _ fields: [String]) throws(RowError) -> String {
        var values: [EventField: String] = [:]
        var properties: [(name: String, value: String)] = []
        for assignment in event.assignments {
            switch assignment.field {
            case .event(let field):
                guard values[field] == nil else { continue }
                let value = value(assignment, fields)
                if !value.isEmpty { values[field] = value }
            case .property(let name):
                guard !properties.contains(where: { $0.name == name }) else { continue }
                let value = value(assignment, fields)
                if !value.isEmpty { properties.append((name, value)) }
            }
        }
        for (name, place) in kept
        where !fields[place].isEmpty && !map.nulls.contains(fields[place])
            && !properties.contains(where: { $0.name == name })
        {
            properties.append((name, fields[place]))
        }
        // A tracking event with neither id nor time is told from others by its row.
        let word = Array((values[.type] ?? "").utf8)
        if values[.eventUID] == nil, values[.occurredAt] == nil,
            !EventType(word: word.rawSpan).isStatus
        {
            values[.eventUID] = identity(of: fields)
        }
        var members: [String] = []
        for field in EventField.allCases {
            guard let value = values[field] else { continue }
            members.append("\"\(field.name)\":" + (try json(value, of: field)))
        }
        if !properties.isEmpty {
            let list = properties.map {
                JSONString.quoted($0.name) + ":" + JSONString.quoted($0.value)
            }
            members.append("\"properties\":{\(list.joined(separator: ","))}")
        }
        return "{\(members.joined(separator: ","))}"
    }

    private func json(_ value: String, of field: EventField) throws(RowError) -> String {
        switch field {
        case .occurredAt:
            // The server would take its own time in place of one that it cannot read.
            guard let time = RowTime.normalised(value, zone: map.zone) else {
                let hint =
                    map.zone == nil && RowTime.normalised(value, zone: "Z") != nil
                    ? "a time without an offset; say it in the map: zone = +00:00" : "not a time"
                throw RowError("occurred_at is \"\(value)\", \(hint)")
            }
            return JSONString.quoted(time)
        case .opensApp, .isTest, .silent:
            switch value.lowercased() {
            case "true", "t", "yes", "y", "1": return "true"
            case "false", "f", "no", "n", "0": return "false"
            default:
                throw RowError("\(field.name) is \"\(value)\", expected true or false")
            }
        default: return JSONString.quoted(value)
        }
    }
}
