import Ingest
import JSONLines

/// The first byte says which path of which source the rest is sent to.
enum SourceProperty {
    private static let samples: [(path: String, body: String)] = [
        (
            "/mobile_apps/a/devices/d/events",
            #"{"events":[{"uuid":"u1","type":"clickthru","timestamp":"2026-11-30T06:10:00Z","#
                + #""attributes":{"message_uid":"m","activity_type":"t","activity_uid":1,"#
                + #""client_app_data":"{\"message_uid\":\"n\"}"}},{"uuid":"u2","type":"launch"}]}"#
        ),
        (
            "/mobile_apps/a/devices",
            #"{"device":{"os":"iOS","os_version":18.1,"topics":["a","b"],"timezone":"UTC"}}"#
        ),
        ("/mobile_apps/a/devices/d/assign", #"{"person":{"external_person_id":"p"}}"#),
        (
            "/api/push/event",
            #"{"event_type":2,"message_id":"m","user_id":7,"sendout_id":"s","x":{}}"#
        ),
        (
            "/api/v5/device/inapp/tracking",
            #"[{"uuid":"u3","event_type":"open","timestamp":1796019000123,"user_id":7}]"#
        ),
        (
            "/sap/notification-status",
            #"[{"notificationId":"n","status":"SENT"},{"status":"CONSUMED","topic":"t"}]"#
        ),
        (
            "/sap/registrations",
            #"{"deviceId":"s","pushGroup":"g","topics":["t","u"],"userLocale":"de"}"#
        ),
        (
            "/json/1.3/inboxStatus",
            #"{"request":{"application":"a","hwid":"h","inbox_code":"c","status":2}}"#
        ),
        (
            "/json/1.3/postEvent",
            #"{"request":{"application":"a","hwid":"h","event":"e","timestampUTC":1}}"#
        ),
        (
            "/json/1.3/registerDevice",
            #"{"request":{"application":"a","hwid":"h","timezone":7200,"topics":["a"]}}"#
        ),
        (
            "/json/1.3/setTags",
            #"{"request":{"application":"a","hwid":"h","tags":{"a":[1,"b",null]}}}"#
        ),
        (
            "/api/v1/register-device",
            #"{"app_id":"a","device_uid":"d","attributes":{"locale":null}}"#
        ),
    ]

    static let seeds: [[UInt8]] = samples.enumerated().map { number, sample in
        [UInt8(number)] + Array(sample.body.utf8)
    }

    static func violation(_ input: [UInt8]) -> String? {
        guard let first = input.first else { return nil }
        let path = samples[Int(first) % samples.count].path
        guard let probe = DialectProbe(path: path, receivedAt: LinesProperty.receivedAt) else {
            return "\(path) is of no source"
        }
        let (bytes, ranges, refusal) = probe.lines(of: Array(input.dropFirst()))
        if let refusal {
            // Vibes is told 200, or its queue would stop for ever.
            return refusal < 500 ? nil : "\(path) is refused with \(refusal)"
        }
        var end = 0
        for range in ranges {
            guard range.lowerBound >= end, range.upperBound <= bytes.count, !range.isEmpty else {
                return "\(path): a line at \(range) of \(bytes.count), after \(end)"
            }
            end = range.upperBound
        }
        return LinesProperty.verdictViolation(bytes, ranges).map { "\(path): \($0)" }
    }
}
