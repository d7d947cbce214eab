import Event
import JSONLines

/// Why a line is rejected; the raw values are the `code` of the answer and the labels of metrics.
package enum RejectionCode: String, CaseIterable, Sendable {
    case badJSON = "bad_json"
    case invalidUTF8 = "invalid_utf8"
    case lineTooLong = "line_too_long"
    case tooDeep = "too_deep"
    case numberTooLarge = "number_too_large"
    case notAnObject = "not_an_object"
    case missingType = "missing_type"
    case invalidType = "invalid_type"
    case fieldTooLong = "field_too_long"
    case invalidCharacter = "invalid_character"
    case missingMessageUID = "missing_message_uid"
    case noIdentity = "no_identity"
    case missingDeviceID = "missing_device_id"
    case invalidTopics = "invalid_topics"
    case tooManyTopics = "too_many_topics"
    case topicTooLong = "topic_too_long"
}

/// One rejected line: what to tell the client about it. Cheap to make; the texts are made on demand.
package struct Rejection: Error, Equatable, Sendable {
    /// Why.
    package let code: RejectionCode
    /// The field it is about, as the client spelled it; nil when it is about the line.
    package let field: EventField?
    /// A size or an offset in bytes, by the code.
    let actual: Int
    /// The limit that `actual` is over.
    let limit: Int
    /// What came in place of what was expected.
    let kind: JSONKind?

    init(
        _ code: RejectionCode, _ field: EventField? = nil, actual: Int = 0, limit: Int = 0,
        kind: JSONKind? = nil
    ) {
        self.code = code
        self.field = field
        self.actual = actual
        self.limit = limit
        self.kind = kind
    }

    /// The name of the field.
    package var fieldName: String? { isOfTopics ? "topics" : field.map { "\($0.name)" } }

    /// Whether it is about the topics of a device, which are a member of the properties.
    private var isOfTopics: Bool {
        code == .invalidTopics || code == .tooManyTopics || code == .topicTooLong
    }

    /// One line that names the field, what it is and what it may be.
    package var message: String {
        let name = fieldName ?? "type"
        switch code {
        case .badJSON: return "line is not valid JSON at byte \(actual)"
        case .invalidUTF8: return "line is not valid UTF-8 at byte \(actual)"
        case .lineTooLong: return "line is \(actual) bytes, limit is \(limit)"
        case .tooDeep: return "line nests deeper than the limit of \(limit) levels"
        case .numberTooLarge:
            return "a number has more than \(JSONLimits.digitsMax) digits or an exponent beyond"
                + " \(JSONLimits.exponentMax)"
        case .notAnObject: return "line is JSON but not an object"
        case .missingType: return "field \"type\" is missing or empty"
        case .invalidType: return "field \"\(name)\" is \(found), \(expected)"
        case .fieldTooLong: return "field \"\(name)\" is \(actual) bytes, limit is \(limit)"
        case .invalidCharacter where isTypeField:
            return "field \"\(name)\" has a character other than A-Z a-z 0-9 _ . : -"
        case .invalidCharacter:
            return "field \"\(name)\" has a NUL or half a surrogate pair"
        case .missingMessageUID: return "field \"message_uid\" is required for a status update"
        case .noIdentity where field == .occurredAt:
            return "event has neither \"event_uid\" nor \"occurred_at\" to tell it from others"
        case .noIdentity:
            return "event has no \"event_uid\", and neither \"device_id\" nor \"message_uid\""
        case .missingDeviceID: return "field \"device_id\" is required for a change of a device"
        case .invalidTopics: return "field \"topics\" is not an array of texts that are not empty"
        case .tooManyTopics: return "device has \(actual) topics, limit is \(limit)"
        case .topicTooLong: return "a topic is \(actual) characters, limit is \(limit)"
        }
    }

    private var isTypeField: Bool {
        switch field {
        case .type, .event, .status, .kind: true
        default: false
        }
    }

    private var found: String {
        switch kind {
        case .string: "a string"
        case .number: "a number"
        case .object: "an object"
        case .array: "an array"
        case .true, .false: "a boolean"
        case .null, nil: "null"
        }
    }

    private var expected: String {
        switch field {
        case .opensApp, .isTest, .silent: "expected true or false"
        case _ where isTypeField: "expected a string"
        default: "expected a string or an integer"
        }
    }
}

/// What became of one line.
package enum LineVerdict: Equatable, Sendable {
    /// Its row is in the builder.
    case accepted
    /// It is counted as rejected in the builder.
    case rejected(Rejection)
}
