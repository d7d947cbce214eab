import Event
import HTTPServer
import Platform

/// Notification statuses of SAP Mobile Services, at `http.sap_status_path`, and registrations of its devices,
/// at `http.sap_registration_path`.
///
/// What its own devices call is not public, so this is the shape that its statuses have:
/// `{"notificationId","status","deviceId"}`, one or an array of them, from whoever forwards them.
struct SAPCall: DialectCall {
    /// The words of its statuses, in lower case, as ours.
    private static let types = [
        "sent": "sent", "error": "failed", "received": "received", "consumed": "consumed",
        "confirmed": "confirmed",
    ]

    private let isRegistration: Bool
    private let isRemoval: Bool
    private let receivedAt: Int64
    var methods: [String] { isRegistration ? ["DELETE", "PATCH", "POST", "PUT"] : ["POST"] }

    init?(_ head: DialectHead) {
        isRegistration = head.path == head.settings.sapRegistrationPath
        guard isRegistration || head.path == head.settings.sapStatusPath else { return nil }
        isRemoval = head.method == "DELETE"
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
            if isRegistration { register(event, &lines) } else { add(event, &lines) }
        }
    }

    private func register(_ device: SourceObject, _ lines: inout DialectLines) {
        let provider = device["provider"]
        let isTest = provider?.text?.lowercased() == "test"
        lines.add(
            isRemoval ? .unregister : .register, of: device["deviceId"], receivedAt: receivedAt,
            [
                "platform": device["deviceType"], "app_version": device["appVersion"],
                "os_version": device["osVersion"], "sdk_version": device["sdkVersion"],
                "locale": device["userLocale"], "country": device["country"],
                "person_id": device.first("userName", "userId"),
                "provider": provider ?? (isRemoval ? nil : .text("sap")),
                "is_test": isTest ? .flag(true) : nil,
            ],
            [
                "time_zone": device["timeZone"], "push_group": device["pushGroup"],
                "topics": device["topics"],
            ],
            rest: device.rest(without: [
                "provider", "deviceId", "deviceType", "appVersion", "osVersion", "sdkVersion",
                "userLocale", "country", "userName", "timeZone", "pushGroup", "topics",
            ]))
    }

    private func add(_ event: SourceObject, _ lines: inout DialectLines) {
        let status = event["status"]
        let word = status?.text?.lowercased()
        // It waits for its sending: nothing has happened that a report could count.
        if word == "queued" { return }
        guard let type = word.flatMap({ Self.types[$0] }) else {
            let shown = status?.shown ?? "missing"
            return lines.reject(
                "status is \(shown), not QUEUED, SENT, ERROR, RECEIVED, CONSUMED or CONFIRMED")
        }
        let provider = event["provider"]
        let isTest = provider?.text?.lowercased() == "test"
        lines.add([
            "type": .text(type),
            "message_uid": event["notificationId"],
            "device_id": event["deviceId"],
            "campaign_id": event["campaignId"],
            "occurred_at": event["timestamp"],
            "platform": event["deviceType"],
            "locale": event["userLocale"],
            "provider": provider ?? .text("sap"),
            "is_test": isTest ? .flag(true) : nil,
            "push_group": event["pushGroup"],
            "topic": event["topic"],
            "properties": event.rest(without: [
                "status", "notificationId", "deviceId", "campaignId", "timestamp", "deviceType",
                "userLocale", "provider", "pushGroup", "topic",
            ]),
        ])
    }

    func answer(_ outcome: DialectOutcome) -> Response {
        if isRegistration, let message = outcome.message {
            return ServiceRefusal(400, "bad_device", message).response
        }
        let body = outcome.body
        var json = "{\"received\":\(body.received),\"accepted\":\(body.accepted)"
        json += ",\"rejected\":\(body.rejected)"
        if let message = outcome.message { json += ",\"message\":\(JSONString.quoted(message))" }
        return .json(status: 200, json + "}")
    }
}
