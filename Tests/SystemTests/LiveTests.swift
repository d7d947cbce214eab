import Foundation
import Testing

extension SystemTests {
    /// The live page and its events. What a browser shows of it is a test of `DashboardTests`.
    @Suite struct LiveTests {
        static func look(_ app: App, key: String) throws -> Connection {
            let connection = try app.daemon.connect()
            try connection.send(Request.get("/v1/live", key: key).bytes)
            let head = try connection.answer(hasBody: false)
            #expect(head.status == 200)
            #expect(head.header("content-type") == "text/event-stream")
            #expect(head.header("cache-control") == "no-store")
            return connection
        }

        @Test func thePageNeedsNoKeyAndHasNoData() throws {
            let app = try Shared.app()
            try app.store([App.click("m", #","campaign_id":"secret-plan""#)])
            let answer = try app.daemon.get("/")
            #expect(answer.status == 200)
            #expect(answer.header("content-type") == "text/html; charset=utf-8")
            #expect(!answer.text.contains("secret-plan") && !answer.text.contains(app.name))
            // Nothing of it is loaded from elsewhere, and nothing else runs in it.
            #expect(!answer.text.contains(" src=") && !answer.text.contains("@import"))
            let policy = try #require(answer.header("content-security-policy"))
            #expect(policy.hasPrefix("default-src 'none'; script-src 'nonce-"))
            #expect(try app.daemon.get("/").header("content-security-policy") != policy)
            #expect(!answer.text.contains("NONCE"))
            #expect(try app.daemon.send(Request(method: "HEAD", target: "/")).status == 200)
        }

        @Test func countersAndCampaignsComeAsTheyAre() throws {
            let app = try Shared.app()
            let reader = try app.daemon.key(app.name, role: "read")
            let other = try Shared.app()
            try other.store([App.click("m", #","campaign_id":"not-yours""#)])
            try app.store([App.click("m0", #","campaign_id":"spring""#)])
            let viewer = try Self.look(app, key: reader)
            let first = try viewer.event("counters")
            #expect(first["database_up"] == .bool(true) && first["balanced"] == .bool(true))
            let report = try viewer.event("campaigns") { !$0["campaigns"].items.isEmpty }
            #expect(report["campaigns"].items.map { $0["campaign_id"].text } == ["spring"])
            #expect(report["totals"]["clicked"] == .int(1))
            let lines = (1...40).map { App.click("m\($0)", #","campaign_id":"autumn""#) }
            try app.store(lines)
            let received = try #require(first["received"].int)
            let later = try viewer.event("counters") { ($0["received"].int ?? 0) >= received + 40 }
            #expect(later["stored"].int! >= first["stored"].int! + 40)
            // All tapped, which is odd.
            let flags = try viewer.event("flags") {
                $0.items.contains { $0["campaign_id"].text == "autumn" }
            }
            let flag = try #require(flags.items.first { $0["campaign_id"].text == "autumn" })
            #expect(flag["flag"].text == "ctr_100_percent")
            #expect(flag["meaning"].text?.hasSuffix(".") == true)
        }

        @Test func twoViewersShareOneReport() throws {
            let app = try Shared.app()
            let reader = try app.daemon.key(app.name, role: "read")
            let reports = { try app.daemon.metric("tapline_report_seconds_count") }
            let viewers = try (0..<10).map { _ in try Self.look(app, key: reader) }
            for viewer in viewers { _ = try viewer.event("campaigns") }
            let before = try reports()
            let started = Date()
            for _ in 0..<6 { _ = try viewers[0].event("counters") }
            // One each five seconds, however many look.
            #expect(try reports() - before <= Date().timeIntervalSince(started) / 5 + 1)
            #expect(try app.daemon.metric("tapline_live_viewers") >= 10)
        }

        @Test func nothingIsReadWhenNobodyLooks() throws {
            let daemon = try Daemon().start()
            let app = try App(daemon)
            let reader = try daemon.key(app.name, role: "read")
            do {
                let viewer = try Self.look(app, key: reader)
                _ = try viewer.event("campaigns")
            }
            try until("the viewer is gone") {
                try daemon.metric("tapline_live_viewers") == 0 ? true : nil
            }
            let before = try daemon.metric("tapline_report_seconds_count")
            usleep(6_000_000)
            #expect(try daemon.metric("tapline_report_seconds_count") == before)
        }

        @Test func keysAreChecked() throws {
            let app = try Shared.app()
            try StatusTests.expectRefusal(try app.daemon.get("/v1/live"), 401)
            try StatusTests.expectRefusal(try app.daemon.get("/v1/live", key: app.key), 403)
            let admin = try app.daemon.key(app.name, role: "admin")
            let basic = Data("\(admin):".utf8).base64EncodedString()
            let connection = try app.daemon.connect()
            try connection.send(
                Request.get("/v1/live").with("Authorization", "Basic \(basic)").bytes)
            #expect(try connection.answer(hasBody: false).status == 200)
            // A key that is revoked while its owner looks shows nothing more.
            _ = try connection.event("counters")
            #expect(try Tapline.run(["key", "revoke", admin] + app.daemon.store).isSuccess)
            let end = Date()
            #expect(throws: Failure.self) {
                _ = try connection.event("counters") { _ in Date().timeIntervalSince(end) > 20 }
            }
            #expect(Date().timeIntervalSince(end) < 8)
        }

        @Test func viewersAreBounded() throws {
            let daemon = try Daemon().start()
            let app = try App(daemon)
            let reader = try daemon.key(app.name, role: "read")
            let viewers = try (0..<64).map { _ in try Self.look(app, key: reader) }
            let answer = try daemon.get("/v1/live", key: reader)
            try StatusTests.expectRefusal(answer, 503)
            #expect(try answer.json["error"]["code"].text == "too_many_viewers")
            _ = try viewers[63].event("counters")
            // The end of the daemon is the end of the streams, not the other way round.
            let started = Date()
            #expect(try daemon.stop() == .code(0))
            #expect(Date().timeIntervalSince(started) < 8)
            for viewer in viewers {
                #expect(throws: Failure.self) { _ = try viewer.event("never") }
            }
        }

        @Test func withoutTheDatabaseTheCountersGoOn() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            let reader = try daemon.key(app.name, role: "read")
            try app.store([App.click("m0", #","campaign_id":"spring""#)])
            let viewer = try Self.look(app, key: reader)
            _ = try viewer.event("campaigns")
            try cluster.stop(.fast)
            #expect(try app.post(App.click("m1")).status == 200)
            let away = try viewer.event("counters") {
                $0["database_up"] == .bool(false) && ($0["lag_seconds"].number ?? 0) >= 2
            }
            #expect(away["spooled"] == .int(1))
            #expect(try viewer.event("problem")["message"].text == "the database does not answer")
            try cluster.start()
            _ = try viewer.event("counters") { $0["spooled"] == .int(0) }
            let report = try viewer.event("campaigns") { $0["totals"]["clicked"] == .int(2) }
            #expect(report["data_through"].text != nil)
        }
    }
}
