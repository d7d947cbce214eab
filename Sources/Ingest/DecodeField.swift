import JSONLines

/// The top-level fields that an event has a place for; any other goes into its properties.
///
/// The spellings of one field stand together, the canonical one first.
package enum EventField: Int, CaseIterable, Sendable {
    case type, event, status, kind
    case messageUID, deviceID
    case eventUID, uuid, eventID, insertID
    case campaignID, activityType, activityUID
    case occurredAt, timestamp, time
    case actionID, categoryID, inboxMessageUID, collapseKey
    case sentAt, opensApp, isTest, silent
    case platform, appVersion, osVersion, sdkVersion, locale, country, provider, personID
    case properties, attributes, props

    /// How many there are.
    static let count = 35

    /// The field of a raw value that there is.
    // The initialiser compares with each of them.
    @inline(__always)
    static func of(rawValue: Int) -> EventField {
        precondition(rawValue >= 0 && rawValue < count)
        // SAFETY: a case is its place in one byte, and so is the raw value.
        return unsafe unsafeBitCast(UInt8(truncatingIfNeeded: rawValue), to: EventField.self)
    }

    /// The name as it stands in a line.
    package var name: StaticString {
        switch self {
        case .type: "type"
        case .event: "event"
        case .status: "status"
        case .kind: "kind"
        case .messageUID: "message_uid"
        case .deviceID: "device_id"
        case .eventUID: "event_uid"
        case .uuid: "uuid"
        case .eventID: "event_id"
        case .insertID: "insert_id"
        case .campaignID: "campaign_id"
        case .activityType: "activity_type"
        case .activityUID: "activity_uid"
        case .occurredAt: "occurred_at"
        case .timestamp: "timestamp"
        case .time: "time"
        case .actionID: "action_id"
        case .categoryID: "category_id"
        case .inboxMessageUID: "inbox_message_uid"
        case .collapseKey: "collapse_key"
        case .sentAt: "sent_at"
        case .opensApp: "opens_app"
        case .isTest: "is_test"
        case .silent: "silent"
        case .platform: "platform"
        case .appVersion: "app_version"
        case .osVersion: "os_version"
        case .sdkVersion: "sdk_version"
        case .locale: "locale"
        case .country: "country"
        case .provider: "provider"
        case .personID: "person_id"
        case .properties: "properties"
        case .attributes: "attributes"
        case .props: "props"
        }
    }

    /// The only field that a key of this length and beginning can name; `key` has four bytes or more.
    @inline(__always)
    fileprivate static func candidate(_ key: RawSpan) -> EventField? {
        let first = key.byte(at: 0)
        switch (key.byteCount, first) {
        case (4, 0x74): return key.byte(at: 1) == 0x79 ? .type : .time
        case (4, 0x6B): return .kind
        case (4, 0x75): return .uuid
        case (5, 0x65): return .event
        case (5, 0x70): return .props
        case (6, 0x73): return key.byte(at: 1) == 0x74 ? .status : .silent
        case (6, 0x6C): return .locale
        case (7, 0x73): return .sentAt
        case (7, 0x69): return .isTest
        case (7, 0x63): return .country
        case (8, 0x65): return .eventID
        case (8, 0x70): return key.byte(at: 1) == 0x6C ? .platform : .provider
        case (9, _): return ofNineBytes(first)
        case (10, 0x70): return .properties
        case (10, 0x61): return .attributes
        case (10, 0x6F): return .osVersion
        case (11, 0x6D): return .messageUID
        case (11, 0x63): return key.byte(at: 2) == 0x6D ? .campaignID : .categoryID
        case (11, 0x6F): return .occurredAt
        case (11, 0x61): return .appVersion
        case (11, 0x73): return .sdkVersion
        case (12, 0x61): return .activityUID
        case (12, 0x63): return .collapseKey
        case (13, 0x61): return .activityType
        case (17, 0x69): return .inboxMessageUID
        default: return nil
        }
    }

    private static func ofNineBytes(_ first: UInt8) -> EventField? {
        switch first {
        case 0x64: .deviceID
        case 0x65: .eventUID
        case 0x61: .actionID
        case 0x69: .insertID
        case 0x6F: .opensApp
        case 0x70: .personID
        case 0x74: .timestamp
        default: nil
        }
    }
}

/// Finds the field that a key names.
struct FieldNames {
    /// The first and the last eight bytes of each name; of a name under eight bytes twice four.
    private let words: [(UInt64, UInt64)]

    init() {
        words = EventField.allCases.map { field in
            let name = Array("\(field.name)".utf8)
            return Self.words(of: name.rawSpan)
        }
    }

    @inline(__always)
    private static func words(of name: RawSpan) -> (UInt64, UInt64) {
        let count = name.byteCount
        return count < 8
            ? (UInt64(name.halfWord(at: 0)), UInt64(name.halfWord(at: count &- 4)))
            : (name.word(at: 0), name.word(at: count &- 8))
    }

    /// The field of that name.
    @inline(__always)
    func field(_ key: RawSpan) -> EventField? {
        // The longest name is 17 bytes; of it the words leave out one.
        guard key.byteCount >= 4, key.byteCount <= 17, let field = EventField.candidate(key) else {
            return nil
        }
        let found = Self.words(of: key)
        guard found == words[field.rawValue] else { return nil }
        return key.byteCount < 17 || key.byte(at: 8) == 0x73 ? field : nil
    }
}
