import Event
import HTTPServer
import JSONLines
import Platform

/// `POST /json/1.3/METHOD` of the Pushwoosh SDKs: `{"request":{"application","hwid",…}}`.
///
/// Without a key, the application's code has to be an alias. Its events have neither time nor id, but for
/// `postEvent`, so a state of a message counts once.
struct PushwooshCall: DialectCall {
    private enum Method: String {
        case pushStat, messageDeliveryEvent, inboxStatus, postEvent, applicationOpen
        case registerDevice, unregisterDevice, setTags, registerUser
    }
    private let method: Method?
    private let path: String
    private let receivedAt: Int64

    var isOpen: Bool { true }
    var unserved: ServiceRefusal? {
        guard method == nil else { return nil }
        return ServiceRefusal(
            501, "not_served",
            "\(ServiceRefusal.shown(path.utf8)) is not served: it is no call that reports an event or a device"
        )
    }

    init?(_ head: DialectHead) {
        guard head.parts.count == 3, head.parts[0] == "json", head.parts[1] == "1.3" else {
            return nil
        }
        method = Method(rawValue: String(head.parts[2]))
        path = head.path
        receivedAt = head.receivedAt
    }

    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal) {
        guard let request = body.object?["request"]?.object else {
            throw ServiceRefusal(400, "bad_request", "the body has no object \"request\"")
        }
        lines.vendorApp = request["application"]?.text
        switch method {
        case .pushStat: status("clicked", request, &lines)
        case .messageDeliveryEvent: status("received", request, &lines)
        case .inboxStatus: inbox(request, &lines)
        case .postEvent: tracking(request, &lines)
        case .applicationOpen: opening(request, &lines)
        case .registerDevice: device(.register, request, &lines)
        case .unregisterDevice: device(.unregister, request, &lines)
        case .setTags, .registerUser: device(.update, request, &lines)
        case nil: break
        }
    }

    private func status(
        _ type: String, _ request: SourceObject, _ lines: inout DialectLines
    ) {
        // A button that was pressed has an id; whether it opens the app, its category says.
        let button = type == "clicked" ? request["action_id"] : nil
        let opens = request["startApplication"]?.integer
        lines.add([
            "type": .text(button == nil ? type : "action"),
            "message_uid": request["hash"],
            "device_id": request["hwid"],
            "action_id": button,
            "category_id": request["category_id"],
            "opens_app": button == nil ? nil : opens.map { .flag($0 != 0) },
            "platform": Self.platform(request),
            "sdk_version": request["v"],
            "locale": request["language"],
            "person_id": request["userId"],
            "provider": .text("pushwoosh"),
            "properties": request.rest(without: Self.columns),
        ])
    }

    private func inbox(_ request: SourceObject, _ lines: inout DialectLines) {
        let type: String
        switch request["status"]?.integer {
        case 1: type = "inbox_received"
        case 2: type = "inbox_read"
        case 3: type = "inbox_open"
        case 4, 5: type = "inbox_deleted"
        default:
            let shown = request["status"]?.shown ?? "missing"
            return lines.reject("status is \(shown), not 1 to 5")
        }
        lines.add([
            "type": .text(type),
            "message_uid": request["hash"],
            "inbox_message_uid": request["inbox_code"],
            "device_id": request["hwid"],
            "platform": Self.platform(request),
            "sdk_version": request["v"],
            "locale": request["language"],
            "person_id": request["userId"],
            "provider": .text("pushwoosh"),
            "properties": request.rest(without: Self.columns + ["inbox_code", "status"]),
        ])
    }

    /// The attributes alone are properties: they are part of the identity, and the rest of the request may
    /// differ when it is sent again.
    private func tracking(_ request: SourceObject, _ lines: inout DialectLines) {
        guard let name = request["event"]?.text else { return lines.reject("event is missing") }
        let attributes = request["attributes"]
        let word = Self.word(name)
        lines.add([
            "type": .text(word),
            "message_uid": attributes?.object?["msgHash"],
            "device_id": request["hwid"],
            "occurred_at": request["timestampUTC"],
            "platform": Self.platform(request),
            "sdk_version": request["v"],
            "locale": request["language"],
            "person_id": request["userId"],
            "provider": .text("pushwoosh"),
            "properties": attributes,
            "event_name": word == name ? nil : .text(name),
        ])
    }

    /// A name that an app chose, as a type: it may hold anything, and a name such as `open` must not become
    /// a state of a message.
    private static func word(_ name: String) -> String {
        let isType: (UInt8) -> Bool = { byte in
            switch byte {
            case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x3A, 0x5F: true
            default: false
            }
        }
        var bytes = name.utf8.map { isType($0) ? $0 : UInt8(0x5F) }
        if EventType(word: bytes.rawSpan).isStatus { bytes = Array("event:".utf8) + bytes }
        return String(decoding: bytes.prefix(EventDecoder.typeBytesMax), as: UTF8.self)
    }

    /// One in an hour: without properties, as two of an hour would differ in them.
    private func opening(_ request: SourceObject, _ lines: inout DialectLines) {
        guard request["hwid"]?.text != nil else { return lines.reject("hwid is missing") }
        lines.add([
            "type": .text("launch"),
            "event_uid": .text("hour:\(receivedAt / 3_600_000_000)"),
            "device_id": request["hwid"],
            "platform": Self.platform(request),
            "sdk_version": request["v"],
            "locale": request["language"],
            "person_id": request["userId"],
            "provider": .text("pushwoosh"),
        ])
    }

    private func device(
        _ change: DeviceChange, _ request: SourceObject, _ lines: inout DialectLines
    ) {
        lines.add(
            change, of: request["hwid"], receivedAt: receivedAt,
            [
                "platform": Self.platform(request), "app_version": request["app_version"],
                "os_version": request["os_version"], "sdk_version": request["v"],
                "locale": request["language"], "country": request["country"],
                "person_id": request["userId"], "provider": .text("pushwoosh"),
            ],
            ["time_zone": request["timezone"].map { .text($0.text ?? "") }],
            rest: request.rest(
                without: Self.columns + ["app_version", "os_version", "country", "timezone"]))
    }

    /// What has a column of its own.
    private static let columns: [StaticString] = [
        "application", "hash", "hwid", "action_id", "category_id", "startApplication",
        "device_type", "v", "language", "userId",
    ]

    private static func platform(_ request: SourceObject) -> SourceJSON? {
        guard let type = request["device_type"] else { return nil }
        return switch type.integer {
        case 1: .text("ios")
        case 3: .text("android")
        case 7: .text("macos")
        case 8: .text("windows")
        case 9: .text("amazon")
        case 10: .text("safari")
        case 11: .text("chrome")
        case 12: .text("firefox")
        case 17: .text("huawei")
        default: type
        }
    }

    func answer(_ outcome: DialectOutcome) -> Response {
        // 210 is its word for an argument that is wrong, which no repetition mends.
        if let message = outcome.message {
            return .json(status: 200, Self.json(210, message, response: "null"))
        }
        let response =
            method == .registerDevice ? "{\"iosCategories\":\(outcome.categories)}" : "null"
        return .json(status: 200, Self.json(200, "OK", response: response))
    }

    func answer(refused refusal: ServiceRefusal) -> Response {
        var response = refusal.response
        response.body = Array(
            Self.json(
                refusal.status, refusal.message, response: "null", retryAfter: refusal.retryAfter
            ).utf8)
        return response
    }

    private static func json(
        _ code: Int, _ message: String, response: String, retryAfter: Int? = nil
    ) -> String {
        let wait = retryAfter.map { ",\"retry_after\":\($0)" } ?? ""
        return "{\"status_code\":\(code),\"status_message\":\(JSONString.quoted(message)),"
            + "\"response\":\(response)\(wait)}"
    }
}
