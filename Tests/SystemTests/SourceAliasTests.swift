import Foundation
import Testing

extension SystemTests {
    /// Sources whose calls may come without a key, and the aliases that let them in.
    @Suite struct SourceAliasTests {
        static func pushwoosh(
            _ source: SourceApp, _ method: String, _ members: String, key: String? = nil,
            application: String? = nil
        ) -> Request {
            source.request(
                "/json/1.3/\(method)",
                """
                {"request":{"application":\(quote(application ?? source.alias)),"hwid":"H",
                "v":"6.7","device_type":1\(members.isEmpty ? "" : ",")\(members)}}
                """, key: key)
        }

        static func answer(
            _ code: Int = 200, _ message: String = "OK", response: String = "null"
        ) -> String {
            "{\"status_code\":\(code),\"status_message\":\(quote(message)),\"response\":\(response)}"
        }

        @Test func pushwoosh() throws {
            let source = try SourceApp(Shared.daemon)
            func call(_ method: String, _ members: String, key: String? = nil) -> Request {
                Self.pushwoosh(source, method, members, key: key)
            }
            let good = Self.answer()
            let purchase = #""event":"Cart \"add\"","timestampUTC":1796019000,"#
            try SourceTests.run(
                [
                    SourceCall(
                        "a click", call("pushStat", #""hash":"h1""#), 200, good,
                        stored: ["clicked h1 H - - ios"]),
                    SourceCall(
                        "a click, with a key, again",
                        call("pushStat", #""hash":"h1""#, key: "Token"), 200, good),
                    SourceCall(
                        "no message", call("pushStat", #""hash":null"#), 200,
                        Self.answer(210, "field \"message_uid\" is required for a status update")),
                    SourceCall(
                        "a button that does not open the app",
                        call("pushStat", #""hash":"h1","action_id":"b","startApplication":0"#), 200,
                        good, stored: ["action h1 H - - ios button=b opens=false"]),
                    SourceCall(
                        "delivered", call("messageDeliveryEvent", #""hash":"h1""#), 200, good,
                        stored: ["received h1 H - - ios"]),
                    SourceCall(
                        "inbox, opened",
                        call("inboxStatus", #""inbox_code":"c1","status":3"#), 200, good,
                        stored: ["inbox_open c1 H - - ios inbox=c1"]),
                    SourceCall(
                        "inbox, deleted by time",
                        call("inboxStatus", #""inbox_code":"c1","status":5,"hash":"h1""#), 200,
                        good,
                        stored: ["inbox_deleted h1 H - - ios inbox=c1"]),
                    SourceCall(
                        "inbox, out of range",
                        call("inboxStatus", #""inbox_code":"c1","status":6"#), 200,
                        Self.answer(210, "status is \"6\", not 1 to 5")),
                    SourceCall(
                        "an event of the app",
                        call("postEvent", purchase + #""attributes":{"msgHash":"h1","n":1}"#), 200,
                        good, stored: ["Cart__add_ h1 H - - ios at=1796019000"]),
                    SourceCall(
                        "the same again",
                        call("postEvent", purchase + #""attributes":{"n":1,"msgHash":"h1"}"#), 200,
                        good),
                    SourceCall(
                        "one that is named as a state of a message",
                        call(
                            "postEvent",
                            #""event":"Open","timestampUTC":1796019001,"attributes":null"#),
                        200, good, stored: ["event:Open - H - - ios at=1796019001"]),
                    SourceCall(
                        "no name", call("postEvent", ""), 200,
                        Self.answer(210, "event is missing")),
                    SourceCall(
                        "registered", call("registerDevice", #""push_token":"t""#), 200,
                        Self.answer(response: #"{"iosCategories":[]}"#),
                        stored: ["device_register - H - - ios"]),
                    SourceCall(
                        "unregistered", call("unregisterDevice", ""), 200, good,
                        stored: ["device_unregister - H - - ios"]),
                    SourceCall("another call", call("getTags", ""), 501),
                    SourceCall(
                        "no request", source.request("/json/1.3/pushStat", "[]", key: nil), 400),
                    SourceCall(
                        "an unknown application",
                        Self.pushwoosh(source, "pushStat", "", application: "nobody"), 403),
                    SourceCall(
                        "no application",
                        source.request(
                            "/json/1.3/pushStat", #"{"request":{"hash":"h"}}"#, key: nil),
                        401),
                    SourceCall(
                        "a wrong key, though the application is known",
                        call("pushStat", #""hash":"h2""#).with("Authorization", "Token nonsense"),
                        401),
                    SourceCall(
                        "too much without a key",
                        call("pushStat", #""x":""# + String(repeating: "x", count: 70_000) + "\""),
                        413),
                ], source)
        }

        @Test func anOpeningOfTheAppCountsOnceAnHour() throws {
            let source = try SourceApp(Shared.daemon)
            // The hour may turn between two calls, but not twice.
            for _ in 0..<5 {
                let call = Self.pushwoosh(source, "applicationOpen", #""n":1"#)
                #expect(try Shared.daemon.send(call).status == 200)
            }
            let nobody = #"{"request":{"application":\#(quote(source.alias)),"hwid":""}}"#
            let refused = try Shared.daemon.send(
                source.request("/json/1.3/applicationOpen", nobody, key: nil))
            #expect(try refused.json["status_code"] == .int(210), "all devices would be one")
            let stored = try source.stored()
            #expect((1...2).contains(stored.count), "\(stored)")
            #expect(stored.allSatisfy { $0.hasPrefix("launch - H hour:") }, "\(stored)")
            #expect(
                try Shared.daemon.sql().int(
                    "SELECT count(*) FROM tapline.conflict WHERE app = '\(source.app.name)'") == 0)
        }

        @Test func notiPilot() throws {
            let source = try SourceApp(Shared.daemon)
            func call(_ name: String, _ body: String, key: String? = nil) -> Request {
                source.request("/api/v1/\(name)-device", body, key: key)
            }
            let app = quote(source.alias)
            let device = """
                {"app_id":\(app),"device_uid":"u","token":null,"platform":"ios","provider":null,
                "attributes":{"locale":null,"country":"DE"}}
                """
            try SourceTests.run(
                [
                    SourceCall(
                        "registered", call("register", device), 200, #"{"success":true}"#,
                        stored: ["device_register - u - - ios"]),
                    SourceCall(
                        "identified", call("identify", device), 200, #"{"success":true}"#,
                        stored: ["device_update - u - - ios"]),
                    SourceCall("with a key", call("identify", device, key: "Bearer"), 200),
                    SourceCall("no device", call("register", #"{"app_id":\#(app)}"#), 400),
                    SourceCall("not JSON", call("register", "x"), 400),
                    SourceCall(
                        "an unknown app", call("register", #"{"app_id":"n","device_uid":"u"}"#), 403
                    ),
                    SourceCall(
                        "no app", call("register", #"{"app_id":null,"device_uid":"u"}"#), 401),
                ], source)
        }

        // MARK: The command

        @Test func anAliasIsOfOneAppAndCanBeRemoved() throws {
            let (first, second) = try (SourceApp(Shared.daemon), Shared.app())
            let store = try Shared.daemon.store
            try SourceApp.makeAlias(first.app, first.alias)
            let taken = try Tapline.run(["app", "alias", second.name, first.alias] + store)
            #expect(taken.exit == .code(1))
            #expect(taken.complaints.first?.contains("alias of app \"\(first.app.name)\"") == true)
            #expect(try Tapline.run(["app", "alias", "a", ""] + store).exit == .code(2))
            let list = try Tapline.run(
                ["app", "aliases", "--app", first.app.name, "--format", "json"] + store)
            let rows = try JSON(parsing: list.output.utf8).items
            #expect(rows.map { $0["alias"] } == [.string(first.alias)])
            #expect(rows.map { $0["without_key"] } == [.bool(true)])

            #expect(try Tapline.run(["app", "unalias", first.alias] + store).isSuccess)
            #expect(try Tapline.run(["app", "unalias", first.alias] + store).exit == .code(1))
            let call = Self.pushwoosh(first, "pushStat", #""hash":"h""#)
            try until("the alias is forgotten", seconds: 5) {
                try Shared.daemon.send(call).status == 403 ? true : nil
            }
        }

        @Test func anAliasThatWasNotMadeForItDoesNotDoInsteadOfAKey() throws {
            let source = try SourceApp(Shared.daemon)
            func click(_ hash: String, key: String? = nil) throws -> Int {
                try Shared.daemon.send(
                    Self.pushwoosh(source, "pushStat", "\"hash\":\"\(hash)\"", key: key)
                ).status
            }
            try SourceApp.makeAlias(source.app, source.alias, isOpen: false)
            try until("the alias does no more", seconds: 5) {
                try click("before") == 401 ? true : nil
            }
            #expect(try click("keyless") == 401)
            #expect(try click("keyed", key: "Token") == 200)
            let list = try Tapline.run(
                ["app", "aliases", "--app", source.app.name, "--format", "json"]
                    + Shared.daemon.store)
            let rows = try JSON(parsing: list.output.utf8).items
            #expect(rows.map { $0["without_key"] } == [.bool(false)])
            try SourceApp.makeAlias(source.app, source.alias)
            try until("the alias does again", seconds: 5) {
                try click("after") == 200 ? true : nil
            }
            let stored = try source.stored()
            #expect(stored.contains("clicked keyed H - - ios"), "\(stored)")
            #expect(stored.contains("clicked after H - - ios"), "\(stored)")
            #expect(!stored.contains("clicked keyless H - - ios"), "\(stored)")
        }

        @Test func aDaemonWithoutItsDatabaseKnowsTheAliases() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let source = try SourceApp(daemon)
            func keyed(_ daemon: Daemon, _ key: String?) throws -> Int {
                try daemon.send(
                    Self.pushwoosh(
                        source, "pushStat", #""hash":"h""#, key: key, application: "keyed alias")
                ).status
            }
            try SourceApp.makeAlias(source.app, "keyed alias", isOpen: false)
            try until("the second alias is known", seconds: 5) {
                try keyed(daemon, "Token") == 200 ? true : nil
            }
            #expect(try daemon.stop() == .code(0))
            let lonely = try Daemon(
                directory: daemon.directory, database: "host=/nonexistent"
            ).start()
            let answer = try lonely.send(Self.pushwoosh(source, "pushStat", #""hash":"h""#))
            #expect(answer.status == 200, "\(answer.text)")
            #expect(try keyed(lonely, "Token") == 200)
            #expect(try keyed(lonely, nil) == 401)
            // One that it never saw may be good: no client may take that for final.
            let unknown = try lonely.send(
                Self.pushwoosh(source, "pushStat", #""hash":"h""#, application: "new"))
            #expect(unknown.status == 503, "\(unknown.text)")
            let vibes = try lonely.send(
                source.request("/mobile_apps/new/devices/d/events", "{}", key: "MobileAppToken"))
            #expect(vibes.status == 500 && vibes.header("Retry-After") != nil, "\(vibes.text)")
        }
    }
}
