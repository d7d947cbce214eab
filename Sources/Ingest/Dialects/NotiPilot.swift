import HTTPServer

/// `POST /api/v1/register-device` and `/identify-device` of the NotiPilot SDKs, answered and not kept.
///
/// They report no events. On 429 and from 500 on the SDK waits the `retry_after` of the body.
struct NotiPilotCall: DialectCall {
    var isOpen: Bool { true }

    init?(_ head: DialectHead) {
        guard head.path == "/api/v1/register-device" || head.path == "/api/v1/identify-device"
        else { return nil }
    }

    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal) {
        guard let device = body.object else {
            throw ServiceRefusal(400, "bad_json", "the body is not a JSON object")
        }
        lines.vendorApp = device["app_id"]?.text
        guard device["device_uid"]?.text != nil else {
            throw ServiceRefusal(400, "missing_device", "field \"device_uid\" is missing or empty")
        }
    }

    func answer(_ outcome: DialectOutcome) -> Response {
        .json(status: 200, "{\"success\":true}")
    }
}
