import Foundation
import Testing

extension SystemTests {
    /// `tapline dlq`: each dead letter gets its new verdict exactly once, and the books balance.
    @Suite struct DeadLetterTests {
        /// A daemon that has made dead letters of what names campaign `poison` or `worse`.
        private struct Rig {
            let cluster: Cluster
            let daemon: Daemon
            let app: App
            let sql: SQL

            init(_ poisoned: [String]) throws {
                cluster = try Cluster()
                daemon = try Daemon(
                    database: cluster.conninfo(), settings: ["load.batch_age_ms": "5"]
                ).start()
                app = try App(daemon)
                try app.store([App.click("first")])
                sql = try daemon.sql()
                try sql.rows(
                    "ALTER TABLE tapline.event_1 ADD CONSTRAINT poison "
                        + "CHECK (campaign_id NOT IN ('poison', 'worse'))")
                let json = try app.store(poisoned)
                guard json["dead_lettered"].int == Int64(poisoned.count) else {
                    throw Failure("not all are dead letters: \(json)", isFinal: true)
                }
            }

            func mend() throws {
                try sql.rows("ALTER TABLE tapline.event_1 DROP CONSTRAINT poison")
            }

            func dlq(_ arguments: [String]) throws -> Outcome {
                try Tapline.run(["dlq"] + arguments + daemon.store)
            }

            func letters() throws -> [String] {
                try sql.rows("SELECT id FROM tapline.dead_letter ORDER BY id").compactMap { $0[0] }
            }

            /// The terms of the books, which have to balance.
            func books(isQuiet: Bool = true) throws -> [String: Int64] {
                let (exit, books) = try daemon.check()
                #expect(exit == .code(0) && books["balanced"] == .bool(true), "\(books)")
                let counters = try sql.rows(
                    "SELECT sum(stored), sum(duplicate), sum(conflict), sum(dead_lettered) "
                        + "FROM tapline.spool")
                let counted = ["stored", "duplicate", "conflict", "dead_lettered"].map {
                    books[$0].int.map(String.init)
                }
                // Only where nothing is loaded between the two looks.
                if isQuiet { #expect(counters == [counted], "as the counters have it") }
                let names = CheckTests.terms + ["received", "removed"]
                return Dictionary(uniqueKeysWithValues: names.map { ($0, books[$0].int ?? -1) })
            }

            /// Waits until a replay waits for a lock that the test holds.
            func waitUntilReplayIsBlocked() throws {
                try until("the replay waits for a lock") {
                    // Daemons wait for the same, so it is known by what no daemon has.
                    try SQL(cluster.conninfo()).int(
                        """
                        SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
                        WHERE l.locktype = 'advisory' AND a.wait_event_type = 'Lock' AND l.granted
                            AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(
                                '00000000-0000-0000-0000-000000000000', 0)
                        """) == 1 ? true : nil
                }
            }
        }

        private static func poison(_ uid: String, campaign: String = "poison") -> String {
            App.click(uid, #","event_uid":"\#(uid)","campaign_id":"\#(campaign)""#)
        }

        @Test func aReplayGivesEachLetterItsVerdictAndTheBooksBalanceThroughout() throws {
            let rig = try Rig([
                Self.poison("p0"), Self.poison("p1"), Self.poison("p2"),
                Self.poison("p3", campaign: "worse"),
            ])
            let ids = try rig.letters()
            let before = try rig.books()
            #expect(before["dead_lettered"] == 4)
            // Nothing is mended yet: all stay, and nothing is stored.
            let early = try rig.dlq(["replay", "--all", "--format", "ndjson"])
            #expect(early.exit == .code(1))
            #expect(try rig.letters() == ids)
            #expect(try rig.books() == before)

            try rig.app.store([
                App.click("p1", #","event_uid":"p1""#),
                App.click("p2", #","event_uid":"p2","campaign_id":"fine""#),
            ])
            try rig.mend()
            try rig.sql.rows(
                "ALTER TABLE tapline.event_1 ADD CONSTRAINT other CHECK (campaign_id <> 'worse')")
            let between = try rig.books()
            let outcome = try rig.dlq(["replay", "--all", "--format", "json"])
            let items = try JSON(parsing: outcome.output.utf8).items
            #expect(items.map { $0["id"].int.map(String.init) } == ids)
            #expect(
                items.map { $0["outcome"].text }
                    == ["stored", "duplicate", "conflict", "dead_letter_again"])
            #expect(items.last?["reason"].text?.contains("\"other\"") == true, "\(items)")
            #expect(outcome.exit == .code(1), "one is still a dead letter")
            let after = try rig.books()
            for (term, change) in [
                "stored": 1, "duplicate": 1, "conflict": 1, "dead_lettered": -3, "received": 0,
                "rejected": 0, "removed": 0,
            ] as [String: Int64] {
                #expect(after[term] == (between[term] ?? 0) + change, "\(term)")
            }
            #expect(try rig.letters() == [ids[3]])
            let reason = try rig.sql.value("SELECT reason FROM tapline.dead_letter")
            #expect(reason?.contains("\"other\"") == true)
            let conflicts = try rig.sql.rows(
                "SELECT times, body::jsonb->>'campaign_id' FROM tapline.conflict")
            #expect(conflicts == [["1", "poison"]])
            #expect(
                try rig.app.stored("message_uid, campaign_id")
                    == [["first", nil], ["p0", "poison"], ["p1", nil], ["p2", "fine"]])
            // The daemon that ran all the while knows of what was stored beside it.
            let again = try rig.app.store([Self.poison("p0"), App.click("last")])
            #expect(again["accepted"] == .int(1) && again["duplicates"] == .int(1), "\(again)")
            let report = try Tapline.run(["report", "--format", "json"] + rig.daemon.store)
            let json = try JSON(parsing: report.output.utf8)
            #expect(json["totals"]["clicked"] == .int(5), "\(json["totals"])")
        }

        @Test func aReplayWithoutADaemonStoresAndIsFoundByTheNextOne() throws {
            let rig = try Rig([Self.poison("p0"), Self.poison("p1")])
            #expect(try rig.daemon.stop() == .code(0))
            try rig.mend()
            let ids = try rig.letters()
            let outcome = try rig.dlq(["replay", ids[1], "99999"])
            #expect(outcome.exit == .code(1), "one of them is not there")
            #expect(outcome.output == "\(ids[1])  stored\n99999  not there\n")
            #expect(try rig.letters() == [ids[0]])
            #expect(try rig.books()["stored"] == 2)
            try rig.daemon.start()
            let again = try rig.app.store([Self.poison("p1"), Self.poison("p0")])
            #expect(again["accepted"] == .int(1) && again["duplicates"] == .int(1), "\(again)")
            let last = try rig.dlq(["replay", ids[0]])
            #expect(last.exit == .code(0) && last.output == "\(ids[0])  duplicate\n", "\(last)")
            #expect(try rig.books()["dead_lettered"] == 0)
            #expect(try rig.dlq(["replay", "--all"]).exit == .code(0))
        }

        /// `kill -9` before the turn, and with the rows sent and nothing committed.
        @Test(arguments: [
            "SELECT FROM tapline.turn FOR UPDATE", "SELECT FROM tapline.dead_letter FOR UPDATE",
        ]) func aReplayThatIsKilledHasDoneNothingAndTheNextDoesAllOnce(lock: String) throws {
            let rig = try Rig((0..<50).map { Self.poison("p\($0)") })
            try rig.mend()
            let before = try rig.books()
            let blocker = try rig.daemon.sql()
            try blocker.rows("BEGIN; \(lock)")
            let replay = try Tapline.start(["dlq", "replay", "--all"] + rig.daemon.store)
            try rig.waitUntilReplayIsBlocked()
            replay.signal(SIGKILL)
            #expect(try replay.wait(seconds: 10) == .signal(SIGKILL))
            try blocker.rows("ROLLBACK")
            // Its session ends by itself; until then another replay is refused, and does nothing.
            let next = try until("a replay is let in", interval: 0.1) {
                let outcome = try rig.dlq(["replay", "--all", "--format", "ndjson"])
                return outcome.error.contains("another replay") ? nil : outcome
            }
            #expect(next.exit == .code(0), "\(next)")
            #expect(next.output.split(separator: "\n").count { $0.contains("\"stored\"") } == 50)
            let after = try rig.books()
            #expect(after["stored"] == (before["stored"] ?? 0) + 50)
            #expect(after["duplicate"] == before["duplicate"] && after["dead_lettered"] == 0)
            #expect(try rig.app.count() == 51)
        }

        /// Thousands of letters, a daemon under load, and a replay that is killed over and over.
        @Test func aReplayUnderLoadThatIsKilledOverAndOverStoresEachOnce() throws {
            let count = 2_500
            let rig = try Rig((0..<count).map { Self.poison("p\($0)") })
            try rig.mend()
            let oracle = Oracle(rig.daemon, key: rig.app.key, seed: 31)
            oracle.start(connections: 4)
            defer { oracle.abandon() }
            try oracle.waitForMore(500)
            var rounds = 0
            while try !rig.letters().isEmpty {
                rounds += 1
                let replay = try Tapline.start(["dlq", "replay", "--all"] + rig.daemon.store)
                // Once a part is done the next one is under way.
                try until("the replay has done a part", seconds: 60) {
                    replay.exit != nil || !replay.output.isEmpty ? true : nil
                }
                replay.signal(SIGKILL)
                _ = try replay.wait(seconds: 10)
                #expect(try rig.books(isQuiet: false)["removed"] == 0)
                try #require(rounds < 100)
            }
            try oracle.waitForMore(500)
            try oracle.stop()
            try rig.daemon.waitUntilLoaded()
            let rows = try rig.sql.rows(
                """
                SELECT count(*), count(DISTINCT event_uid) FROM tapline.event
                WHERE campaign_id = 'poison'
                """)
            #expect(rows == [["\(count)", "\(count)"]])
            #expect(try rig.books()["dead_lettered"] == 0)
            try rig.sql.rows("DELETE FROM tapline.event WHERE campaign_id = 'poison'")
            try rig.sql.rows("DELETE FROM tapline.event WHERE message_uid = 'first'")
            try oracle.verify(rig.sql, app: rig.app.name)
        }

        @Test func aLetterThatIsPurgedWhileItIsReplayedIsNotStored() throws {
            let rig = try Rig((0..<3).map { Self.poison("p\($0)") })
            try rig.mend()
            let ids = try rig.letters()
            let blocker = try rig.daemon.sql()
            try blocker.rows("BEGIN; SELECT FROM tapline.turn FOR UPDATE")
            let replay = try Tapline.start(["dlq", "replay", "--all"] + rig.daemon.store)
            try rig.waitUntilReplayIsBlocked()
            #expect(try rig.dlq(["purge", ids[1], "--yes"]).exit == .code(0))
            try blocker.rows("COMMIT")
            #expect(try replay.wait(seconds: 60) == .code(0))
            #expect(replay.output == "\(ids[0])  stored\n\(ids[2])  stored\n", "\(replay.error)")
            #expect(try rig.app.stored("message_uid") == [["first"], ["p0"], ["p2"]])
            let books = try rig.books()
            #expect(books["dead_lettered"] == 1 && books["removed"] == 1)
        }

        @Test func aPurgeAsksFirstAndWhatItRemovesStaysCounted() throws {
            let rig = try Rig((0..<4).map { Self.poison("p\($0)") })
            let ids = try rig.letters()
            let before = try rig.books()
            let asked = try rig.dlq(["purge", "--all"])
            #expect(asked.exit == .code(2) && asked.error.contains("4 dead letters"), "\(asked)")
            #expect(try rig.letters() == ids)
            #expect(try rig.dlq(["purge", ids[0], ids[2], "--yes"]).exit == .code(0))
            #expect(try rig.letters() == [ids[1], ids[3]])
            try rig.sql.rows(
                "UPDATE tapline.dead_letter SET stored_at = stored_at - interval '2 days' "
                    + "WHERE id = \(ids[1])")
            #expect(try rig.dlq(["purge", "--older-than", "1d", "--yes"]).exit == .code(0))
            #expect(try rig.letters() == [ids[3]])
            var after = try rig.books()
            #expect(after["removed"] == 3)
            after["removed"] = 0
            #expect(after == before)
            let wrong = [
                ["purge", "--yes"], ["purge", "1", "--all"], ["replay"], ["replay", "x"],
            ]
            for arguments in wrong {
                #expect(try rig.dlq(arguments).exit == .code(2), "\(arguments)")
            }
        }

        @Test func aListFitsTheTerminalAndShowGivesTheLineBack() throws {
            let text = String(repeating: #"é\n"#, count: 90)
            let line = App.click(
                "p0", #","campaign_id":"poison","properties":{"text":"\#(text)"}"#)
            let rig = try Rig([line, Self.poison("p1")])
            let ids = try rig.letters()
            let table = try rig.dlq(["list"])
            let rows = table.output.split(separator: "\n")
            #expect(rows.count == 4 && rows.allSatisfy { $0.count <= 80 }, "\(table.output)")
            #expect(rows[0].hasPrefix("\(ids[0])  ") && rows[0].contains("23514"))
            let list = try JSON(parsing: try rig.dlq(["list", "--format", "json"]).output.utf8)
            #expect(list.items.map { $0["sqlstate"].text } == ["23514", "23514"])
            #expect(list.items.map { $0["app"].text } == [rig.app.name, rig.app.name])
            let lines = try rig.dlq(["list", "--format", "ndjson", "--app", rig.app.name]).output
            let objects = try lines.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
            #expect(objects == list.items)
            #expect(try rig.dlq(["list", "--format", "json", "--app", "none"]).output == "[]\n")
            let shown = try rig.dlq(["show", ids[0]])
            let last = try #require(shown.output.split(separator: "\n").last)
            #expect(try JSON(parsing: last.utf8) == JSON(parsing: line.utf8))
            #expect(try rig.dlq(["show", "99999"]).exit == .code(1))
        }
    }
}
