import Foundation
import Testing

extension SystemTests {
    /// Somebody drops a partition of the event table, with its rows, while daemons load.
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
                try until("it is dropped") {
                    do {
                        // Between two batches, so that it is sure what is lost.
                        try sql.rows("BEGIN; SELECT FROM tapline.turn FOR UPDATE")
                        guard let number = try sql.value(query) else {
                            try sql.rows("ROLLBACK")
                            return nil
                        }
                        let lost = try sql.int("SELECT count(*) FROM tapline.event_\(number)")
                        try sql.rows("DROP TABLE tapline.event_\(number); COMMIT")
                        return lost
                    } catch {
                        try sql.rows("ROLLBACK")
                        throw error
                    }
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
            let lost = try rig.drop(
                isOpen
                    ? "SELECT segment FROM tapline.turn WHERE segment_rows > 0"
                    : "SELECT min(segment) FROM tapline.segment WHERE state <> 'open'")
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
            let old = rig.oracle.acknowledged.sorted()
            let answer = try rig.app.store(old.map(Oracle.line))
            #expect(answer["duplicates"].int == Int64(old.count), "\(answer)")
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
    }
}
