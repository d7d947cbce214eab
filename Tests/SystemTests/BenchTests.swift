import Foundation
import Testing

extension SystemTests {
    /// `tapline bench` proves a run, and finds whatever is wrong with one.
    @Suite struct BenchTests {
        /// A run that is over, on a database of its own, and what can be done to it.
        struct Run {
            let cluster: Cluster
            let daemon: Daemon
            let app: App
            let bench: BenchProcess
            let sql: SQL

            init(events: Int = 4000) throws {
                cluster = try Cluster()
                daemon = try Daemon(database: cluster.conninfo()).start()
                app = try App(daemon)
                bench = try BenchProcess(
                    [daemon], key: app.key, events: events,
                    ["--seed", "255", "--shuffle", "--resend", "30", "--delay", "3d"])
                let summary = try bench.finish()
                #expect(summary["acknowledged"] == .int(Int64(events)), "\(summary)")
                #expect(summary["complete"] == .bool(true), "\(summary)")
                #expect(summary["resent"].int ?? 0 > 0, "\(summary)")
                try daemon.waitUntilLoaded()
                sql = try daemon.sql()
            }

            func verify(_ options: [String] = []) throws -> (exit: Exit, verdict: JSON) {
                try bench.verify(daemon, options)
            }

            /// Runs `change`, checks what the verdict then says, and takes it back.
            func expect(
                _ change: String, on condition: String, broken: [String], _ count: String?,
                says words: [String], sourceLocation: SourceLocation = #_sourceLocation
            ) throws {
                let table = "tapline.event WHERE \(condition)"
                try sql.rows("CREATE TABLE kept AS SELECT * FROM \(table)")
                let kept = try sql.int("SELECT count(*) FROM kept")
                #expect(kept == 1, "\(condition)", sourceLocation: sourceLocation)
                try sql.rows(change)
                let (exit, verdict) = try verify()
                #expect(exit == .code(1), "\(change)", sourceLocation: sourceLocation)
                #expect(brokenLaws(verdict) == broken, "\(verdict)", sourceLocation: sourceLocation)
                if let count {
                    #expect(verdict[count] == .int(1), "\(verdict)", sourceLocation: sourceLocation)
                }
                let said = broken.flatMap { breaches(verdict, $0) }.joined(separator: "\n")
                for word in words {
                    #expect(said.contains(word), "\(said)", sourceLocation: sourceLocation)
                }
                try sql.rows(
                    """
                    DELETE FROM tapline.event WHERE key IN (SELECT key FROM kept)
                        OR event_uid = 'bench-ff-e4007';
                    INSERT INTO tapline.event SELECT * FROM kept;
                    DROP TABLE kept
                    """)
                let holds = try verify().verdict["holds"]
                #expect(holds == .bool(true), sourceLocation: sourceLocation)
            }
        }

        @Test func aRunIsProvenAndWhateverIsWrongWithItIsNamed() throws {
            let run = try Run()
            let (exit, verdict) = try run.verify(["--url", run.daemon.url, "--key", run.app.key])
            #expect(exit == .code(0), "\(verdict)")
            #expect(verdict["laws"].items.map { $0["law"].text } == (1...7).map { "L\($0)" })
            #expect(verdict["laws"].items.allSatisfy { $0["holds"] == .bool(true) }, "\(verdict)")
            #expect(verdict["stored"] == .int(4000), "\(verdict)")

            // Number 15 is the last of a story: a screen view with an id of its own.
            let view = "event_uid = 'bench-ff-e15'"
            let state = "message_uid = 'bench-ff-m2' AND type = 1"
            try run.expect(
                "DELETE FROM tapline.event WHERE \(view)", on: view, broken: ["L1", "L4"],
                "missing",
                says: ["missing: event 15, screen_view", "bench-ff-m1", "bench-ff-e15"])
            try run.expect(
                "INSERT INTO tapline.event SELECT * FROM kept", on: view, broken: ["L1", "L4"],
                "doubled", says: ["doubled: event 15, screen_view"])
            try run.expect(
                "INSERT INTO tapline.event SELECT * FROM kept", on: state, broken: ["L1", "L4"],
                "doubled", says: ["doubled: event 16, sent, message_uid bench-ff-m2"])
            let changes = [
                (#"properties = replace(properties, '"n":15', '"n":16')"#, "properties"),
                ("properties = NULL", "properties"), ("properties = 'no JSON'", "properties"),
                ("app = 'other'", "app"), ("country = 'XX'", "country"),
                ("event_time = event_time + interval '1 ms'", "event_time"),
                ("silent = true", "another field"), ("campaign_id = 'c'", "campaign_id"),
                ("type_raw = 'Screen_view'", "type_raw"), ("time_rule = 2", "time_rule"),
            ]
            for (change, column) in changes {
                try run.expect(
                    "UPDATE tapline.event SET \(change) WHERE \(view)", on: view, broken: ["L2"],
                    "altered", says: ["altered: event 15, screen_view", ": \(column)"])
            }
            try run.expect(
                """
                UPDATE kept SET event_uid = 'bench-ff-e4007';
                INSERT INTO tapline.event SELECT * FROM kept;
                UPDATE kept SET event_uid = 'bench-ff-e15'
                """, on: view, broken: ["L2", "L4"], "unknown",
                says: ["never sent: message_uid bench-ff-m1, event_uid bench-ff-e4007"])
        }

        @Test func propertiesThatAreTheSameJSONAreNotAltered() throws {
            let run = try Run()
            try run.sql.rows(
                "UPDATE tapline.event SET properties = properties::jsonb::text "
                    + "WHERE starts_with(message_uid, 'bench-ff-')")
            let (exit, verdict) = try run.verify()
            #expect(exit == .code(0) && verdict["altered"] == .int(0), "\(verdict)")
        }

        @Test func aReportThatCountsOtherwiseIsFound() throws {
            let run = try Run()
            for column in ["clicks", "units"] {
                let cell = "SELECT ctid FROM tapline.cell_campaign WHERE clicks > 0 LIMIT 1"
                try run.sql.rows(
                    "UPDATE tapline.cell_campaign SET \(column) = \(column) + 1 WHERE ctid = (\(cell))"
                )
                let (exit, verdict) = try run.verify()
                #expect(exit == .code(1))
                #expect(brokenLaws(verdict) == ["L7"], "\(verdict)")
                #expect(breaches(verdict, "L7").first?.contains("campaign bench-ff-c") == true)
                try run.sql.rows("SELECT tapline.rebuild_cells()")
                #expect(try run.verify().exit == .code(0))
            }
        }

        @Test func aDeadLetterIsNotLostAndItsReasonIsShown() throws {
            let run = try Run()
            try run.sql.rows(
                """
                WITH gone AS (DELETE FROM tapline.event WHERE event_uid = 'bench-ff-e15' RETURNING *)
                INSERT INTO tapline.dead_letter (key, app, sqlstate, reason, body, received_at)
                SELECT key, app, '22P05', 'unsupported', json_build_object('type', type_raw,
                    'message_uid', message_uid, 'event_uid', event_uid)::jsonb::text, received_at
                FROM gone
                """)
            let (exit, verdict) = try run.verify()
            #expect(exit == .code(0), "\(verdict)")
            #expect(verdict["dead_lettered"] == .int(1) && verdict["missing"] == .int(0))
            let detail = verdict["laws"][0]["detail"].text
            #expect(detail?.contains("22P05 unsupported") == true, "\(verdict)")
        }

        @Test func whatALogDoesNotSayIsStoredOnceOrNotAtAll() throws {
            let run = try Run()
            let lines = try String(contentsOfFile: run.bench.log, encoding: .utf8)
                .split(separator: "\n")
            let acks = lines.filter { $0.hasPrefix("ack ") }
            // The run died before it wrote down half of the answers, and in the middle of a line.
            let cut = lines.filter { !acks.dropFirst(20).contains($0) && $0 != "end" }
            try Data((cut.joined(separator: "\n") + "\nack 1").utf8)
                .write(to: URL(fileURLWithPath: run.bench.log))
            let (exit, verdict) = try run.verify()
            #expect(exit == .code(0), "\(verdict)")
            #expect(verdict["acknowledged"] == .int(2000) && verdict["stored"] == .int(4000))
            // A body that the log does not know of is not missed, and once more is too often.
            let open = Set(acks.dropFirst(20).map { $0.dropFirst(4) })
            #expect(open.count == 20)
            try run.sql.rows(
                """
                INSERT INTO tapline.event SELECT * FROM tapline.event
                WHERE starts_with(message_uid, 'bench-ff-')
                """)
            let doubled = try run.verify()
            #expect(brokenLaws(doubled.verdict).starts(with: ["L1", "L3", "L4"]), "\(doubled)")
        }

        @Test func bodiesSplitOverTwoDaemonsAreStoredOnceThoughOneIsKilled() throws {
            let first = try Daemon(database: try Shared.daemon.conninfo).start()
            let second = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(first)
            let bench = try BenchProcess(
                [first, second], key: app.key, events: 30000, ["--connections", "8"])
            try bench.wait(untilAcknowledged: 50)
            try second.kill()
            let summary = try bench.finish()
            #expect(summary["acknowledged"] == .int(30000), "\(summary)")
            #expect(summary["retries"].int ?? 0 > 0, "\(summary)")
            try first.waitUntilLoaded()
            // What the second one acknowledged is in its spool, which is read itself: the database may
            // not have heard of it yet.
            try second.start()
            let (exit, verdict) = try bench.verify(second)
            #expect(exit == .code(0), "\(verdict)")
            #expect(try first.stop() == .code(0))
            #expect(try second.stop() == .code(0))
        }

        @Test func aStormOfClientsThatNeverWaitCostsNothing() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            let bench = try BenchProcess(
                [daemon], key: app.key, events: 10000, ["--storm", "16", "--rate", "10000"])
            let summary = try bench.finish()
            #expect(summary["acknowledged"] == .int(10000), "\(summary)")
            #expect(summary["storm_acknowledged"].int ?? 0 > 0, "\(summary)")
            try daemon.waitUntilLoaded()
            let (exit, verdict) = try bench.verify(daemon)
            #expect(exit == .code(0) && verdict["stored"] == .int(10000), "\(verdict)")
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aDaemonThatAsksForTimeGetsIt() throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo,
                settings: ["http.key_requests_per_second_max": "10"]
            ).start()
            let app = try App(daemon)
            let bench = try BenchProcess(
                [daemon], key: app.key, events: 4000, ["--connections", "4"])
            let summary = try bench.finish()
            #expect(summary["acknowledged"] == .int(4000), "\(summary)")
            // Each refusal silences all four connections for a second, in which ten more may come:
            // clients that would not wait are refused several times as often as they are heard.
            let retries = try #require(summary["retries"].int)
            #expect(retries > 0 && retries <= 40, "\(summary)")
            #expect(try bench.verify(daemon).exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func whatCannotBeRunOrCheckedIsSaid() throws {
            let daemon = try Shared.daemon
            let store = daemon.store
            let directory = TemporaryDirectory()
            let foreign = try directory.file(
                "foreign.log",
                "tapline-bench 1 seed=1 events=10 batch=5 start=0 delay=0 shuffle=0 key=00\n")
            let cases: [([String], Int32, String)] = [
                (["--events", "1", "--url", daemon.url], 2, "key"),
                (["--key", "k", "--url", "ftp://x"], 2, "ftp://x"),
                (["--key", "k", "--url", daemon.url, "--events", "1"], 1, "401"),
                (["--key", "k", "--url", daemon.url, "--log", foreign], 1, "exists"),
                (["--verify"] + store, 2, "--log"),
                (["--verify", "--log", directory.path + "/none"] + store, 1, "none"),
                (["--verify", "--log", foreign] + store, 1, "is not in this database"),
                (["--verify", "--log", try directory.file("x", "x\n")] + store, 1, "line 1"),
                (["--events", "0"], 2, "--events"),
            ]
            for (options, code, word) in cases {
                let outcome = try Tapline.run(["bench"] + options)
                #expect(outcome.exit == .code(code), "\(options): \(outcome)")
                #expect(outcome.error.contains(word), "\(options): \(outcome)")
            }
        }
    }
}
