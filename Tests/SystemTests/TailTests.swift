import Foundation
import Testing

extension SystemTests {
    /// `tapline tail` and `/v1/tail`.
    @Suite struct TailTests {
        private static func follow(
            _ app: App, query: String = ""
        ) throws -> (admin: String, connection: Connection) {
            let admin = try app.daemon.key(app.name, role: "admin")
            let connection = try app.daemon.connect()
            try connection.send(Request.get("/v1/tail" + query, key: admin).bytes)
            let head = try connection.answer(hasBody: false)
            #expect(head.status == 200 && head.header("content-type") == "text/event-stream")
            return (admin, connection)
        }

        @Test func eventsOfTheAppComeAsTheyWereSent() throws {
            let (app, other) = try (Shared.app(), Shared.app())
            let (_, all) = try Self.follow(app)
            let (_, clicks) = try Self.follow(app, query: "?type=clicked&device=d%2F1")
            try other.store([App.click("not-yours", device: "d/1")])
            let line =
                #"{"type":"open","message_uid":"m","device_id":"d/1","occurred_at":"2026-11-30T06:10:00+02:00","properties":{"a":[1,"\n"]}}"#
            try app.store([#"{"type":"clicked"}"#, App.click("n"), line])
            #expect(try all.event("event")["event"]["message_uid"] == .string("n"))
            for follower in [all, clicks] {
                let event = try follower.event("event")
                #expect(event["type"] == .string("clicked"), "\(event)")
                #expect(event["event"] == (try JSON(parsing: line.utf8)), "\(event)")
                #expect(event["event_time"] == .string("2026-11-30T04:10:00.000Z"))
            }
            // Whether it is a repeat is known later.
            try app.store([line])
            #expect(try clicks.event("event")["event"]["message_uid"] == .string("m"))
        }

        @Test func theCommandWaitsForADaemonThatGoesAway() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            let admin = try daemon.key(app.name, role: "admin")
            let tail = try Tapline.start([
                "tail", "--url", "http://127.0.0.1:\(daemon.port)", "--key", admin, "--type",
                "clicked", "--count", "2",
            ])
            for round in 0..<2 {
                try until("it follows") {
                    try daemon.metric("tapline_tail_followers") == 1 ? true : nil
                }
                try app.store([
                    #"{"type":"received","message_uid":"m\#(round)"}"#,
                    App.click("m\(round)", #","campaign_id":"a b\u001b[31m""#),
                ])
                try until("it is shown") {
                    tail.output.contains("message=m\(round)") ? true : nil
                }
                if round == 0 {
                    try daemon.kill()
                    try daemon.start()
                }
            }
            #expect(try tail.wait(seconds: 20) == .code(0), "\(tail.error)")
            let lines = tail.output.split(separator: "\n")
            #expect(lines.count == 2 && !tail.output.contains("\u{1B}"), "\(lines)")
            #expect(
                lines.allSatisfy {
                    $0.contains(" clicked ") && $0.contains(#"campaign="a b\u{1b}[31m""#)
                })
            #expect(tail.error.contains("waiting: "), "\(tail.error)")
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func whoReadsTooSlowlyIsToldWhatWasLeftOut() throws {
            let app = try Shared.app()
            let (_, slow) = try Self.follow(app)
            let text = String(repeating: "x", count: 3000)
            for body in 0..<15 {
                try app.store(
                    (0..<1000).map {
                        App.click("m\(body)-\($0)", #","properties":{"t":"\#(text)"}"#)
                    })
            }
            // The end may be left out itself, so after each time that something was, there is another one.
            var (seen, missed, ends) = (0, 0, 0)
            var isFirst = true
            let number = try until("what was left out is told") { () -> Int? in
                if isFirst {
                    isFirst = false
                    while seen < 10 {
                        _ = try slow.event("event")
                        seen += 1
                    }
                }
                ends += 1
                try app.store([App.click("end-\(ends)")])
                while true {
                    let (name, event) = try slow.anyEvent()
                    if name == "missed" {
                        missed += Int(event["events"].int ?? 0)
                        return nil
                    }
                    if name == "event" { seen += 1 }
                    if event["event"]["message_uid"] == .string("end-\(ends)") {
                        return seen + missed
                    }
                }
            }
            #expect(missed > 0 && number == 15_000 + ends, "\(seen) seen, \(missed) left out")
        }

        @Test func keysAndParametersAreChecked() throws {
            let app = try Shared.app()
            let reader = try app.daemon.key(app.name, role: "read")
            try StatusTests.expectRefusal(try app.daemon.get("/v1/tail"), 401)
            try StatusTests.expectRefusal(try app.daemon.get("/v1/tail", key: app.key), 403)
            try StatusTests.expectRefusal(try app.daemon.get("/v1/tail", key: reader), 403)
            let (admin, follower) = try Self.follow(app)
            for query in ["?colour=red", "?type=a&type=b"] {
                try StatusTests.expectRefusal(
                    try app.daemon.get("/v1/tail" + query, key: admin), 400)
            }
            let refused = try Tapline.run([
                "tail", "--url", "http://127.0.0.1:\(app.daemon.port)", "--key", reader,
            ])
            #expect(refused.exit == .code(1) && refused.error.contains("403"), "\(refused)")
            // A key that is revoked while its owner follows shows nothing more.
            #expect(try Tapline.run(["key", "revoke", admin] + app.daemon.store).isSuccess)
            let started = Date()
            #expect(throws: Failure.self) {
                while true {
                    try app.store([App.click("m")])
                    _ = try follower.event("event")
                }
            }
            #expect(Date().timeIntervalSince(started) < 8)
        }
    }
}
