import Foundation
import Testing

extension SystemTests {
    /// `tapline explain`: what it says is what is in the spool, the tables and the report.
    @Suite struct ExplainTests {
        private static func explain(
            _ uid: String, _ app: App, _ more: [String] = []
        ) throws -> (exit: Exit, json: JSON) {
            let outcome = try Tapline.run(
                ["explain", uid, "--format", "json", "--app", app.name] + more + app.daemon.store)
            return (outcome.exit, try JSON(parsing: outcome.output.utf8))
        }

        @Test func aStoredEventIsToldWithItsRequestTransactionAndRow() throws {
            let app = try Shared.app()
            let line =
                #"{"type":"open","message_uid":"m","device_id":"d","event_uid":"E1","x":[1.50]}"#
            try app.store(["{}", line, App.click("other")])
            try app.store([line])
            let (exit, json) = try Self.explain("E1", app)
            #expect(exit == .code(0) && json["events"].items.count == 1, "\(json)")
            let event = json["events"][0]
            #expect(event["outcome"] == .string("stored") && event["type"] == .string("clicked"))
            #expect(event["line"]["type"] == .string("open"))
            #expect(event["line"]["properties"]["x"] == .array([.double(1.5)]))
            let requests = event["requests"].items
            #expect(requests.map { $0["lines"].int } == [3, 1])
            #expect(requests.map { $0["rejected"].int } == [1, 0])
            #expect(requests.allSatisfy { $0["loaded"] == .bool(true) })
            #expect(requests[0]["received_at"] == event["received_at"])
            let sql = try app.daemon.sql()
            let row = try #require(
                try sql.rows(
                    """
                    SELECT e.batch, e.xmin, e.ctid, e.segment, b.spool, e.key, e.unit
                    FROM tapline.event e JOIN tapline.batch b USING (batch)
                    WHERE app = '\(app.name)' AND event_uid = 'E1'
                    """
                ).first)
            let stored = event["stored"]
            #expect(stored["batch"].int.map(String.init) == row[0])
            #expect(stored["transaction"].text == row[1] && stored["ctid"].text == row[2])
            #expect(stored["segment"].int.map(String.init) == row[3])
            #expect(stored["spool"].text == row[4] && requests[0]["spool"].text == row[4])
            #expect(event["identity"].text == row[5] && event["unit"].text == row[6])
            #expect(json["units"][0]["unit"].text == row[6])
        }

        /// A message of two devices and an inbox, counted together as the report counts it.
        @Test(arguments: [false, true]) func theUnitsOfAMessageAddUpToTheReport(
            isClosed: Bool
        ) throws {
            let cluster = try Cluster()
            // The filling closes the segment of the message's events.
            let daemon = try Daemon(
                database: cluster.conninfo(),
                settings: isClosed ? ["load.segment_rows_max": "100"] : [:]
            ).start()
            let app = try App(daemon)
            try app.store([
                #"{"type":"sent","message_uid":"m","device_id":"a","campaign_id":"spring"}"#,
                #"{"type":"received","message_uid":"m","device_id":"a","platform":"ios","inbox_message_uid":"i"}"#,
                #"{"type":"clicked","message_uid":"m","device_id":"a","event_uid":"1"}"#,
                #"{"type":"clicked","message_uid":"m","device_id":"a","event_uid":"2"}"#,
            ])
            try app.store([
                #"{"type":"inbox_open","inbox_message_uid":"i","device_id":"a"}"#,
                #"{"type":"consumed","message_uid":"m","device_id":"b","country":"de"}"#,
                #"{"type":"dismissed","message_uid":"m","device_id":"b"}"#,
                #"{"type":"sent","message_uid":"m","device_id":"t","is_test":true}"#,
            ])
            if isClosed { try app.store((0..<100).map { App.click("filling-\($0)", device: "f") }) }
            try app.store((0..<3).map { App.click("other-\($0)", #","country":"fr""#) })
            let (_, json) = try Self.explain("m", app)
            #expect(json["events"].items.count == 7)
            let units = json["units"].items
            #expect(Set(units.map { $0["device_id"].text }) == ["a", "b", "t"], "\(units)")
            let a = try #require(units.first { $0["device_id"].text == "a" })
            #expect(a["campaign_id"] == .string("spring"))
            #expect(a["dimensions"]["platform"] == .string("ios"))
            #expect(a["counts"]["clicked"] == .int(1) && a["counts"]["clicks_total"] == .int(2))
            #expect(a["counts"]["inbox_opened"] == .int(1) && a["special"] == .bool(true))
            let report = try Tapline.run(
                ["report", "--campaign", "spring", "--format", "json"] + daemon.store)
            let totals = try JSON(parsing: report.output.utf8)["totals"]
            for name in try #require(a["counts"].keys.isEmpty ? nil : a["counts"].keys) {
                let sum = units.reduce(0) { $0 + ($1["counts"][name].int ?? 0) }
                #expect(totals[name].int == sum, "\(name): \(totals[name])")
            }
            // By the inbox id the same unit is found, and its inbox event.
            let (_, inbox) = try Self.explain("i", app)
            #expect(inbox["events"].items.count == 2)
            #expect(inbox["units"].items.contains { $0["unit"] == a["unit"] })
            let plain = try Self.explain("other-0", app).json["units"][0]
            #expect(plain["special"] == .bool(false), "\(plain)")
            #expect(plain["cell"]["units"] == .int(3), "\(plain)")
            let sealed = try Self.explain("m", app).json["events"].items.map {
                $0["stored"]["segment_state"].text
            }
            #expect(sealed.allSatisfy { ($0 == "open") != isClosed }, "\(sealed)")
        }

        @Test func aConflictIsToldWithBothBodiesAndHowOftenItCame() throws {
            let app = try Shared.app()
            let first = App.click(
                "m", #","event_uid":"U","campaign_id":"one","inbox_message_uid":"i""#)
            let second = App.click("m", #","event_uid":"U","campaign_id":"two""#)
            let third = App.click("m", #","event_uid":"U","campaign_id":"three""#)
            try app.store([first])
            for _ in 0..<3 { try app.store([second]) }
            try app.store([third])
            for uid in ["U", "m", "i"] {
                let event = try Self.explain(uid, app).json["events"][0]
                #expect(event["line"]["campaign_id"] == .string("one"), "the first stays")
                let conflicts = event["conflicts"].items
                #expect(conflicts.map { $0["times"].int } == [3, 1])
                #expect(conflicts.map { $0["line"]["campaign_id"].text } == ["two", "three"])
            }
        }

        @Test func whatIsNotStoredIsToldWhereItIs() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            let sql = try daemon.sql()
            try app.store([App.click("first")])
            try sql.rows(
                "ALTER TABLE tapline.event_1 ADD CONSTRAINT poison CHECK (campaign_id <> 'poison')")
            try app.store([
                App.click("p", #","campaign_id":"poison","event_uid":"é\"\\""#), App.click("good"),
                #"{"type":"clicked","message_uid":"gone","device_id":7.5}"#,
            ])
            for uid in ["p", "é\"\\"] {
                let dead = try Self.explain(uid, app)
                #expect(dead.exit == .code(0), "\(dead)")
                #expect(dead.json["events"][0]["outcome"] == .string("dead_letter"))
                let letter = dead.json["events"][0]["dead_letters"][0]
                #expect(letter["sqlstate"] == .string("23514"))
                #expect(letter["line"]["message_uid"] == .string("p"))
                #expect(dead.json["events"][0]["requests"].items.count == 1)
            }
            let rejected = try Self.explain("gone", app)
            #expect(rejected.exit == .code(1) && rejected.json["events"].items.isEmpty)
            // The loader waits, so what comes now stays in the spool.
            try sql.rows("BEGIN; SELECT FROM tapline.turn FOR UPDATE")
            #expect(try app.post(App.click("late")).status == 200)
            let waiting = try Self.explain("late", app).json["events"][0]
            #expect(waiting["outcome"] == .string("spooled") && waiting["stored"] == .null)
            #expect(waiting["requests"][0]["loaded"] == .bool(false))
            try sql.rows("COMMIT")
            try daemon.waitUntilLoaded()
            #expect(try Self.explain("late", app).json["events"][0]["outcome"] == .string("stored"))
            try sql.rows("DELETE FROM tapline.event WHERE message_uid = 'late'")
            let missing = try Self.explain("late", app).json["events"][0]
            #expect(missing["outcome"] == .string("missing"), "its record is still in the spool")
        }

        @Test func theTextFitsEightyColumnsAndAppsAreToldApart() throws {
            let (app, other) = (try Shared.app(), try Shared.app())
            let uid = "0B61A8AE-7A6E-4F0E-8D8C-3F4A9A3AD0" + "\(Int.random(in: 10...99))"
            let long = String(repeating: "long text ", count: 40)
            let line = App.click(
                uid, #","campaign_id":"c","properties":{"text":"\#(long)\u001b[31m"}"#)
            try app.store([line])
            try other.store([App.click(uid.lowercased())])
            let both = try Tapline.run(["explain", uid] + app.daemon.store)
            #expect(both.exit == .code(0))
            let lines = both.output.split(separator: "\n")
            #expect(lines.allSatisfy { $0.count <= 80 }, "\(both.output)")
            #expect(!both.output.contains("\u{1B}"))
            #expect(lines.count { $0.hasPrefix("event ") } == 2)
            #expect(lines.count { $0.hasPrefix("unit ") } == 2)
            #expect(try Self.explain(uid, other).json["events"].items.count == 1)
            let nothing = try Tapline.run(["explain", "no-such-id"] + app.daemon.store)
            #expect(nothing.exit == .code(1) && nothing.output.contains("rejected"))
        }
    }
}
