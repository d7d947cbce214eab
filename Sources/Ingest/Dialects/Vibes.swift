import Event
import HTTPServer
import JSONLines

/// `POST /mobile_apps/{app}/devices/{device}/events` of the Vibes SDKs.
///
/// The body is `{"events":[{"uuid","type","timestamp","attributes":{…}}]}`, one type a body. Anything but
/// a 2xx with an object makes the iOS queue send the same batch again before all others, so one bad event
/// is never an error; and Android gives a batch up at 503, so whatever may be tried again is 500.
struct VibesCall: DialectCall {
    let methods: [String]
    let unserved: ServiceRefusal?
    let vendorApp: String?
    private let device: SourceJSON?
    private let type: SourceJSON?
    private let userAgent: String

    init?(_ head: DialectHead) {
        let parts = head.parts
        guard parts.first == "mobile_apps" else { return nil }
        userAgent = head.header("User-Agent") ?? ""
        type = head.header("X-Event-Type").map {
            .text(String($0.prefix(EventDecoder.typeBytesMax)))
        }
        vendorApp = parts.count > 1 ? RequestTarget.decodedPath(parts[1]) ?? "" : nil
        guard parts.count == 5, parts[2] == "devices", parts[4] == "events" else {
            device = nil
            methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
            unserved = Self.refusal(head.path, isInbox: parts.contains { $0.contains("inbox") })
            return
        }
        methods = ["POST"]
        let device = RequestTarget.decodedPath(parts[3]) ?? ""
        self.device = .text(device)
        unserved = Self.refusal(ofDevice: device)
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
            : "of /mobile_apps only APP/devices/DEVICE/events is served here"
        return ServiceRefusal(
            501, "not_served", "\(ServiceRefusal.shown(path.utf8)) is not served: \(reason)")
    }

    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal) {
        guard let object = body.object else { return lines.add(raw: body) }
        guard let events = object["events"] else { return add(body, to: &lines) }
        guard let elements = events.elements else { return lines.add(raw: events) }
        for range in elements { add(SourceJSON(events.bytes, range), to: &lines) }
    }

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
            "device_id": device,
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

    func answer(_ outcome: DialectOutcome) -> Response { .json(status: 200, "{}") }

    func answer(refused refusal: ServiceRefusal) -> Response {
        var refusal = refusal
        if refusal.retryAfter != nil { refusal.status = 500 }
        return refusal.response
    }
}
