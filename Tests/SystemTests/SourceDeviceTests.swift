import Foundation
import Testing

extension SourceApp {
    /// What the device table has of a device: `NAME=VALUE` of each column that has a value.
    func device(_ id: String) throws -> Set<String> {
        try app.daemon.waitUntilLoaded()
        let columns = [
            "registered", "platform", "app_version", "os_version", "sdk_version", "locale",
            "country",
            "provider", "person_id", "time_zone", "push_group", "topics", "is_test",
        ]
        let texts = columns.map { "'\($0)=' || \($0)::text" }.joined(separator: ", ")
        let rows = try app.daemon.sql().rows(
            """
            SELECT unnest(ARRAY[\(texts)]) FROM tapline.device
            WHERE app = '\(app.name)' AND device_id = '\(id)'
            """)
        return Set(rows.compactMap { $0[0] })
    }
}

/// One call about a device, its answer, and what the device table has of the device then.
struct DeviceCall {
    let what: String
    let request: Request
    let status: Int
    let answer: String?
    /// What has changed of the device: `NAME=VALUE`.
    let changes: [String]

    init(
        _ what: String, _ request: Request, _ status: Int = 200, _ answer: String? = nil,
        _ changes: [String] = []
    ) {
        self.what = what
        self.request = request
        self.status = status
        self.answer = answer
        self.changes = changes
    }
}

extension SystemTests {
    /// Registrations, updates and removals of devices, by each source.
    @Suite struct SourceDeviceTests {
        static func run(_ calls: [DeviceCall], _ source: SourceApp, device: String) throws {
            var before = try source.device(device)
            for call in calls {
                let answer = try source.app.daemon.send(call.request)
                #expect(answer.status == call.status, "\(call.what): \(answer.text)")
                if let expected = call.answer {
                    let json = try JSON(parsing: expected.utf8)
                    #expect(try answer.json == json, "\(call.what): \(answer.text)")
                }
                let after = try source.device(device)
                #expect(after.subtracting(before) == Set(call.changes), "\(call.what)")
                before = after
            }
        }

        static func topics(_ count: Int, of length: Int = 3) -> String {
            let topics = (0..<count).map { number in
                "\"\(number)\(String(repeating: "é", count: length - "\(number)".count))\""
            }
            return "[" + topics.joined(separator: ",") + "]"
        }

        // MARK: Vibes

        /// What a device that has no key is told: its id and its token.
        static func register(_ source: SourceApp, _ body: String = "{}") throws -> (
            id: String, token: String
        ) {
            let answer = try source.app.daemon.send(
                source.request("/mobile_apps/\(source.pathPart)/devices", body, key: nil))
            let json = try answer.json
            guard answer.status == 200, let id = json["device"]["vibes_device_id"].text,
                let token = json["auth_token"].text
            else { throw Failure("not registered: \(answer.status) \(answer.text)") }
            return (id, token)
        }

        static func call(
            _ source: SourceApp, _ path: String, _ body: String = "{}", token: String,
            method: String = "POST"
        ) -> Request {
            source.request(
                "/mobile_apps/\(source.pathPart)/devices/\(path)", body, key: nil, method: method
            ).with("Authorization", "MobileAppToken \(token)")
        }

        @Test func aVibesDeviceGoesOnByTheTokenThatItIsGiven() throws {
            let source = try SourceApp(Shared.daemon)
            let (id, first) = try Self.register(
                source,
                """
                {"device":{"os":"iOS","os_version":"18.1","app_version":"7.2","sdk_version":"4.5",
                "locale":"de_DE","timezone":"Europe/Berlin","hardware_model":"iPhone12,1",
                "location":null}}
                """)
            #expect(UUID(uuidString: id) != nil && id == id.lowercased(), "\(id)")
            func call(_ path: String, _ body: String = "{}", _ method: String = "POST") -> Request {
                Self.call(source, id + path, body, token: first, method: method)
            }
            let event = #"{"events":[{"uuid":"e","type":"launch"}]}"#
            try Self.run(
                [
                    DeviceCall("an event", call("/events", event), 200, "{}"),
                    DeviceCall(
                        "updated",
                        call("", #"{"device":{"app_version":"7.3","locale":null}}"#, "PATCH"),
                        200, nil, ["app_version=7.3"]),
                    DeviceCall(
                        "push", call("/push_registration", #"{"device":{"push_token":"t"}}"#), 200,
                        "{}"),
                    DeviceCall("no push", call("/push_registration", "", "DELETE"), 200, "{}"),
                    DeviceCall(
                        "a person",
                        call("/assign", #"{"person":{"external_person_id":"p 1"}}"#, "PUT"),
                        200, "{}", ["person_id=p 1"]),
                    DeviceCall("not JSON", call("", "{", "PUT"), 400),
                    DeviceCall(
                        "a person that is no text",
                        call("/assign", #"{"person_uid":[1]}"#, "PATCH"), 400),
                    DeviceCall(
                        "too many topics",
                        call("", #"{"device":{"topics":\#(Self.topics(33))}}"#, "PUT"), 400,
                        nil),
                    DeviceCall("gone", call("", "", "DELETE"), 200, "{}", ["registered=false"]),
                    DeviceCall("read", call("", "", "GET"), 405),
                    DeviceCall("an inbox call", call("/inbox", "", "GET"), 501),
                ], source, device: id)
            #expect(
                try source.device(id) == [
                    "registered=false", "platform=ios", "os_version=18.1", "app_version=7.3",
                    "sdk_version=4.5", "locale=de_DE", "time_zone=Europe/Berlin", "provider=vibes",
                    "person_id=p 1", "is_test=false",
                ])
            #expect(
                try source.stored().contains("launch - \(id) e - ios".replacing(" ios", with: " -"))
            )
        }

        @Test func aTokenIsRefreshedAndTheOldOneGoesOn() throws {
            let source = try SourceApp(Shared.daemon)
            let (id, first) = try Self.register(source)
            var tokens = [first]
            for method in ["PUT", "PATCH"] {
                let answer = try Shared.daemon.send(
                    Self.call(source, id, "{}", token: tokens.last ?? "", method: method))
                let json = try answer.json
                #expect(json["device"]["vibes_device_id"] == .string(id), "\(answer.text)")
                tokens.append(json["auth_token"].text ?? "")
            }
            for (number, token) in tokens.enumerated() {
                let event = #"{"events":[{"uuid":"r\#(number)","type":"launch"}]}"#
                let answer = try Shared.daemon.send(
                    Self.call(source, "\(id)/events", event, token: token))
                #expect(answer.status == 200, "\(answer.text)")
            }
            // A second registration is another device: the first call's answer may have been lost.
            #expect(try Self.register(source).id != id)
        }

        @Test func aTokenOpensNothingElse() throws {
            let (source, other) = try (SourceApp(Shared.daemon), SourceApp(Shared.daemon))
            let (id, token) = try Self.register(source)
            let (otherID, _) = try Self.register(other)
            let event = #"{"events":[{"uuid":"x","type":"launch"}]}"#
            func refused(_ status: Int, _ request: Request) throws {
                let answer = try Shared.daemon.send(request)
                #expect(answer.status == status, "\(request.target): \(answer.text)")
            }
            let devices = Self.call(source, "\(id)/events", event, token: token)
            // Another app's device, its own id in another app, another device of its app.
            try refused(403, Self.call(other, "\(otherID)/events", event, token: token))
            try refused(403, Self.call(other, "\(id)/events", event, token: token))
            try refused(403, Self.call(source, "someone/events", event, token: token))
            try refused(403, Self.call(source, "someone", token: token, method: "DELETE"))
            // Everything else that takes a key, in any place that a key may be.
            let click = App.click("m")
            for (target, body) in [
                ("/v1/events", click), ("/api/push/event", "{}"),
                ("/sap/notification-status", "[]"),
                ("/json/1.3/pushStat", "{}"), ("/api/v1/register-device", "{}"),
                ("/mobile_apps/\(source.pathPart)/devices", "{}"),
            ] {
                let request = source.request(target, body, key: nil)
                try refused(403, request.with("Authorization", "Bearer \(token)"))
                try refused(403, request.with("X_KEY", token))
            }
            for target in ["/v1/reports/campaigns", "/v1/tail"] {
                let request = source.request(target, "", key: nil, method: "GET")
                let answer = try Shared.daemon.send(
                    request.with("Authorization", "Bearer \(token)"))
                #expect([403, 404].contains(answer.status), "\(target): \(answer.text)")
            }
            // Each part of it counts: the app, the device, the time, the signature.
            let parts = token.split(separator: ".").map(String.init)
            for index in 1..<parts.count {
                var changed = parts
                let last = changed[index].removeLast()
                changed[index].append(last == "0" ? "1" : "0")
                for forged in [
                    changed.joined(separator: "."), parts[0..<index].joined(separator: "."),
                ] {
                    try refused(
                        401, Self.call(source, "\(id)/events", event, token: forged))
                }
            }
            try refused(200, devices)
            #expect(try other.stored().allSatisfy { $0.hasPrefix("device_register ") })
        }

        @Test func onlyAnAliasThatWasMadeForItRegistersWithoutAKey() throws {
            let source = try SourceApp(Shared.daemon)
            func register(_ app: String, key: String? = nil) throws -> Int {
                try Shared.daemon.send(
                    source.request("/mobile_apps/\(app)/devices", "{}", key: key)
                ).status
            }
            #expect(try register(source.pathPart) == 200)
            #expect(try register("nobody") == 403)
            #expect(try register(source.app.name) == 403, "an app's name is no alias")
            #expect(try register(source.app.name, key: "MobileAppToken") == 200)
            #expect(try register("nobody", key: "MobileAppToken") == 404)
        }

        // MARK: The others

        @Test func notiPilot() throws {
            let source = try SourceApp(Shared.daemon)
            let others = ["[\"a\",\"\"]", "\"a\"", "[1]", "{\"x\":[]}", "7"]
            func call(_ name: String, _ members: String) -> Request {
                source.request(
                    "/api/v1/\(name)-device",
                    #"{"app_id":\#(quote(source.alias)),"device_uid":"N"\#(members)}"#, key: nil)
            }
            let good = #"{"success":true}"#
            try Self.run(
                [
                    DeviceCall(
                        "registered",
                        call(
                            "register",
                            """
                            ,"token":"t","platform":"Android","provider":"fcm","attributes":{
                            "locale":"pt-BR","country":"BR","app_version":"3.1","os_version":14,
                            "model":null,"timezone":"America/Bahia"}
                            """), 200, good,
                        [
                            "registered=true", "platform=android", "provider=fcm", "locale=pt-BR",
                            "country=BR", "app_version=3.1", "os_version=14",
                            "time_zone=America/Bahia", "is_test=false",
                        ]),
                    DeviceCall(
                        "nulls change nothing",
                        call(
                            "identify",
                            """
                            ,"token":null,"platform":null,"provider":null,"attributes":{"locale":null,
                            "country":null,"app_version":null,"os_version":null}
                            """), 200, good),
                    DeviceCall(
                        "no attributes", call("identify", #","attributes":null"#), 200, good),
                    DeviceCall(
                        "identified",
                        call("identify", #","attributes":{"locale":"en","app_version":"3.2"}"#),
                        200,
                        good, ["locale=en", "app_version=3.2"]),
                    DeviceCall(
                        "topics", call("register", #","attributes":{"topics":["b","a","b"]}"#), 200,
                        good, ["topics={a,b}"]),
                    DeviceCall(
                        "32 of 64 characters",
                        call("register", #","attributes":{"topics":\#(Self.topics(32, of: 64))}"#),
                        200,
                        good,
                        [
                            "topics={"
                                + (0..<32).map {
                                    "\($0)" + String(repeating: "é", count: 64 - "\($0)".count)
                                }
                                .sorted { Array($0.utf8).lexicographicallyPrecedes($1.utf8) }
                                .joined(separator: ",") + "}"
                        ]),
                    DeviceCall(
                        "none any more", call("register", #","attributes":{"topics":[]}"#), 200,
                        good,
                        ["topics={}"]),
                ]
                    + others.map { topics in
                        DeviceCall(
                            topics,
                            call("register", #","attributes":{"\u0074opics":\#(topics),"a":1}"#),
                            200, good)
                    }
                    + [
                        (Self.topics(33), "device has 33 topics, limit is 32"),
                        (Self.topics(1, of: 65), "a topic is 65 characters, limit is 64"),
                    ].map { topics, message in
                        DeviceCall(
                            topics, call("register", #","attributes":{"\u0074opics":\#(topics)}"#),
                            400,
                            #"{"error":{"code":"bad_device","message":\#(quote(message))}}"#)
                    }, source, device: "N")
            // What an app calls topics, and is none, is its own.
            let kept = try source.app.stored("properties").compactMap { $0[0] }
            for topics in others {
                let expected = try JSON(parsing: #"{"attribute_topics":\#(topics),"a":1}"#.utf8)
                #expect(
                    try kept.contains { try JSON(parsing: $0.utf8) == expected },
                    "\(topics): \(kept)")
            }
        }

        @Test func sapMobileServices() throws {
            let source = try SourceApp(Shared.daemon)
            func call(_ members: String, method: String = "POST") -> Request {
                source.request(
                    "/sap/registrations", "{\"deviceId\":\"S\"\(members)}", method: method)
            }
            let good = #"{"received":1,"accepted":1,"rejected":0}"#
            try Self.run(
                [
                    DeviceCall(
                        "registered",
                        call(
                            """
                            ,"deviceType":"iOS","pushGroup":"sales","userLocale":"fr_FR",
                            "timeZone":"Europe/Paris","userName":"u@x","topics":["t"]
                            """), 200, good,
                        [
                            "registered=true", "platform=ios", "push_group=sales", "locale=fr_FR",
                            "time_zone=Europe/Paris", "person_id=u@x", "topics={t}", "provider=sap",
                            "is_test=false",
                        ]),
                    DeviceCall(
                        "another group",
                        call(#","pushGroup":"field","topics":null"#, method: "PUT"),
                        200, good, ["push_group=field"]),
                    DeviceCall(
                        "no device", source.request("/sap/registrations", "{}"), 400,
                        #"{"error":{"code":"bad_device","message":"field \"device_id\" is required for a change of a device"}}"#
                    ),
                    DeviceCall(
                        "a test device", call(#","provider":"TEST""#), 200, good,
                        ["provider=TEST", "is_test=true"]),
                    DeviceCall(
                        "gone", call("", method: "DELETE"), 200, good, ["registered=false"]),
                    DeviceCall("no key", source.request("/sap/registrations", "{}", key: nil), 401),
                ]
                    + [
                        (Self.topics(33), "device has 33 topics, limit is 32"),
                        (Self.topics(1, of: 65), "a topic is 65 characters, limit is 64"),
                        (
                            "[\"a\",\"\"]",
                            "field \"topics\" is not an array of texts that are not empty"
                        ),
                        ("\"a\"", "field \"topics\" is not an array of texts that are not empty"),
                        ("[1]", "field \"topics\" is not an array of texts that are not empty"),
                    ].map { topics, message in
                        DeviceCall(
                            topics, call(#","\u0074opics":\#(topics)"#), 400,
                            #"{"error":{"code":"bad_device","message":\#(quote(message))}}"#)
                    }, source, device: "S")
        }

        /// Whoever has a push token can write to the device.
        @Test func noPushTokenIsKept() throws {
            let source = try SourceApp(Shared.daemon)
            let tokens =
                #""token":"SECRET","push_token":"SECRET","\u0074oken":"SECRET","model":"M1""#
            let more =
                #""deviceToken":"SECRET","registration_id":"SECRET","push":{"FCM-Token":"SECRET","n":1}"#
            let (id, token) = try Self.register(source, "{\"device\":{\(tokens)}}")
            let app = quote(source.alias)
            for request in [
                Self.call(source, "\(id)/push_registration", "{\(tokens),\(more)}", token: token),
                Self.call(
                    source, "\(id)", #"{"device":{\#(tokens),\#(more)}}"#, token: token,
                    method: "PATCH"),
                SourceAliasTests.pushwoosh(source, "registerDevice", "\(tokens),\(more)"),
                SourceAliasTests.pushwoosh(source, "setTags", "\(tokens),\"tags\":{\(more)}"),
                source.request(
                    "/api/v1/register-device",
                    #"{"app_id":\#(app),"device_uid":"N",\#(tokens),"attributes":{\#(tokens),\#(more)}}"#,
                    key: nil),
                source.request("/sap/registrations", #"{"deviceId":"S",\#(tokens),\#(more)}"#),
                source.request(
                    "/api/v3/device", #"{"user_id":"M",\#(tokens),\#(more)}"#, key: "X_KEY",
                    method: "PUT"),
            ] {
                let answer = try source.app.daemon.send(request)
                #expect(answer.status == 200, "\(request.target): \(answer.text)")
            }
            try source.app.daemon.waitUntilLoaded()
            let stored = try source.app.stored("properties").compactMap { $0[0] }
            #expect(stored.count == 8)
            for properties in stored {
                #expect(!properties.contains("SECRET"), "\(properties)")
                let json = try JSON(parsing: properties.utf8)
                #expect(json["model"] == .string("M1"), "\(properties)")
            }
            #expect(stored.filter { $0.contains("\"n\"") }.count == 7, "\(stored)")
        }

        @Test func pushwoosh() throws {
            let source = try SourceApp(Shared.daemon)
            func call(_ method: String, _ members: String) -> Request {
                SourceAliasTests.pushwoosh(source, method, members)
            }
            let good = SourceAliasTests.answer()
            try Self.run(
                [
                    DeviceCall(
                        "registered",
                        call(
                            "registerDevice",
                            #""push_token":"t","language":"de","timezone":3600,"app_version":"2.0","os_version":"17""#
                        ), 200, SourceAliasTests.answer(response: #"{"iosCategories":[]}"#),
                        [
                            "registered=true", "platform=ios", "locale=de", "time_zone=3600",
                            "app_version=2.0", "os_version=17", "sdk_version=6.7",
                            "provider=pushwoosh", "is_test=false",
                        ]),
                    DeviceCall(
                        "tags",
                        call("setTags", #""tags":{"a":[1,null],"Level":3},"language":"en""#),
                        200, good, ["locale=en"]),
                    DeviceCall(
                        "a user", call("registerUser", #""userId":"u""#), 200, good, ["person_id=u"]
                    ),
                    DeviceCall(
                        "topics that are none", call("setTags", #""topics":{}"#), 200,
                        SourceAliasTests.answer(
                            210, "field \"topics\" is not an array of texts that are not empty")),
                    DeviceCall(
                        "gone", call("unregisterDevice", ""), 200, good, ["registered=false"]),
                    DeviceCall(
                        "back", call("registerDevice", #""app_version":null"#), 200, nil,
                        ["registered=true"]),
                ], source, device: "H")
        }

        @Test func mappEngage() throws {
            let source = try SourceApp(Shared.daemon)
            func call(_ members: String) -> Request {
                source.request(
                    "/api/v3/device", "{\"user_id\":\"M\"\(members)}", key: "X_KEY", method: "PUT")
            }
            try Self.run(
                [
                    DeviceCall(
                        "updated",
                        call(
                            #","platform":"Android","app_version":"1","locale":"nl","alias":"al""#),
                        200, SourceTests.mapp(nil),
                        [
                            "registered=true", "platform=android", "app_version=1", "locale=nl",
                            "person_id=al", "provider=mapp", "is_test=false",
                        ]),
                    DeviceCall(
                        "too many topics", call(#","topics":\#(Self.topics(40))"#), 200,
                        SourceTests.mapp("device has 40 topics, limit is 32")),
                ], source, device: "M")
        }

        @Test func ourOwnLinesSayTheSame() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            // Not in the order of their times, and one twice.
            let lines = [
                #"{"type":"device_update","device_id":"O","event_uid":"3","occurred_at":1796000300,"locale":"c"}"#,
                #"{"type":"device_register","device_id":"O","event_uid":"1","occurred_at":1796000100,"locale":"a","country":"AT","topics":["x"],"push_group":"g","time_zone":"UTC"}"#,
                #"{"type":"device_update","device_id":"O","event_uid":"2","occurred_at":1796000200,"locale":"b","country":"BE","is_test":true}"#,
            ]
            try app.store(lines)
            try app.store([lines[0], lines[2]])
            #expect(
                try source.device("O") == [
                    "registered=true", "locale=c", "country=BE", "topics={x}", "push_group=g",
                    "time_zone=UTC", "is_test=true",
                ])
            let at = try app.daemon.sql().rows(
                """
                SELECT locale, country FROM (VALUES (1796000099), (1796000100), (1796000200),
                    (1796000299), (1796000300)) t (at),
                    tapline.device_at('\(app.name)', 'O', to_timestamp(at)) ORDER BY at
                """)
            #expect(
                at == [[nil, nil], ["a", "AT"], ["b", "BE"], ["b", "BE"], ["c", "BE"]])
            let answer = try app.post(
                [
                    #"{"type":"device_update","event_uid":"4"}"#,
                    #"{"type":"device_update","device_id":"O","event_uid":"5","topics":7}"#,
                    #"{"type":"Device_Update","event_uid":"6"}"#,
                ].joined(separator: "\n"))
            let errors = try answer.json["errors"].items.map { [$0["code"], $0["field"]] }
            #expect(
                errors == [
                    [.string("missing_device_id"), .string("device_id")],
                    [.string("invalid_topics"), .string("topics")],
                ], "\(answer.text)")
        }
    }
}
