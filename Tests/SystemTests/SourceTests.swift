import Foundation
import Testing

extension SystemTests {
    /// What each source sends, what it is answered, and what is stored for it.
    @Suite struct SourceTests {
        static func run(_ calls: [SourceCall], _ source: SourceApp) throws {
            var before = try source.stored()
            for call in calls {
                let answer = try source.app.daemon.send(call.request)
                #expect(answer.status == call.status, "\(call.what): \(answer.text)")
                if let expected = call.answer {
                    let json = try JSON(parsing: expected.utf8)
                    #expect(try answer.json == json, "\(call.what): \(answer.text)")
                }
                let after = try source.stored()
                #expect(after.subtracting(before) == Set(call.stored), "\(call.what)")
                before = after
            }
        }

        // MARK: Vibes

        static let upper = "6F9619FF-8B86-D011-B42D-00C04FC964FF"
        static let ios = [("User-Agent", "Shop/7 CFNetwork/1410 Darwin/22"), ("X-Event-Type", "x")]
        static let android = [("User-Agent", "okhttp/4.9.0")]

        @Test func vibes() throws {
            let source = try SourceApp(Shared.daemon)
            let path = "/mobile_apps/\(source.pathPart)/devices/D%201/events"
            func post(
                _ body: String, _ headers: [(String, String)] = [], key: String? = "MobileAppToken"
            ) -> Request {
                source.request(path, body, key: key, headers: headers)
            }
            let lower = Self.upper.lowercased()
            let pretty = """
                {
                  "events" : [
                    {
                      "uuid" : "\(Self.upper)",
                      "type" : "clickthru",
                      "timestamp" : "2026-11-30T06:10:00Z",
                      "attributes" : {
                        "message_uid" : "M1", "activity_type" : "Broadcast",
                        "activity_uid" : "77", "person_uid" : null
                      }
                    }
                  ]
                }
                """
            let clicked = "clicked M1 D 1 \(lower) Broadcast:77 ios at=1796019000"
            let data = #"{\"message_uid\":\"M3\",\"activity_type\":\"T\",\"activity_uid\":\"9\"}"#
            let deep = String(repeating: "[", count: 80) + String(repeating: "]", count: 80)
            try Self.run(
                [
                    SourceCall(
                        "on many lines", post(pretty, Self.ios), 200, "{}", stored: [clicked]),
                    SourceCall("sent again", post(pretty, Self.ios), 200, "{}"),
                    SourceCall(
                        "again in lower case, gzipped, as chunks",
                        post(pretty.replacing(Self.upper, with: lower), Self.android).gzipped, 200,
                        "{}"),
                    SourceCall(
                        "bad events among good ones",
                        post(
                            """
                            {"events":[17,{"uuid":"e1","type":"push_receive","timestamp":
                            "2026-11-30T11:55:00+05:45","attributes":{"message_uid":"M2"}},
                            {"uuid":"e2","type":"clickthru","attributes":null},null,"x",[],
                            {"uuid":"e3","attributes":{}},{"type":"launch","attributes":{}},
                            {"uuid":"e4","type":"launch","attributes":{"a":\(deep)}},
                            {"uuid":"\u{1}"},{"uuid":"e5","type":"launch","attributes":null}]}
                            """.replacing("\u{1}", with: String(repeating: "u", count: 200)),
                            Self.android), 200, "{}",
                        stored: [
                            "received M2 D 1 e1 - android at=1796019000",
                            "launch - D 1 e5 - android",
                        ]),
                    SourceCall(
                        "the payload as text in client_app_data",
                        post(
                            """
                            {"events":[{"uuid":"a6","type":"push_receive","attributes":
                            {"google.ttl":1,"client_app_data":"\(data)"}}]}
                            """), 200, "{}", stored: ["received M3 D 1 a6 T:9 -"]),
                    SourceCall(
                        "client_app_data that is no JSON",
                        post(
                            """
                            {"events":[{"uuid":"a7","type":"inbox_open","timestamp":"x","attributes":
                            {"inbox_message_uid":"I1","client_app_data":"{{"}}]}
                            """), 200, "{}", stored: ["inbox_open I1 D 1 a7 - - inbox=I1"]),
                    SourceCall(
                        "the type in the header alone",
                        post(#"{"events":[{"uuid":"a8"}]}"#, [("X-Event-Type", "inbox_fetch")]),
                        200, "{}", stored: ["inbox_fetch - D 1 a8 - -"]),
                    SourceCall("no events", post(#"{"events":[]}"#), 200, "{}"),
                    SourceCall("cut off", post(#"{"events":[{"#), 200, "{}"),
                    SourceCall("nothing", post(""), 200, "{}"),
                    SourceCall("no key", post(pretty, key: nil), 401),
                    SourceCall(
                        "an inbox call",
                        source.request(
                            "/mobile_apps/\(source.pathPart)/persons/p/inbox_messages", "",
                            method: "GET"),
                        501),
                    SourceCall(
                        "another call", source.request("/mobile_apps/x/places", "{}"), 501),
                    SourceCall(
                        "a device of an unknown app",
                        source.request("/mobile_apps/x/devices", "{}"),
                        404),
                    SourceCall("another method", source.request(path, "", method: "PUT"), 405),
                ], source)
            let rejected = try Shared.daemon.metric(
                "tapline_lines_rejected_total{code=\"too_deep\"}")
            #expect(rejected >= 1)
        }

        @Test func anAppIsNamedByItsOwnNameOrAliasAlone() throws {
            let (first, second) = try (SourceApp(Shared.daemon), SourceApp(Shared.daemon))
            func post(_ app: String) throws -> Answer {
                let body = #"{"events":[{"uuid":"\#(app)","type":"launch"}]}"#
                return try Shared.daemon.send(
                    first.request("/mobile_apps/\(app)/devices/d/events", body))
            }
            #expect(try post(first.app.name).status == 200)
            #expect(try post(first.pathPart).status == 200)
            try StatusTests.expectRefusal(try post(second.pathPart), 403)
            for name in ["nobody", "%FF", ""] {
                try StatusTests.expectRefusal(try post(name), 404)
            }
            #expect(try first.stored().count == 2)
            #expect(try second.stored().isEmpty)
            // The same in a body.
            let body = #"{"request":{"application":\#(quote(second.alias)),"hwid":"h","hash":"x"}}"#
            let answer = try Shared.daemon.send(first.request("/json/1.3/pushStat", body))
            #expect(answer.status == 403)
            #expect(try answer.json["status_code"] == .int(403))
            #expect(try second.stored().isEmpty)
        }

        // MARK: Mapp Engage

        static func mapp(_ message: String?) -> String {
            "{\"metadata\":{\"error\":\(message != nil),"
                + "\"errorMessage\":\(message.map(quote) ?? "null"),\"shouldRetry\":false}}"
        }

        @Test func mappEngage() throws {
            let source = try SourceApp(Shared.daemon)
            func event(_ type: String, _ more: String = "", key: String? = "X_KEY") -> Request {
                source.request(
                    "/api/push/event",
                    """
                    {"customer_id":5,"event_type":\(type),"message_id":900,"user_id":"u1",
                    "sendout_id":42,"click_action_type":"1"\(more)}
                    """, key: key)
            }
            let tracking = """
                {"uuid":"\(Self.upper)","event_type":"open","timestamp":1796019000123,
                "message_id":"i1","user_id":"u1"}
                """
            let good = Self.mapp(nil)
            try Self.run(
                [
                    SourceCall("a click", event("0"), 200, good, stored: ["clicked 900 u1 - 42 -"]),
                    SourceCall("a click as text, again", event("\"0\""), 200, good),
                    SourceCall(
                        "a dismissal", event("1"), 200, good, stored: ["dismissed 900 u1 - 42 -"]),
                    SourceCall(
                        "button 1", event("2"), 200, good, stored: ["action 900 u1 - 42 - button=1"]
                    ),
                    SourceCall(
                        "button 3", event("4"), 200, good, stored: ["action 900 u1 - 42 - button=3"]
                    ),
                    SourceCall(
                        "no such button", event("5"), 200,
                        Self.mapp("event_type is \"5\", not 0 to 4")),
                    SourceCall("below", event("-1"), 200),
                    SourceCall(
                        "null", event("null"), 200, Self.mapp("event_type is missing, not 0 to 4")),
                    SourceCall(
                        "no message", event("0", #","message_id":null"#), 200,
                        Self.mapp("field \"message_uid\" is required for a status update")),
                    SourceCall("not JSON", source.request("/api/push/event", "{"), 200),
                    SourceCall(
                        "in the app", source.request("/api/v5/device/inapp/tracking", tracking),
                        200,
                        good,
                        stored: ["inapp_open i1 u1 \(Self.upper.lowercased()) - - at=1796019000"]),
                    SourceCall(
                        "in the app, again",
                        source.request("/api/v5/device/inapp/tracking", "[\(tracking)]"), 200, good),
                    SourceCall(
                        "the device",
                        source.request("/api/v3/device", #"{"user_id":7}"#, method: "PUT"), 200,
                        good,
                        stored: ["device_update - 7 - - -"]),
                    SourceCall(
                        "no device", source.request("/api/v3/device", "{}", method: "PUT"), 200,
                        Self.mapp("user_id is missing")),
                    SourceCall(
                        "no key", event("0", key: nil), 401,
                        Self.mapp("no key: send \"Authorization: Bearer KEY\"")),
                ], source)
        }

        // MARK: SAP Mobile Services

        @Test func sapMobileServices() throws {
            let source = try SourceApp(Shared.daemon)
            func post(_ body: String) -> Request {
                source.request("/sap/notification-status", body)
            }
            func counts(_ accepted: Int, rejected: Int = 0, _ message: String? = nil) -> String {
                "{\"received\":\(accepted + rejected),\"accepted\":\(accepted),\"rejected\":\(rejected)"
                    + (message.map { ",\"message\":\(quote($0))" } ?? "") + "}"
            }
            let id = Self.upper
            let words = "not QUEUED, SENT, ERROR, RECEIVED, CONSUMED or CONFIRMED"
            try Self.run(
                [
                    SourceCall(
                        "queued", post(#"{"notificationId":"n","status":"QUEUED"}"#), 200, counts(0)
                    ),
                    SourceCall(
                        "sent, without a device", post(#"{"notificationId":"n","status":"Sent"}"#),
                        200, counts(1), stored: ["sent n - - - -"]),
                    SourceCall(
                        "several, in any case",
                        post(
                            """
                            [{"notificationId":"\(id)","status":"RECEIVED","deviceId":"d","deviceType":"iOS"},
                            {"notificationId":"\(id)","status":"consumed","deviceId":"d"},
                            {"notificationId":"\(id)","status":"Confirmed","deviceId":"d"},
                            {"notificationId":"m","status":"ERROR","deviceId":null},
                            {"notificationId":"m","status":"LOST"},7]
                            """), 200, counts(4, rejected: 2, "status is \"LOST\", \(words)"),
                        stored: [
                            "received \(id.lowercased()) d - - ios",
                            "consumed \(id.lowercased()) d - - -",
                            "confirmed \(id.lowercased()) d - - -", "failed m - - - -",
                        ]),
                    SourceCall(
                        "of a test",
                        post(#"{"notificationId":"t","status":"SENT","provider":"TEST"}"#), 200,
                        counts(1), stored: ["sent t - - - - test=true"]),
                    SourceCall(
                        "no status", post(#"{"notificationId":"t"}"#), 200,
                        counts(0, rejected: 1, "status is missing, \(words)")),
                    SourceCall(
                        "no key", source.request("/sap/notification-status", "{}", key: nil), 401),
                ], source)
        }
    }
}
