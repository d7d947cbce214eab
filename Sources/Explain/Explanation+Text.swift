import Event
import Platform

/// An explanation for people, in 80 columns.
extension Explanation {
    private static let columns = 80

    /// The text, each line ended.
    package var text: String {
        var lines: [String] = []
        if events.isEmpty {
            lines.append("nothing is known of \(uid)")
            lines += Self.wrapped(
                "It never came, or its line was rejected: of these only a count is kept, and the "
                    + "answer to the sender named the reason.")
        }
        for event in events { lines += event.lines + [""] }
        for unit in units { lines += unit.lines + [""] }
        for note in notes { lines += Self.wrapped("note: \(note)") }
        while lines.last == "" { lines.removeLast() }
        return lines.map { $0 + "\n" }.joined()
    }

    /// A name and its value, which goes on below itself.
    static func field(_ name: String, _ value: String) -> [String] {
        let indent = 15
        let rows = wrapped(value, columns: columns - indent)
        return rows.enumerated().map { index, row in
            let head = index == 0 ? "  \(name)" : ""
            return head + String(repeating: " ", count: indent - head.count) + row
        }
    }

    /// A text in rows, broken at spaces where there are any.
    static func wrapped(_ text: String, columns: Int = columns) -> [String] {
        var rest = text.unicodeScalars.map { scalar -> Character in
            scalar.properties.generalCategory == .control ? " " : Character(scalar)
        }[...]
        var rows: [String] = []
        while rest.count > columns {
            let row = rest.prefix(columns + 1)
            // Not where it would leave most of the row empty.
            let space = row.lastIndex(of: " ").flatMap {
                $0 > row.startIndex + columns / 2 ? $0 : nil
            }
            let end = space ?? row.index(before: row.endIndex)
            rows.append(String(rest[..<end]))
            rest = rest[end...].drop { space != nil && $0 == " " }
        }
        return rows + [String(rest)]
    }

    static func time(_ time: Int64) -> String { Clock.rfc3339(time, fractionDigits: 6) }
}

extension EventStory {
    fileprivate var lines: [String] {
        typealias Text = Explanation
        var lines = ["event \(row.text(.typeRaw) ?? "\(row.type.word)") of app \(app): \(summary)"]
        lines += Text.field("line", String(decoding: row.json(), as: UTF8.self))
        lines += Text.field("identity", row.key.uuid)
        lines += Text.field(
            "happened", "\(Text.time(row.eventTime)), by the rule \"\(row.timeRule)\"")
        lines += Text.field("received", Text.time(row.receivedAt))
        for arrival in arrivals {
            let times = arrival.times > 1 ? ", it was \(arrival.times) of them" : ""
            let rejected = arrival.rejected > 0 ? ", \(arrival.rejected) rejected" : ""
            lines += Text.field(
                "request",
                "\(Text.time(arrival.receivedAt)), \(arrival.lines) lines\(times)\(rejected); "
                    + "spool \(arrival.spool), record that ends at \(arrival.mark), "
                    + (arrival.isLoaded ? "loaded" : "waits to be loaded"))
        }
        lines += Text.field("verdict", verdict)
        if let stored {
            let from = stored.spool.map { "loaded from spool \($0)" } ?? "a replayed dead letter"
            let at = stored.storedAt.map { ", committed \(Text.time($0))" } ?? ""
            lines += Text.field(
                "batch", "\(stored.batch)\(at); transaction \(stored.transaction), \(from)")
            lines += Text.field(
                "row",
                "tapline.event_\(stored.segment) (\(stored.segmentState)), ctid \(stored.place), "
                    + "unit \(row.unit.uuid)")
        }
        for conflict in conflicts {
            lines += Text.field(
                "conflict",
                "came \(conflict.times) times, first \(Text.time(conflict.receivedAt)), and is not "
                    + "counted: \(conflict.line)")
        }
        for letter in deadLetters {
            lines += Text.field(
                "dead letter",
                "\(letter.id), refused \(Text.time(letter.refusedAt)): \(letter.sqlstate) "
                    + letter.reason)
        }
        return lines
    }

    private var summary: String {
        switch outcome {
        case .stored: "stored"
        case .spooled: "waits in the spool"
        case .deadLetter: "dead letter"
        case .conflict: "only a conflict of it is kept"
        case .missing: "not in the database"
        }
    }

    private var verdict: String {
        var parts: [String] = []
        if stored != nil { parts.append("stored once") }
        let conflicting = conflicts.reduce(0) { $0 + $1.times }
        if conflicting > 0 { parts.append("conflict \(conflicting) times") }
        if !deadLetters.isEmpty { parts.append("dead letter \(deadLetters.count) times") }
        let loaded = arrivals.reduce(0) { $0 + ($1.isLoaded ? $1.times : 0) }
        let waiting = arrivals.reduce(0) { $0 + ($1.isLoaded ? 0 : $1.times) }
        if waiting > 0 { parts.append("none yet for \(waiting) in the spool") }
        if outcome == .missing {
            parts.append("loaded, but there is no row: removed, or a database that was restored")
        }
        // A duplicate leaves no row, but as long as the record is kept it is seen that it came.
        if loaded > 1 { parts.append("came \(loaded) times in records that are kept") }
        return parts.joined(separator: "; ")
    }
}

extension UnitStory {
    fileprivate var lines: [String] {
        typealias Text = Explanation
        let device = deviceID.map { "on device \($0)" } ?? "without a device"
        var lines = Text.wrapped("unit \(unit) of app \(app)")
        lines += Text.field("message", "\(messageUID ?? "?") \(device)")
        lines += Text.field("campaign", campaign ?? "(unattributed)")
        lines += Text.field("first seen", Text.time(firstAt))
        lines += Text.field("states", stateWords.joined(separator: ", "))
        if !dimensions.isEmpty {
            lines += Text.field(
                "dimensions", dimensions.map { "\($0.name) \($0.value)" }.joined(separator: ", "))
        }
        let counted = counts.compactMap { name, value -> String? in
            guard let value else { return "\(name) n/a" }
            return value == 0 ? nil : value == 1 ? name : "\(name) \(value)"
        }
        lines += Text.field(
            "counts in", counted.isEmpty ? "nothing" : counted.joined(separator: ", "))
        if !flags.isEmpty { lines += Text.field("flags", flags.joined(separator: ", ")) }
        lines += Text.field("cell", cell)
        return lines
    }

    private var cell: String {
        guard !isSpecial else { return "none: each report computes this unit from its events" }
        let units = unitsOfCell ?? 0
        return "campaign \(campaign ?? "(unattributed)"), quarter of an hour from "
            + "\(Clock.rfc3339(quarterAt, fractionDigits: 0)), states \(states), with the dimensions "
            + "above: \(units) unit\(units == 1 ? "" : "s")"
    }
}

extension Identity {
    /// The text of a UUID.
    var uuid: String { uuidText(high, low) }
}

extension Unit {
    /// The text of a UUID.
    var uuid: String { uuidText(message, device) }
}

private func uuidText(_ high: UInt64, _ low: UInt64) -> String {
    let digits = [high, low].map { half in
        let text = String(half, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }.joined()
    var rest = digits[...]
    return [8, 4, 4, 4, 12].map { count in
        defer { rest = rest.dropFirst(count) }
        return String(rest.prefix(count))
    }.joined(separator: "-")
}
