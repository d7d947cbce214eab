import Foundation
import Testing

extension SystemTests {
    /// Law 2: however often, whenever, on whatever way an event comes, it is stored once.
    @Suite struct DedupeTests {
        // S08
        @Test func equalLinesOfOneBodyAreStoredOnce() throws {
            let app = try Shared.app()
            var lines = (0..<950).map { App.click("m\($0)") }
            for index in 0..<50 { lines.insert(App.click("m\(index * 7)"), at: index * 19) }
            let json = try app.store(lines)
            #expect(json["accepted"] == .int(950) && json["duplicates"] == .int(50))
            let states = try app.store([
                #"{"type":"consumed","message_uid":"n","device_id":"d"}"#, App.click("n"),
                #"{"type":"consumed","message_uid":"n","device_id":"d","occurred_at":1}"#,
            ])
            #expect(states["accepted"] == .int(2) && states["duplicates"] == .int(1))
            #expect(Set(try app.stored("message_uid, type")).count == 952)
            #expect(try app.count() == 952)
        }

        // S09
        @Test func oneKnownEventCostsItsFreshNeighboursNothing() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            try app.store((0..<1000).map { App.click("m\($0)") })
            for round in 1...2 {
                let fresh = (0..<999).map { App.click("r\(round)-\($0)") }
                let json = try app.store([App.click("m500")] + fresh)
                #expect(json["accepted"] == .int(999) && json["duplicates"] == .int(1))
                if round == 1 {
                    #expect(try daemon.stop() == .code(0))
                    try daemon.start()
                }
            }
            #expect(!daemon.log.contains("ERROR") && !daemon.log.contains("WARN"), "\(daemon.log)")
            #expect(try daemon.stop() == .code(0))
        }

        @Test func theSameBodyInParallelIsStoredOnce() throws {
            let shared = try Shared.daemon
            let other = try Daemon(database: shared.conninfo).start()
            let app = try App(shared)
            // Both daemons have to know the key before the race.
            #expect(try other.send(.events("", key: app.key)).status == 200)
            let lines = (0..<500).map { App.click("m\($0)") }
            let answers = Answers()
            DispatchQueue.concurrentPerform(iterations: 8) { number in
                let body = (number % 2 == 0 ? lines : lines.reversed()).joined(separator: "\n")
                let daemon = number % 4 < 2 ? shared : other
                answers.add {
                    try daemon.send(.events(body, key: app.key, query: "?ack=stored"))
                }
            }
            #expect(answers.statuses == [Int](repeating: 200, count: 8))
            let sums = ["accepted", "duplicates"].map { name in
                answers.bodies.reduce(0) { $0 + ($1[name].int ?? 0) }
            }
            #expect(sums == [500, 3500])
            #expect(try app.count() == 500)
            #expect(try other.stop() == .code(0))
        }

        // S10
        @Test func twoDaemonsUnderTheSameLoadStoreEachEventOnce() throws {
            let shared = try Shared.daemon
            let other = try Daemon(
                database: shared.conninfo, settings: ["load.batch_age_ms": "20"]
            ).start()
            let app = try App(shared)
            // The same seed: both are sent the same events, at about the same time.
            let first = Oracle(shared, key: app.key, seed: 10)
            let second = Oracle(other, key: app.key, seed: 10)
            for oracle in [first, second] { oracle.start(connections: 4) }
            defer { for oracle in [first, second] { oracle.abandon() } }
            try first.waitForMore(5000)
            try second.waitForMore(5000)
            for oracle in [first, second] { try oracle.stop() }
            for daemon in [shared, other] { try daemon.waitUntilLoaded() }
            try first.verify(try shared.sql(), app: app.name, with: second)
            try second.verify(try shared.sql(), app: app.name, with: first)
            #expect(try other.metric("tapline_events_duplicate_total") > 0)
            #expect(try other.stop() == .code(0))
        }

        // S24
        @Test func theFirstOfTwoDifferentEventsWithOneIdStays() throws {
            let app = try Shared.app()
            let first = App.click("m", #","event_uid":"U","campaign_id":"one""#)
            let second = App.click("m", #","event_uid":"U","campaign_id":"two""#)
            let third = App.click("m", #","event_uid":"U","properties":{"a":1}"#)
            let another =
                #"{"type":"inbox_open","message_uid":"m","device_id":"B","event_uid":"U"}"#
            #expect(try app.store([first])["accepted"] == .int(1))
            for _ in 0..<3 {
                let json = try app.store([second, another, third])
                #expect(json["conflicts"] == .int(1), "absent against present is a duplicate")
            }
            let sql = try app.daemon.sql()
            let conflicts = try sql.rows(
                "SELECT times, body::jsonb->>'campaign_id' FROM tapline.conflict "
                    + "WHERE app = '\(app.name)'")
            #expect(conflicts == [["3", "two"]])
            #expect(try app.stored("device_id, campaign_id") == [["B", nil], ["d", "one"]])
        }

        // S24, S25
        @Test func ofOneIdInTwoAppsEachKeepsItsFirstAcrossARestart() throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo, settings: ["load.batch_age_ms": "20"]
            ).start()
            let apps = [try App(daemon), try App(daemon)]
            func tap(_ uid: String, _ campaign: String) -> String {
                App.click("m", #","event_uid":"\#(uid)","campaign_id":"\#(campaign)""#)
            }
            for (index, app) in apps.enumerated() {
                // The first line of a body is the first; what the other app has is not of this one.
                let json = try app.store([tap("U", "first\(index)"), tap("U", "second")])
                #expect(json["accepted"] == .int(1) && json["conflicts"] == .int(1), "\(json)")
            }
            #expect(try daemon.stop() == .code(0))
            try daemon.start()
            for (index, app) in apps.enumerated() {
                let json = try app.store([
                    tap("U", "third"), tap("U", "first\(index)"), tap("U", "first\(1 - index)"),
                ])
                #expect(json["accepted"] == .int(0) && json["duplicates"] == .int(1), "\(json)")
                #expect(json["conflicts"] == .int(2), "\(json)")
                #expect(try app.stored("campaign_id") == [["first\(index)"]])
                let conflicts = try daemon.sql().rows(
                    "SELECT body::jsonb->>'campaign_id' FROM tapline.conflict "
                        + "WHERE app = '\(app.name)' ORDER BY 1")
                #expect(conflicts == [["first\(1 - index)"], ["second"], ["third"]])
            }
            #expect(try daemon.stop() == .code(0))
        }

        // A batch of as many rows as 16 bits count, and of one more, with a line and a text that would
        // end a COPY of text.
        @Test(arguments: [65_535, 65_536]) func aBatchOfManyRowsIsStoredWhole(rows: Int) throws {
            let cluster = try Cluster()
            // Full with the last row, and taken for no other reason.
            let daemon = try Daemon(
                database: cluster.conninfo(),
                settings: ["load.batch_rows_max": "\(rows)", "load.batch_age_ms": "60000"]
            ).start()
            let app = try App(daemon)
            let end = #"\."#
            // The daemon learns of the key while there is a database.
            #expect(try app.post(end).json["rejected"] == .int(1))
            try cluster.stop(.fast)
            var uids = [end] + (1..<rows).map { "m\($0)" }
            let all = Set(uids)
            while !uids.isEmpty {
                var lines = uids.prefix(9_000).map { App.click($0) }
                uids.removeFirst(lines.count)
                lines.insert(end, at: lines.count / 2)
                let answer = try app.post(lines.joined(separator: "\n"))
                #expect(try answer.json["accepted"] == .int(Int64(lines.count - 1)))
                #expect(try answer.json["rejected"] == .int(1))
            }
            try cluster.start()
            #expect(try app.storedCount() == rows)
            let stored = Set(try app.stored("message_uid").compactMap { $0[0] })
            #expect(stored == all)
            #expect(try daemon.sql().int("SELECT max(rows) FROM tapline.batch") == rows)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test(arguments: [false, true]) func differentPropertiesUnderOneEventUIDAreAConflict(
            areEqual: Bool
        ) throws {
            let app = try Shared.app()
            let properties = areEqual ? #"{ "b" : [1, 2], "a":"\u0041" }"# : #"{"a":"A","b":[2,1]}"#
            try app.store([App.click("m", #","event_uid":"U","properties":{"a":"A","b":[1,2]}"#)])
            let again = App.click("m", #","event_uid":"U","properties":\#(properties)"#)
            let json = try app.store([again])
            #expect(json[areEqual ? "duplicates" : "conflicts"] == .int(1))
        }

        @Test func aRestampedRetryIsADuplicateAndAnotherTapIsNot() throws {
            let app = try Shared.app()
            try app.store([App.click("m", #","event_uid":"1","occurred_at":1700000000"#)])
            let json = try app.store([
                App.click("m", #","event_uid":"1","occurred_at":1700000099,"sent_at":1700000100"#),
                App.click("m", #","event_uid":"2""#),
                #"{"type":"CLICK","message_uid":"m","device_id":"d","insert_id":"1"}"#,
            ])
            #expect(json["accepted"] == .int(1) && json["duplicates"] == .int(2))
        }
    }
}
