import Event
import HTTPServer
import Platform

/// The calls of Mapp Engage SDKs: `POST /api/push/event`, `POST /api/v5/device/inapp/tracking`, and
/// `PUT /api/v3/device`.
///
/// The key is in the header `X_KEY`. Each answer says whether the SDK should send the call again.
struct MappCall: DialectCall {
    private enum Kind { case push, inApp, device }
    private let kind: Kind
    private let receivedAt: Int64

    var methods: [String] { kind == .device ? ["PUT"] : ["POST"] }

    init?(_ head: DialectHead) {
        switch head.path {
        case "/api/push/event": kind = .push
        case "/api/v5/device/inapp/tracking": kind = .inApp
        case "/api/v3/device": kind = .device
        default: return nil
        }
        receivedAt = head.receivedAt
    }

    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal) {
        guard let elements = body.elements else { return lines.add(raw: body) }
        for range in elements {
            let value = SourceJSON(body.bytes, range)
            guard let event = value.object else {
                lines.add(raw: value)
                continue
            }
            switch kind {
            case .push: push(event, &lines)
            case .inApp: inApp(event, &lines)
            case .device: device(event, &lines)
            }
        }
    }

    /// Neither time nor id: one row for each state of a message.
    private func push(_ event: SourceObject, _ lines: inout DialectLines) {
        let number = event["event_type"]
        let type: String
        var button: SourceJSON?
        switch number?.integer {
        case 0: type = "clicked"
        case 1: type = "dismissed"
        case let number? where (2...4).contains(number):
            type = "action"
            button = .text("\(number - 1)")
        default:
            let shown = number?.shown ?? "missing"
            return lines.reject("event_type is \(shown), not 0 to 4")
        }
        lines.add([
            "type": .text(type),
            "message_uid": event["message_id"],
            "device_id": event["user_id"],
            "action_id": button,
            "campaign_id": event["sendout_id"],
            "provider": .text("mapp"),
            "properties": event.rest(
                without: ["event_type", "message_id", "user_id", "sendout_id"]),
        ])
    }

    /// A message shown inside of the app is no push: its events are tracking events, named apart.
    private func inApp(_ event: SourceObject, _ lines: inout DialectLines) {
        guard let word = event.first("event_type", "event", "type")?.text else {
            return lines.reject("event_type is missing")
        }
        lines.add([
            "type": .text("inapp_" + word),
            "event_uid": event["uuid"],
            "occurred_at": event["timestamp"],
            "message_uid": event["message_id"],
            "device_id": event["user_id"],
            "campaign_id": event["sendout_id"],
            "provider": .text("mapp"),
            "properties": event.rest(
                without: ["uuid", "timestamp", "message_id", "user_id", "sendout_id"]),
        ])
    }

    private func device(_ says: SourceObject, _ lines: inout DialectLines) {
        guard let id = says.first("user_id", "udid", "device_id") else {
            return lines.reject("user_id is missing")
        }
        lines.add(
            .update, of: id, receivedAt: receivedAt,
            [
                "platform": says.first("platform", "os"), "app_version": says["app_version"],
                "os_version": says["os_version"], "sdk_version": says["sdk_version"],
                "locale": says.first("locale", "language"), "country": says["country"],
                "person_id": says["alias"], "provider": .text("mapp"),
            ],
            ["time_zone": says.first("timezone", "time_zone"), "topics": says["topics"]],
            rest: says.rest(without: [
                "user_id", "platform", "os", "app_version", "os_version", "sdk_version", "locale",
                "language", "country", "alias", "timezone", "time_zone", "topics",
            ]))
    }

    func answer(_ outcome: DialectOutcome) -> Response {
        .json(status: 200, Self.metadata(outcome.message, shouldRetry: false))
    }

    func answer(refused refusal: ServiceRefusal) -> Response {
        var response = refusal.response
        response.body = Array(
            Self.metadata(
                refusal.message, shouldRetry: refusal.retryAfter != nil,
                retryAfter: refusal.retryAfter
            ).utf8)
        return response
    }

    private static func metadata(
        _ message: String?, shouldRetry: Bool, retryAfter: Int? = nil
    ) -> String {
        let text = message.map { JSONString.quoted($0) } ?? "null"
        let wait = retryAfter.map { ",\"retry_after\":\($0)" } ?? ""
        return "{\"metadata\":{\"error\":\(message != nil),\"errorMessage\":\(text),"
            + "\"shouldRetry\":\(shouldRetry)}\(wait)}"
    }
}
