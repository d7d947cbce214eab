import Event
import HTTPServer
import JSONLines
import Platform

/// The calls of the Vibes SDKs below `/mobile_apps/{app}/devices`.
///
/// Events are `POST …/{device}/events` with `{"events":[{"uuid","type","timestamp","attributes":{…}}]}`, one
/// type a body. Anything but a 2xx with an object makes the iOS queue send the same batch again before all
/// others, so one bad event is never an error; and Android gives a batch up at 503, so whatever may be tried
/// again is 500. Devices come by `POST …/devices`, which gives them an id and a token, and then `PUT`, `PATCH`
/// and `DELETE …/{device}`, `…/push_registration` and `…/assign`.
struct VibesCall: DialectCall {
    private enum Kind { case events, register, update, unregister, push, noPush, assign, none }
    private let kind: Kind
    let methods: [String]
    let unserved: ServiceRefusal?
    let vendorApp: String?
    let device: String?
    /// The id of a device that registers.
    private let newDevice: String?
    private let type: SourceJSON?
    private let userAgent: String
    private let receivedAt: Int64

    var isOpen: Bool { kind == .register }
    var deviceOfToken: String? { kind == .register || kind == .update ? newDevice ?? device : nil }

    init?(_ head: DialectHead) {
        let parts = head.parts
        guard parts.first == "mobile_apps" else { return nil }
        userAgent = head.header("User-Agent") ?? ""
        receivedAt = head.receivedAt
        type = head.header("X-Event-Type").map {
            .text(String($0.prefix(EventDecoder.typeBytesMax)))
        }
        vendorApp = parts.count > 1 ? RequestTarget.decodedPath(parts[1]) ?? "" : nil
        let calls = parts.count > 2 && parts[2] == "devices" ? Self.calls(parts.dropFirst(3)) : [:]
        methods =
            calls.isEmpty
            ? ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] : calls.keys.sorted()
        kind = calls[head.method] ?? .none
        newDevice = kind == .register ? Self.newID() : nil
        device = parts.count > 3 ? RequestTarget.decodedPath(parts[3]) ?? "" : nil
        if calls.isEmpty {
            let isInbox = parts.contains { $0.contains("inbox") }
            unserved = Self.refusal(head.path, isInbox: isInbox)
        } else {
            unserved = device.flatMap { Self.refusal(ofDevice: $0) }
        }
    }

    /// What each method of a path asks for, by what comes after `devices`.
    private static func calls(_ rest: ArraySlice<Substring>) -> [String: Kind] {
        switch (rest.count, rest.last) {
        case (0, _): ["POST": .register]
        case (1, _): ["PUT": .update, "PATCH": .update, "DELETE": .unregister]
        case (2, "events"): ["POST": .events]
        case (2, "push_registration"): ["POST": .push, "PUT": .push, "DELETE": .noPush]
        case (2, "assign"): ["POST": .assign, "PUT": .assign, "PATCH": .assign]
        default: [:]
        }
    }

    /// A random UUID (RFC 9562, version 4) in lower case.
    private static func newID() -> String {
        var bytes = Random.bytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Array(Hex.encode(bytes))
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
            .joined(separator: "-")
    }

    private static func refusal(ofDevice device: String) -> ServiceRefusal? {
        let bytes = device.utf8.count
        let limit = EventDecoder.identifierBytesMax
        if bytes == 0 {
            return ServiceRefusal(
                400, "missing_device", "the device id in the path is missing or not UTF-8")
        }
        guard bytes > limit else { return nil }
        return ServiceRefusal(
            400, "device_too_long", "the device id is \(bytes) bytes, limit is \(limit)",
            details: [("actual", bytes), ("limit", limit)])
    }

    private static func refusal(_ path: String, isInbox: Bool) -> ServiceRefusal {
        let reason =
            isInbox
            ? "inbox messages are kept by the platform that sends them, not here"
            : "of /mobile_apps only APP/devices and what is below is served here"
        return ServiceRefusal(
            501, "not_served", "\(ServiceRefusal.shown(path.utf8)) is not served: \(reason)")
    }

    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal) {
        guard kind == .events else {
            lines.vendorApp = vendorApp
            return try readDevice(body, &lines)
        }
        guard let object = body.object else { return lines.add(raw: body) }
        guard let events = object["events"] else { return add(body, to: &lines) }
        guard let elements = events.elements else { return lines.add(raw: events) }
        for range in elements { add(SourceJSON(events.bytes, range), to: &lines) }
    }

    // MARK: Devices

    private func readDevice(
        _ body: SourceJSON, _ lines: inout DialectLines
    ) throws(ServiceRefusal) {
        let object = body.object
        // What takes a device away needs to say no more.
        guard object != nil || body.isEmpty || kind == .unregister || kind == .noPush else {
            throw ServiceRefusal(400, "bad_json", "the body is not a JSON object")
        }
        let inner = object?["device"]?.object
        let says = inner ?? object
        let id = SourceJSON.text(newDevice ?? device ?? "")
        let person = object?["person"]?.object ?? says
        let change: DeviceChange =
            switch kind {
            case .register: .register
            case .unregister: .unregister
            default: .update
            }
        lines.add(
            change, of: id, receivedAt: receivedAt,
            [
                "platform": says?.first("os", "platform") ?? platform(nil),
                "app_version": says?["app_version"], "os_version": says?["os_version"],
                "sdk_version": says?["sdk_version"], "locale": says?["locale"],
                "country": says?["country"],
                "person_id": person?.first("external_person_id", "person_uid", "person_key"),
                "provider": .text("vibes"),
            ],
            [
                "time_zone": says?.first("timezone", "time_zone"),
                "push_registered": kind == .push || kind == .noPush ? .flag(kind == .push) : nil,
            ],
            rest: says?.rest(without: [
                "os", "platform", "app_version", "os_version", "sdk_version", "locale", "country",
                "external_person_id", "person_uid", "timezone", "time_zone",
            ]))
    }

    // MARK: Events

    private func add(_ value: SourceJSON, to lines: inout DialectLines) {
        guard let event = value.object else { return lines.add(raw: value) }
        let attributes = event["attributes"]
        let sent = attributes?.object
        // Where the whole payload of the push is passed on, the ids are inside of this.
        let inner = sent?["client_app_data"]?.object
        func attribute(_ name: StaticString) -> SourceJSON? { sent?[name] ?? inner?[name] }
        lines.add([
            "type": event["type"] ?? type,
            "event_uid": event["uuid"],
            "device_id": device.map { .text($0) },
            "occurred_at": event["timestamp"],
            "message_uid": attribute("message_uid"),
            "inbox_message_uid": attribute("inbox_message_uid"),
            "activity_type": attribute("activity_type"),
            "activity_uid": attribute("activity_uid"),
            "person_id": attribute("person_uid"),
            "platform": platform(event["uuid"]?.text),
            "provider": .text("vibes"),
            "properties": attributes,
            "extra": event.rest(without: ["type", "uuid", "timestamp", "attributes"]),
        ])
    }

    /// What the client runs on, by its name or else by its UUIDs: iOS writes them in upper case.
    private func platform(_ uuid: String?) -> SourceJSON? {
        if userAgent.contains("CFNetwork") || userAgent.contains("Darwin") { return .text("ios") }
        if userAgent.contains("okhttp") || userAgent.contains("Android") { return .text("android") }
        guard let uuid, uuid.utf8.count == 36 else { return nil }
        if uuid.utf8.contains(where: { (0x41...0x46).contains($0) }) { return .text("ios") }
        return uuid.utf8.contains(where: { (0x61...0x66).contains($0) }) ? .text("android") : nil
    }

    func answer(_ outcome: DialectOutcome) -> Response {
        if kind == .events { return .json(status: 200, "{}") }
        if let message = outcome.message {
            return ServiceRefusal(400, "bad_device", message).response
        }
        guard let device = deviceOfToken, let token = outcome.token else {
            return .json(status: 200, "{}")
        }
        return .json(
            status: 200,
            "{\"device\":{\"vibes_device_id\":\(JSONString.quoted(device))},"
                + "\"auth_token\":\(JSONString.quoted(token))}")
    }

    func answer(refused refusal: ServiceRefusal) -> Response {
        var refusal = refusal
        if refusal.retryAfter != nil { refusal.status = 500 }
        return refusal.response
    }
}
