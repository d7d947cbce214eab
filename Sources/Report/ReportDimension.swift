import Event
import Schema

/// What a row of a report stands for, next to its app.
package enum ReportDimension: String, CaseIterable, Sendable {
    case campaign, day, hour, platform
    case appVersion = "app_version"
    case osVersion = "os_version"
    case locale, country, provider, category, action
    case pushGroup = "push_group"
    case topic, type

    /// Whether it is of the unit's first sight, or of an event's time.
    var isTime: Bool { self == .day || self == .hour }

    /// Whether it is of an event in every report, so that a unit may be in several rows.
    var isOfEvents: Bool { self == .type || self == .action }

    /// Its value in a cell `e`: an SQL expression of type text. Campaign and time have places of their own,
    /// and so has what is of events.
    var cellColumn: String {
        switch self {
        case .campaign, .day, .hour, .action, .type: "NULL::text"
        case .category: "e.category_id"
        default: "e.\(rawValue)"
        }
    }

    /// Bits of the states of a unit that is not to be told from its cell: custom events have words of their
    /// own, and an event that is no action may name one.
    var unknownStates: Int {
        switch self {
        case .type: 1 << EventType.custom.rawValue
        case .action: 1 << 17
        default: 0
        }
    }

    /// Its value in an event `e`: an SQL expression of type text, null where the event does not say.
    var column: String {
        switch self {
        case .campaign: "e.campaign_id"
        case .day: Schema.dayKey("e.event_time")
        case .hour: Schema.hourKey("e.event_time")
        case .category: "e.category_id"
        case .action: "e.action_id"
        case .pushGroup:
            // Of the device at that time, where the event does not say; asked only if any has one.
            "coalesce(\(property), CASE WHEN (SELECT EXISTS (SELECT FROM tapline.device_state "
                + "WHERE push_group IS NOT NULL)) THEN (SELECT d.push_group "
                + "FROM tapline.device_at(e.app, e.device_id, e.event_time) d) END)"
        case .topic: property
        case .type:
            "CASE e.type "
                + Self.types.map { "WHEN \($0.rawValue) THEN '\($0.word)' " }.joined()
                + "ELSE e.type_raw END"
        case .platform, .appVersion, .osVersion, .locale, .country, .provider: "e.\(rawValue)"
        }
    }

    /// Its value among the properties of an event.
    private var property: String {
        // Few name one, and only those are parsed.
        "CASE WHEN strpos(e.properties, '\"push_group\"') > 0 OR strpos(e.properties, '\"topic\"') > 0 "
            + "THEN tapline.group_properties(e.properties)::json ->> '\(rawValue)' END"
    }

    /// The types that are not custom, as SQL values: code and word.
    static let typeWords = types.map { "(\($0.rawValue), '\($0.word)')" }.joined(separator: ", ")

    private static let types = EventType.allCases.filter { !$0.isCustom }
}
