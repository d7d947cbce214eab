import Foundation
import Testing

extension SystemTests {
    /// Somebody drops a partition of the event table, with its rows, or detaches it, while daemons load.
    @Suite struct PartitionTests {
        private struct Rig {
            let cluster: Cluster
            let daemon: Daemon
            let app: App
            let oracle: Oracle
            let sql: SQL

            init(seed: UInt64) throws {
                cluster = try Cluster()
                daemon = try Daemon(
                    database: cluster.conninfo(),
                    settings: ["load.batch_age_ms": "5", "load.segment_rows_max": "500"]
                ).start()
                app = try App(daemon)
                oracle = Oracle(daemon, key: app.key, seed: seed)
                sql = try SQL(cluster.conninfo())
            }

            /// Stores events in a partition, which is closed by them if so wanted.
            func fill(isOpen: Bool) throws -> [String] {
                let lines = (0..<(isOpen ? 100 : 600)).map { Oracle.line("f\($0)") }
                try app.store(lines)
                if !isOpen {
                    try until("it is closed") {
                        try sql.int("SELECT segment FROM tapline.turn") == 2 ? true : nil
                    }
                }
                return lines
            }

            func count() throws -> Int { try sql.int("SELECT count(*) FROM tapline.event") }

            /// Drops the partition that a query names; how many rows are lost with it.
            func drop(_ query: String) throws -> Int {
                try take(query) { "DROP TABLE tapline.event_\($0)" }.rows
            }

            /// Detaches the partition that a query names.
            func detach(_ query: String) throws -> (number: String, rows: Int) {
                try take(query) {
                    "ALTER TABLE tapline.event DETACH PARTITION tapline.event_\($0)"
                }
            }

            /// Takes the partition that a query names away between two batches, so that it is sure how many
            /// rows go with it.
            private func take(
                _ query: String, by statement: (String) -> String
            ) throws -> (number: String, rows: Int) {
                try until("it is taken away") {
                    do {
                        try sql.rows("BEGIN; SELECT FROM tapline.turn FOR UPDATE")
                        guard let number = try sql.value(query) else {
                            try sql.rows("ROLLBACK")
                            return nil
                        }
                        let rows = try sql.int("SELECT count(*) FROM tapline.event_\(number)")
                        try sql.rows("\(statement(number)); COMMIT")
                        return (number, rows)
                    } catch {
                        try sql.rows("ROLLBACK")
                        throw error
                    }
                }
            }

            /// Sends all again that was acknowledged, in bodies within the limit of lines: each is a repeat.
            func expectAllIsKnown() throws {
                let old = oracle.acknowledged.sorted()
                for start in stride(from: 0, to: old.count, by: 5_000) {
                    let part = old[start..<min(start + 5_000, old.count)]
                    let answer = try app.store(part.map(Oracle.line))
                    #expect(answer["duplicates"].int == Int64(part.count), "\(answer)")
                }
            }

            static func query(isOpen: Bool) -> String {
                isOpen
                    ? "SELECT segment FROM tapline.turn WHERE segment_rows > 0"
                    : "SELECT min(segment) FROM tapline.segment WHERE state <> 'open'"
            }

            /// Waits until the daemon has attached a partition again.
            func waitUntilAttached(_ number: String) throws {
                try until("it is attached\n\(daemon.log)") {
                    try sql.value(
                        """
                        SELECT 1 FROM pg_inherits
                        WHERE inhrelid = 'tapline.event_\(number)'::regclass AND NOT inhdetachpending
                        """) == nil ? nil : true
                }
            }
        }

        /// Loading goes on, `check` counts what is missing, a replay brings it back, and nothing is doubled.
        @Test(arguments: [true, false]) func aPartitionThatIsDroppedUnderLoadIsMissedAndComesBack(
            isOpen: Bool
        ) throws {
            let rig = try Rig(seed: isOpen ? 71 : 72)
            let (daemon, sql) = (rig.daemon, rig.sql)
            rig.oracle.start(connections: 4)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(1_200)
            let lost = try rig.drop(Rig.query(isOpen: isOpen))
            #expect(lost > 0)
            try rig.oracle.waitForMore(1_000)
            try rig.oracle.stop()
            try daemon.waitUntilLoaded()
            let count = try rig.count()
            let (exit, books) = try daemon.check()
            #expect(exit == .code(1) && books["difference"] == .int(Int64(lost)), "\(books)")
            let table = try Tapline.run(["check"] + daemon.store)
            #expect(
                table.output.contains("\(lost) events that were received are missing"), "\(table)")

            let replay = try Tapline.run(["replay", "--format", "json"] + daemon.store)
            let replayed = try JSON(parsing: replay.output.utf8)
            // Clients repeat the event before; where that was lost, it is stored when it comes again.
            let again = lost - Int(replayed["stored"].int ?? 0)
            #expect(replay.isSuccess && 0...4 ~= again, "\(replay)")
            #expect(try rig.count() == count + lost - again)
            #expect(try daemon.check().books["difference"] == .int(Int64(again)))
            // As docs/operations.md says.
            try sql.rows(
                "UPDATE tapline.removed SET events = events + \(again) WHERE term = 'stored'")
            let balanced = try daemon.check()
            #expect(balanced.exit == .code(0), "\(balanced.books)")
            let rebuilt = try Tapline.run(["rebuild"] + daemon.store)
            #expect(rebuilt.isSuccess, "\(rebuilt)")
            let proof = try Tapline.run(["check", "--reports"] + daemon.store)
            #expect(proof.isSuccess, "\(proof)")
            // All of it once, and known again: what is sent once more is a repeat.
            try rig.oracle.verify(sql, app: rig.app.name)
            try rig.expectAllIsKnown()
            #expect(try daemon.check().exit == .code(0))
            // By the daemon or, where it has asked nothing of a closed one, by the replay.
            let said = (daemon.log + replay.error).split(separator: "\n").count {
                $0.contains("ERROR partition tapline.event_")
                    && $0.contains("with its \(lost) events")
            }
            #expect(said == 1, "\(daemon.log)\(replay)")
            #expect(try daemon.stop() == .code(0))
        }

        /// Nobody has to know what was lost: a replay by itself makes the books balance.
        @Test(arguments: [true, false]) func aReplayOfWhatWasLostBalancesTheBooks(
            isOpen: Bool
        ) throws {
            let rig = try Rig(seed: 74)
            let lines = try rig.fill(isOpen: isOpen)
            // It was received before the loss, too.
            try rig.app.store([lines[0], "{}"])
            #expect(try rig.drop("SELECT 1") == lines.count)
            let lost = try rig.daemon.check()
            #expect(lost.books["difference"] == .int(Int64(lines.count)), "\(lost.books)")
            for stored in [lines.count, 0] {
                let replay = try Tapline.run(["replay", "--format", "json"] + rig.daemon.store)
                let replayed = try JSON(parsing: replay.output.utf8)
                #expect(replayed["stored"] == .int(Int64(stored)), "\(replay)")
                let (exit, books) = try rig.daemon.check()
                #expect(exit == .code(0) && books["difference"] == .int(0), "\(books)")
                #expect(books["stored"] == .int(Int64(lines.count)), "\(books)")
            }
            // The daemon has noticed that another session has stored them.
            #expect(try rig.app.store(lines)["duplicates"] == .int(Int64(lines.count)))
            try rig.app.store([App.click("after")])
            #expect(try rig.daemon.check().exit == .code(0))
            #expect(try rig.daemon.stop() == .code(0))
        }

        /// Whoever sends a lost event again has it stored: nothing is a repeat of what is not there.
        @Test(arguments: [true, false]) func whatIsSentAgainAfterItsPartitionIsGoneIsStored(
            isOpen: Bool
        ) throws {
            let rig = try Rig(seed: 73)
            let lines = try rig.fill(isOpen: isOpen)
            #expect(try rig.drop("SELECT 1") == lines.count)
            let again = try rig.app.store(lines)
            #expect(again["accepted"].int == Int64(lines.count), "\(again)\n\(rig.daemon.log)")
            let third = try rig.app.store(lines)
            #expect(third["duplicates"].int == Int64(lines.count), "\(third)")
            #expect(try rig.count() == lines.count)
            #expect(try rig.daemon.stop() == .code(0))
        }

        // MARK: Detached

        /// Loading and dedupe go on as if it were there, and the daemon attaches it again.
        @Test(arguments: [true, false]) func aPartitionThatIsDetachedUnderLoadIsAttachedAgain(
            isOpen: Bool
        ) throws {
            let rig = try Rig(seed: isOpen ? 75 : 76)
            let (daemon, sql) = (rig.daemon, rig.sql)
            rig.oracle.start(connections: 4)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(1_200)
            let detached = try rig.detach(Rig.query(isOpen: isOpen))
            #expect(detached.rows > 0)
            try rig.oracle.waitForMore(1_000)
            try rig.waitUntilAttached(detached.number)
            try rig.oracle.waitForMore(500)
            try rig.oracle.stop()
            try daemon.waitUntilLoaded()
            try rig.oracle.verify(sql, app: rig.app.name)
            try rig.expectAllIsKnown()
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["detached_segments"].items.isEmpty, "\(books)")
            let proof = try Tapline.run(["check", "--reports"] + daemon.store)
            #expect(proof.isSuccess, "\(proof)")
            #expect(try daemon.metric("tapline_partitions_detached_total") == 1)
            #expect(try daemon.stop() == .code(0))
        }

        /// How a partition gets away from its table, by itself or half.
        enum Detaching: CaseIterable { case whole, interrupted }

        /// Without a daemon the books say what is not to be seen, and commands that need it attach it.
        @Test(arguments: Detaching.allCases, [true, false])
        func whatIsDetachedIsMissedByTheBooksAndNotLost(how: Detaching, isOpen: Bool) throws {
            let rig = try Rig(seed: 77)
            let (daemon, sql) = (rig.daemon, rig.sql)
            let lines = try rig.fill(isOpen: isOpen)
            let reader = try SQL(rig.cluster.conninfo())
            #expect(try daemon.stop() == .code(0))
            func detach() throws {
                guard how == .interrupted else {
                    _ = try rig.detach("SELECT 1")
                    return
                }
                // It waits for whoever reads, and is cancelled meanwhile.
                try reader.rows("BEGIN; SELECT count(*) FROM tapline.event")
                try sql.rows("SET statement_timeout = '100ms'")
                #expect(throws: (any Error).self) {
                    try sql.rows(
                        "ALTER TABLE tapline.event DETACH PARTITION tapline.event_1 CONCURRENTLY")
                }
                try sql.rows("RESET statement_timeout")
                try reader.rows("COMMIT")
            }
            func expectMissing() throws {
                let (exit, books) = try daemon.check()
                #expect(
                    exit == .code(1) && books["difference"] == .int(Int64(lines.count)), "\(books)")
                #expect(books["detached_segments"].items == [.int(1)], "\(books)")
                let table = try Tapline.run(["check"] + daemon.store)
                #expect(
                    table.output.contains("partition tapline.event_1 is detached"), "\(table)")
            }
            func expectBalance(_ error: String) throws {
                #expect(error.contains("was detached with its \(lines.count) events"), "\(error)")
                let proof = try Tapline.run(["check", "--reports"] + daemon.store)
                #expect(proof.isSuccess, "\(proof)")
                #expect(try rig.count() == lines.count)
            }
            try detach()
            try expectMissing()
            let replay = try Tapline.run(["replay", "--format", "json"] + daemon.store)
            let replayed = try JSON(parsing: replay.output.utf8)
            #expect(replay.isSuccess && replayed["stored"] == .int(0), "\(replay)")
            try expectBalance(replay.error)

            try detach()
            let rebuilt = try Tapline.run(["rebuild"] + daemon.store)
            #expect(rebuilt.isSuccess, "\(rebuilt)")
            try expectBalance(rebuilt.error)

            try detach()
            try expectMissing()
            try daemon.start()
            try rig.waitUntilAttached("1")
            #expect(try rig.app.store(lines)["duplicates"] == .int(Int64(lines.count)))
            try expectBalance(daemon.log)
            #expect(try daemon.stop() == .code(0))
        }

        /// All that can go on does, nothing is doubled, and it is attached once it can be.
        @Test(arguments: [true, false]) func aPartitionThatCannotBeAttachedIsSaidAndLosesNothing(
            isOpen: Bool
        ) throws {
            let rig = try Rig(seed: 78)
            let (daemon, sql) = (rig.daemon, rig.sql)
            let lines = try rig.fill(isOpen: isOpen)
            try sql.rows(
                """
                BEGIN; ALTER TABLE tapline.event DETACH PARTITION tapline.event_1;
                ALTER TABLE tapline.event_1 ADD COLUMN odd int; COMMIT
                """)
            let words = "ERROR could not attach partition tapline.event_1 again"
            let metric = "tapline_partitions_detached_total"
            try until("it is tried twice\n\(daemon.log)") {
                try daemon.metric(metric) > 1 ? true : nil
            }
            let said = daemon.log.split(separator: "\n").map(String.init)
            #expect(said.count { $0.contains(words) } == 1, "\(daemon.log)")
            let place = try #require(said.firstIndex { $0.contains(words) })
            #expect(said[place].contains("odd"), "\(said[place])")
            let hint = said.indices.contains(place + 1) ? said[place + 1] : ""
            #expect(hint.hasPrefix("hint: ") && hint.contains("ATTACH PARTITION"), "\(hint)")

            #expect(try rig.app.store(lines)["duplicates"] == .int(Int64(lines.count)))
            #expect(try rig.app.store([App.click("fresh")])["accepted"] == .int(1))
            #expect(try daemon.check().exit == .code(1))
            try sql.rows("ALTER TABLE tapline.event_1 DROP COLUMN odd")
            try rig.waitUntilAttached("1")
            #expect(try rig.app.store(lines)["duplicates"] == .int(Int64(lines.count)))
            #expect(try rig.count() == lines.count + 1)
            #expect(try daemon.check().exit == .code(0), "\(daemon.log)")
            #expect(try daemon.stop() == .code(0))
        }
    }
}
