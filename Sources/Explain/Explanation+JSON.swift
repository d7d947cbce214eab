import Event
import Platform

/// An explanation for programs.
extension Explanation {
    /// One JSON object on a line.
    package var json: String {
        JSON.object([
            ("uid", JSON.text(uid)), ("events", JSON.array(events.map(\.json))),
            ("units", JSON.array(units.map(\.json))), ("notes", JSON.array(notes.map(JSON.text))),
        ]) + "\n"
    }
}

/// Pieces of JSON.
private enum JSON {
    static func object(_ members: [(String, String)]) -> String {
        "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
    }
    static func array(_ items: [String]) -> String { "[" + items.joined(separator: ",") + "]" }
    static func text(_ text: String) -> String { JSONString.quoted(text) }
    static func text(_ text: String?) -> String { text.map(JSONString.quoted) ?? "null" }
    static func time(_ time: Int64?) -> String {
        time.map { "\"\(Explanation.time($0))\"" } ?? "null"
    }
}

extension EventStory {
    fileprivate var json: String {
        JSON.object([
            ("app", JSON.text(app)), ("type", JSON.text("\(row.type.word)")),
            ("outcome", JSON.text(outcome.rawValue)), ("identity", JSON.text(row.key.uuid)),
            ("unit", row.unit.message == 0 ? "null" : JSON.text(row.unit.uuid)),
            ("line", String(decoding: row.json(), as: UTF8.self)),
            ("event_time", JSON.time(row.eventTime)), ("time_rule", JSON.text("\(row.timeRule)")),
            ("received_at", JSON.time(row.receivedAt)),
            ("requests", JSON.array(arrivals.map(\.json))), ("stored", stored?.json ?? "null"),
            ("conflicts", JSON.array(conflicts.map(\.json))),
            (
                "dead_letters",
                JSON.array(
                    deadLetters.map { letter in
                        JSON.object([
                            ("id", "\(letter.id)"), ("refused_at", JSON.time(letter.refusedAt)),
                            ("sqlstate", JSON.text(letter.sqlstate)),
                            ("reason", JSON.text(letter.reason)), ("line", letter.line),
                        ])
                    })
            ),
        ])
    }
}

extension EventStory.Arrival {
    fileprivate var json: String {
        JSON.object([
            ("received_at", JSON.time(receivedAt)), ("lines", "\(lines)"),
            ("rejected", "\(rejected)"), ("times", "\(times)"), ("spool", JSON.text(spool)),
            ("segment", "\(mark.segment)"), ("offset", "\(mark.offset)"),
            ("loaded", "\(isLoaded)"),
        ])
    }
}

extension EventStory.Stored {
    fileprivate var json: String {
        JSON.object([
            ("batch", "\(batch)"), ("stored_at", JSON.time(storedAt)), ("spool", JSON.text(spool)),
            ("transaction", JSON.text(transaction)), ("segment", "\(segment)"),
            ("segment_state", JSON.text(segmentState)), ("ctid", JSON.text(place)),
        ])
    }
}

extension EventStory.Conflict {
    fileprivate var json: String {
        JSON.object([
            ("times", "\(times)"), ("received_at", JSON.time(receivedAt)), ("line", line),
        ])
    }
}

extension UnitStory {
    fileprivate var json: String {
        JSON.object([
            ("unit", JSON.text(unit)), ("app", JSON.text(app)),
            ("message_uid", JSON.text(messageUID)), ("device_id", JSON.text(deviceID)),
            ("campaign_id", JSON.text(campaign)), ("first_at", JSON.time(firstAt)),
            ("states", JSON.array(stateWords.map(JSON.text))), ("is_test", "\(isTest)"),
            ("dimensions", JSON.object(dimensions.map { ($0.name, JSON.text($0.value)) })),
            ("counts", JSON.object(counts.map { ($0.name, $0.value.map { "\($0)" } ?? "null") })),
            ("flags", JSON.array(flags.map(JSON.text))), ("special", "\(isSpecial)"),
            (
                "cell",
                isSpecial
                    ? "null"
                    : JSON.object([
                        ("quarter", JSON.time(quarterAt)), ("states", "\(states)"),
                        ("units", "\(unitsOfCell ?? 0)"),
                    ])
            ),
        ])
    }
}
