import Foundation
import Testing

extension SystemTests {
    /// Sources under limits and with bodies that nobody meant.
    @Suite struct SourceFaultTests {
        static let vibes = """
            {"events":[{"uuid":"u1","type":"clickthru","timestamp":"2026-11-30T06:10:00Z",
            "attributes":{"message_uid":"m","activity_type":"t","activity_uid":1,"a":[1,{"b":null}],
            "client_app_data":"{\\"message_uid\\":\\"n\\"}"}},{"uuid":"u2","type":"launch"}]}
            """

        /// The path and a good body of each source.
        static func samples(_ source: SourceApp) -> [(target: String, key: String?, body: String)] {
            let app = quote(source.alias)
            return [
                ("/mobile_apps/\(source.pathPart)/devices/d/events", "MobileAppToken", vibes),
                (
                    "/api/push/event", "X_KEY",
                    #"{"event_type":2,"message_id":"m","user_id":7,"sendout_id":"s","x":{}}"#
                ),
                (
                    "/api/v5/device/inapp/tracking", "X_KEY",
                    #"[{"uuid":"u3","event_type":"open","timestamp":1796019000123,"user_id":7}]"#
                ),
                (
                    "/sap/notification-status", "Bearer",
                    #"[{"notificationId":"n","status":"SENT"},{"status":"CONSUMED","topic":"t"}]"#
                ),
                (
                    "/json/1.3/inboxStatus", nil,
                    #"{"request":{"application":\#(app),"hwid":"h","inbox_code":"c","status":2}}"#
                ),
                (
                    "/json/1.3/postEvent", nil,
                    #"{"request":{"application":\#(app),"hwid":"h","event":"e","timestampUTC":1}}"#
                ),
                (
                    "/api/v1/register-device", nil,
                    #"{"app_id":\#(app),"device_uid":"d","attributes":{"locale":null}}"#
                ),
                (
                    "/mobile_apps/\(source.pathPart)/devices", nil,
                    #"{"device":{"os":"iOS","os_version":18.1,"topics":["a","b"],"timezone":"UTC"}}"#
                ),
                (
                    "/mobile_apps/\(source.pathPart)/devices/d/assign", "MobileAppToken",
                    #"{"person":{"external_person_id":"p"}}"#
                ),
                (
                    "/json/1.3/registerDevice", nil,
                    #"{"request":{"application":\#(app),"hwid":"h","timezone":7200,"topics":["a"]}}"#
                ),
                (
                    "/json/1.3/setTags", nil,
                    #"{"request":{"application":\#(app),"hwid":"h","tags":{"a":[1,"b",null]}}}"#
                ),
                (
                    "/sap/registrations", "Bearer",
                    #"{"deviceId":"s","pushGroup":"g","topics":["t","u"],"userLocale":"de"}"#
                ),
            ]
        }

        private static let tokens: [[UInt8]] =
            [
                "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", "1e999", "null", "true", "\0",
                "\\u0000", "\\ud83d", "\u{FEFF}", "\"request\":", "\"events\":",
                "\"type\":\"sent\",",
                String(repeating: "[", count: 70), String(repeating: "9", count: 1100),
                String(repeating: "x", count: 200),
            ].map { Array($0.utf8) } + [[0x80], [0xED, 0xA0, 0xBD], [0xFF]]

        private static func mutate(_ text: String, _ random: inout Random) -> [UInt8] {
            var bytes = Array(text.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<5, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.removeSubrange(index...)
                case 2:
                    let end = min(bytes.count, index + Int.random(in: 1...20, using: &random))
                    bytes.removeSubrange(index..<end)
                default: bytes.insert(contentsOf: tokens.randomElement(using: &random)!, at: index)
                }
            }
            return bytes
        }

        @Test func noBodyMakesASourceFailOrAVibesQueueStop() throws {
            let source = try SourceApp(Shared.daemon)
            var random = Random(seed: 61)
            for sample in Self.samples(source) {
                let connection = try Shared.daemon.connect()
                for round in 0..<200 {
                    var request = source.request(sample.target, sample.body, key: sample.key)
                    if round > 0 { request.body = Self.mutate(sample.body, &random) }
                    try connection.send(request.bytes)
                    let answer = try connection.answer()
                    let text = "\(sample.target) \(String(decoding: request.body, as: UTF8.self))"
                    #expect(answer.status < 500, "\(text): \(answer.text)")
                    #expect((try? answer.json) != nil, "\(text): \(answer.text)")
                    if sample.target.hasSuffix("/events") {
                        #expect(answer.status == 200 && answer.text == "{}", "\(text)")
                    }
                    if round == 0 { #expect(answer.status == 200, "\(text): \(answer.text)") }
                }
            }
            #expect(try !source.stored().isEmpty)
            let check = try Shared.daemon.check()
            #expect(check.exit == .code(0), "\(check.books)")
        }

        @Test func aBodyOfTooManyEventsIsRefusedWhole() throws {
            let source = try SourceApp(Shared.daemon)
            let events = Array(repeating: "{}", count: 10_001).joined(separator: ",")
            for (target, body) in [
                ("/mobile_apps/\(source.pathPart)/devices/d/events", "{\"events\":[\(events)]}"),
                ("/sap/notification-status", "[\(events)]"),
            ] {
                let answer = try Shared.daemon.send(source.request(target, body))
                #expect(answer.status == 413, "\(answer.text)")
            }
            for device in [String(repeating: "d", count: 129), "%FF", ""] {
                let answer = try Shared.daemon.send(
                    source.request(
                        "/mobile_apps/\(source.pathPart)/devices/\(device)/events", "{}"))
                try StatusTests.expectRefusal(answer, 400)
            }
        }

        @Test func whatMayBeTriedAgainIsSaidAsEachSourceReadsIt() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(
                database: cluster.conninfo(),
                settings: [
                    "http.key_requests_per_second_max": "1", "http.key_burst": "1ms",
                    "http.alias_requests_per_second_max": "1",
                ]
            ).start()
            let source = try SourceApp(daemon)
            for sample in Self.samples(source) {
                let request = source.request(sample.target, sample.body, key: sample.key)
                let refused = try until("\(sample.target) is refused") {
                    let answer = try daemon.send(request)
                    return answer.status == 200 ? nil : answer
                }
                let isVibes = sample.target.contains("mobile_apps")
                #expect(refused.status == (isVibes ? 500 : 429), "\(sample.target)")
                let seconds = try #require(refused.header("Retry-After").flatMap { Int64($0) })
                #expect(seconds >= 1)
                let json = try refused.json
                #expect(json["retry_after"] == .int(seconds), "\(sample.target): \(refused.text)")
                if sample.key == "X_KEY" {
                    #expect(json["metadata"]["shouldRetry"] == .bool(true))
                    #expect(json["metadata"]["error"] == .bool(true))
                }
                if sample.target.hasPrefix("/json") { #expect(json["status_code"] == .int(429)) }
            }
        }
    }
}
