import Event
import HTTPServer

/// `POST /api/v1/register-device` and `/identify-device` of the NotiPilot SDKs.
///
/// They report no events. On 429 and from 500 on the SDK waits the `retry_after` of the body.
struct NotiPilotCall: DialectCall {
    var isOpen: Bool { true }
    private let change: DeviceChange
    private let receivedAt: Int64

    init?(_ head: DialectHead) {
        guard head.path == "/api/v1/register-device" || head.path == "/api/v1/identify-device"
        else { return nil }
        change = head.path == "/api/v1/register-device" ? .register : .update
        receivedAt = head.receivedAt
    }

    /// What the attributes have a column for.
    private static let columns: [StaticString] = [
        "locale", "country", "app_version", "os_version", "sdk_version", "timezone", "time_zone",
    ]

    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal) {
        guard let device = body.object else {
            throw ServiceRefusal(400, "bad_json", "the body is not a JSON object")
        }
        lines.vendorApp = device["app_id"]?.text
        guard device["device_uid"]?.text != nil else {
            throw ServiceRefusal(400, "missing_device", "field \"device_uid\" is missing or empty")
        }
        let attributes = device["attributes"]?.object
        func attribute(_ name: StaticString) -> SourceJSON? { attributes?[name] ?? device[name] }
        // Attributes are the app's own: what it calls topics may be something else than a list of texts, and
        // no device goes unregistered for it.
        let topics = attributes?["topics"]
        let isOther = topics.map { !EventDecoder.isListOfTopics($0) } ?? false
        lines.add(
            change, of: device["device_uid"], receivedAt: receivedAt,
            [
                "platform": attribute("platform"), "app_version": attribute("app_version"),
                "os_version": attribute("os_version"), "sdk_version": attribute("sdk_version"),
                "locale": attribute("locale"), "country": attribute("country"),
                "provider": device["provider"],
                "person_id": device.first("user_id", "external_id", "person_id"),
            ],
            [
                "time_zone": attribute("timezone") ?? attribute("time_zone"),
                "attribute_topics": isOther ? topics : nil,
            ],
            rest: attributes?.rest(without: Self.columns + (isOther ? ["topics"] : [])))
    }

    func answer(_ outcome: DialectOutcome) -> Response {
        if let message = outcome.message {
            return ServiceRefusal(400, "bad_device", message).response
        }
        return .json(status: 200, "{\"success\":true}")
    }
}
