import Foundation
import Testing

extension SystemTests {
    /// A database that was restored from an older backup, and `tapline replay`.
    @Suite struct ReplayTests {
        /// A daemon whose spool has many segments, under load.
        private struct Rig {
            let cluster: Cluster
            let daemon: Daemon
            let app: App
            let oracle: Oracle
            let backup = TemporaryDirectory()

            init(seed: UInt64, keep: String = "24h") throws {
                cluster = try Cluster()
                daemon = try Daemon(
                    database: cluster.conninfo(),
                    settings: [
                        "load.batch_age_ms": "5", "load.segment_rows_max": "500",
                        "spool.segment_bytes_max": "64KiB", "spool.keep": keep,
                    ]
                ).start()
                app = try App(daemon)
                oracle = Oracle(daemon, key: app.key, seed: seed)
            }

            func dump() throws {
                try Tapline.tool([
                    "pg_dump", "-Fc", "-f", backup.path + "/dump", "-d", cluster.conninfo(),
                ])
            }

            /// Puts the backup in the place of the database, changed by some SQL.
            func restore(with change: String? = nil) throws {
                let admin = try SQL(cluster.conninfo("postgres"))
                try admin.rows("CREATE DATABASE restored")
                try Tapline.tool([
                    "pg_restore", "--exit-on-error", "-d", cluster.conninfo("restored"),
                    backup.path + "/dump",
                ])
                if let change { try SQL(cluster.conninfo("restored")).rows(change) }
                try admin.rows("DROP DATABASE tapline WITH (FORCE)")
                try admin.rows("ALTER DATABASE restored RENAME TO tapline")
            }

            func replay(_ arguments: [String] = []) throws -> JSON {
                let outcome = try Tapline.run(
                    ["replay", "--format", "json"] + arguments + daemon.store)
                guard outcome.isSuccess else {
                    // Where one was killed, its session may not have ended yet.
                    throw Failure(
                        "replay: \(outcome)", isFinal: !outcome.error.contains("another"))
                }
                return try JSON(parsing: outcome.output.utf8)
            }

            func expectBalanced(_ comment: Comment) throws {
                let (exit, books) = try daemon.check()
                #expect(
                    exit == .code(0) && books["balanced"] == .bool(true), "\(comment): \(books)")
            }

            /// The uids of the oracle's events in the segments that are kept, which hold properties as sent.
            func spooled() throws -> Set<String> {
                let spool = daemon.directory + "/spool"
                var uids: Set<String> = []
                for name in try segments() {
                    let bytes = try Data(contentsOf: URL(filePath: spool + "/" + name))
                    let text = String(decoding: bytes, as: UTF8.self)
                    for match in text.matches(of: /"uid":"(o[0-9]+-[0-9]+-[0-9]+)"/) {
                        uids.insert(String(match.1))
                    }
                }
                return uids
            }

            func segments() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: daemon.directory + "/spool")
                    .filter { $0.hasSuffix(".seg") }
            }

            /// Every acknowledged event is stored once, and counted once.
            func verify() throws {
                let sql = try SQL(cluster.conninfo())
                try oracle.verify(sql, app: app.name)
                let outcome = try Tapline.run(["report", "--format", "json"] + daemon.store)
                let report = try JSON(parsing: outcome.output.utf8)
                let stored = try sql.int("SELECT count(*) FROM tapline.event")
                #expect(report["totals"]["clicked"] == .int(Int64(stored)), "\(report["totals"])")
            }

            /// The daemon's own figures balance, too.
            func expectMetricsBalance() throws {
                let names = ["stored", "duplicate", "conflict", "rejected", "dead_lettered"]
                // What was spooled before is counted in the background.
                try until("the metrics balance") {
                    let sum = try names.reduce(0.0) {
                        try $0 + daemon.metric("tapline_events_\($1)_total")
                    }
                    let spooled = try daemon.metric("tapline_events_spooled")
                    return try daemon.metric("tapline_events_received_total") == sum + spooled
                        ? true : nil
                }
            }
        }

        @Test(arguments: [true, false]) func afterARestoreEverythingComesBackOnce(
            isRunning: Bool
        ) throws {
            let rig = try Rig(seed: isRunning ? 11 : 12)
            rig.oracle.start(connections: 4)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(1_000)
            // A backup that knows of the spool: events are acknowledged before any is loaded.
            try until("some are loaded") {
                try SQL(rig.cluster.conninfo()).int("SELECT count(*) FROM tapline.event") > 0
                    ? true : nil
            }
            try rig.dump()
            try rig.oracle.waitForMore(1_000)
            try rig.oracle.stop()
            try rig.daemon.waitUntilLoaded()
            try rig.expectBalanced("before")
            try rig.verify()
            if !isRunning { #expect(try rig.daemon.stop() == .code(0)) }
            try rig.restore()
            if !isRunning {
                let lost = try SQL(rig.cluster.conninfo()).int("SELECT count(*) FROM tapline.event")
                #expect(lost < rig.oracle.acknowledged.count, "the backup is older")
                try rig.expectBalanced("restored")
                // All that is loaded, by this database, is there; the rest is the daemon's.
                let replayed = try rig.replay()
                #expect(
                    replayed["stored"] == .int(0) && replayed["more_spooled"] == .bool(true),
                    "\(replayed)")
                try rig.expectBalanced("replayed without a daemon")
                try rig.daemon.start()
            }
            let count = rig.oracle.acknowledged.count
            try until("everything is back", seconds: 60, interval: 0.1) {
                try SQL(rig.cluster.conninfo()).int(
                    "SELECT count(*) FROM tapline.event WHERE event_uid IS NOT NULL") >= count
                    ? true : nil
            }
            try rig.daemon.waitUntilLoaded()
            try rig.expectBalanced("loaded again")
            try rig.expectMetricsBalance()
            try rig.verify()
            let replayed = try rig.replay()
            #expect(replayed["stored"] == .int(0) && replayed["conflict"] == .int(0), "\(replayed)")
            #expect(replayed["duplicate"].int ?? 0 >= count, "\(replayed)")
            #expect(
                replayed["from"] == .int(1) && replayed["more_spooled"] == .bool(false),
                "\(replayed)")
            try rig.expectBalanced("replayed")
            try rig.expectMetricsBalance()
            try rig.verify()
            #expect(try rig.daemon.stop() == .code(0))
            try rig.expectBalanced("stopped")
            try rig.daemon.start()
            try rig.app.store([App.click("last", #","event_uid":"last""#)])
            try rig.expectBalanced("started again")
            try rig.expectMetricsBalance()
        }

        /// The checkpoint of the backup is in a segment that is not kept: all that is there is loaded again.
        @Test(arguments: [true, false]) func aBackupThatIsOlderThanTheSpoolLosesNoneOfWhatIsThere(
            hasCheckpoint: Bool
        ) throws {
            let rig = try Rig(seed: 15, keep: "0s")
            // Without, the backup is from before the first load.
            if !hasCheckpoint { try rig.dump() }
            rig.oracle.start(connections: 4)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(300)
            if hasCheckpoint {
                try until("what is acknowledged begins to be loaded\n\(rig.daemon.log)") {
                    try SQL(rig.cluster.conninfo()).int("SELECT count(*) FROM tapline.batch") > 0
                        ? true : nil
                }
                try rig.dump()
            }
            try rig.oracle.waitForMore(1_500)
            try rig.oracle.stop()
            try rig.daemon.waitUntilLoaded()
            try until("only the newest segment is kept") {
                try rig.segments().count == 1 ? true : nil
            }
            let spooled = try rig.spooled()
            #expect(!spooled.isEmpty)
            // As of a busy daemon, of which the backup was made, long ago.
            try rig.restore(
                with: """
                    UPDATE tapline.spool SET epoch = gen_random_uuid(), published_received = 7,
                        published_spooled = 7, published_oldest = now() - interval '1 hour'
                    """)
            try until("it has noticed\n\(rig.daemon.log)") {
                rig.daemon.log.contains("under a new id") ? true : nil
            }
            try rig.app.store([App.click("last", #","event_uid":"last""#)])
            try rig.daemon.waitUntilLoaded()
            try rig.expectBalanced("loaded again")
            try rig.expectMetricsBalance()
            let rows = try SQL(rig.cluster.conninfo()).rows(
                "SELECT event_uid, count(*) FROM tapline.event GROUP BY 1")
            let stored = Set(rows.compactMap { $0[0] })
            #expect(rows.allSatisfy { $0[1] == "1" }, "stored more than once")
            // Whatever waited under the id before would be said to wait for ever.
            let unloaded = try SQL(rig.cluster.conninfo()).int(
                "SELECT count(*) FROM tapline.spool WHERE segment = 0 AND received = 0")
            #expect(unloaded == 0)
            #expect(try rig.daemon.check().books["other_spools"] == .array([]))
            let waiting = try SQL(rig.cluster.conninfo()).int(
                """
                SELECT count(*) FROM tapline.spool
                WHERE published_oldest < now() - interval '9 min'
                """)
            #expect(waiting == 0)
            #expect(spooled.subtracting(stored).isEmpty, "spooled and not stored")
            // What is neither in the backup nor in the spool is gone, or this would prove nothing.
            #expect(!rig.oracle.acknowledged.subtracting(stored).isEmpty)
            #expect(try rig.daemon.stop() == .code(0))
            try rig.daemon.start()
            try rig.app.store([App.click("more", #","event_uid":"more""#)])
            try rig.expectBalanced("started again")
            try rig.expectMetricsBalance()
        }

        @Test func whatIsMissingIsStoredOnceBesideALoadingDaemonAndAReplayThatIsKilled() throws {
            let rig = try Rig(seed: 13)
            rig.oracle.start(connections: 4)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(1_500)
            let sql = try SQL(rig.cluster.conninfo())
            try until("segments are closed", seconds: 60) {
                try sql.int("SELECT count(*) FROM tapline.segment WHERE state <> 'open'") >= 2
                    ? true : nil
            }
            // A partition is lost.
            try rig.daemon.kill()
            let lost = try sql.int("SELECT count(*) FROM tapline.event_1")
            try sql.rows("TRUNCATE tapline.event_1")
            try rig.daemon.start()
            try rig.oracle.waitForMore(200)
            let blocker = try SQL(rig.cluster.conninfo())
            try blocker.rows("BEGIN; LOCK TABLE tapline.batch IN SHARE MODE")
            let process = try Tapline.start(["replay"] + rig.daemon.store)
            try until("the replay waits in its transaction: \(process.error)", seconds: 60) {
                if let exit = process.exit {
                    throw Failure("the replay ended: \(exit) \(process.error)", isFinal: true)
                }
                // It holds the lock of replays, and has or awaits the turn.
                return try sql.int(
                    """
                    SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
                    WHERE l.locktype = 'advisory' AND a.wait_event_type = 'Lock' AND l.granted
                        AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(
                            '00000000-0000-0000-0000-000000000000', 0)
                    """) == 1 ? true : nil
            }
            process.signal(SIGKILL)
            _ = try process.wait(seconds: 10)
            try blocker.rows("ROLLBACK")
            let replayed = try until("a replay is let in", interval: 0.1) { try rig.replay() }
            #expect(replayed["stored"] == .int(Int64(lost)), "\(replayed)")
            try rig.oracle.stop()
            try rig.daemon.waitUntilLoaded()
            // What was counted of the lost rows is still there: cells are made anew.
            try sql.rows("SELECT tapline.rebuild_cells()")
            try rig.verify()
            try rig.expectMetricsBalance()
            #expect(try rig.replay()["stored"] == .int(0))
            try rig.verify()
        }

        @Test func fromASegmentOnOnlyThoseAreReplayed() throws {
            let rig = try Rig(seed: 14)
            var count = 0
            for index in 0..<6 {
                let (text, lines) = SpoolFaultTests.bulk("r\(index)")
                try rig.app.store(text.split(separator: "\n").map(String.init))
                count += lines
            }
            let all = try rig.replay()
            #expect(all["duplicate"] == .int(Int64(count)) && all["records"] == .int(6), "\(all)")
            let last = try #require(all["to"].int)
            #expect(last >= 3, "several segments")
            let part = try rig.replay(["--from", "\(last)"])
            #expect(part["from"] == .int(last) && part["to"] == .int(last), "\(part)")
            #expect(part["records"].int ?? 0 >= 1 && part["records"].int ?? 9 < 6, "\(part)")
            try rig.expectBalanced("replayed")
            // Unknown, and no longer kept.
            for segment in [last + 1, 999] {
                let outcome = try Tapline.run(
                    ["replay", "--from", "\(segment)"] + rig.daemon.store)
                let text = "segment \(segment) is not kept; kept are 1 to \(last)"
                #expect(outcome.exit == .code(1) && outcome.error.contains(text), "\(outcome)")
            }
            try FileManager.default.removeItem(
                atPath: rig.daemon.directory + "/spool/000000000001.seg")
            let outcome = try Tapline.run(["replay", "--from", "1"] + rig.daemon.store)
            let text = "segment 1 is not kept; kept are 2 to \(last)"
            #expect(outcome.exit == .code(1) && outcome.error.contains(text), "\(outcome)")
        }

        @Test func damageIsCountedAndTheRestIsReplayed() throws {
            let rig = try Rig(seed: 16)
            for index in 0..<6 {
                let (text, _) = SpoolFaultTests.bulk("r\(index)")
                try rig.app.store(text.split(separator: "\n").map(String.init))
            }
            #expect(try rig.replay()["records"] == .int(6))
            /// Overwrites the end of a segment, or all of it.
            func damage(_ segment: Int, _ bytes: Int) throws {
                let file = try FileHandle(
                    forUpdating: URL(
                        filePath: rig.daemon.directory + "/spool/00000000000\(segment).seg"))
                let size = Int(try file.seekToEnd())
                try file.seek(toOffset: UInt64(max(0, size - bytes)))
                try file.write(contentsOf: Data(repeating: 0, count: min(size, bytes)))
                try file.close()
            }
            try damage(1, 10)
            try damage(2, .max)
            let outcome = try Tapline.run(["replay", "--format", "json"] + rig.daemon.store)
            let json = try JSON(parsing: outcome.output.utf8)
            #expect(outcome.exit == .code(1) && json["unreadable"] == .int(2), "\(outcome)")
            #expect(1..<5 ~= json["records"].int ?? 0, "\(json)")
            let text = try Tapline.run(["replay"] + rig.daemon.store)
            #expect(text.exit == .code(1), "\(text)")
            for segment in 1...2 {
                let line = "1 records of segment \(segment) cannot be read: they are damaged"
                #expect(text.output.contains(line), "\(text)")
            }
            // What is gone is not damaged.
            for segment in 1...2 {
                try FileManager.default.removeItem(
                    atPath: rig.daemon.directory + "/spool/00000000000\(segment).seg")
            }
            #expect(try rig.replay()["unreadable"] == .int(0))
        }

        @Test func withoutASpoolOrWithoutAnythingLoadedItSaysSo() throws {
            let cluster = try Cluster()
            let empty = TemporaryDirectory()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            _ = try App(daemon)
            let none = try Tapline.run(
                ["replay", "--data-dir", empty.path, "--database", cluster.conninfo()])
            #expect(none.exit == .code(1) && none.error.contains("there is no spool in"), "\(none)")
            let nothing = try Tapline.run(["replay"] + daemon.store)
            #expect(
                nothing.exit == .code(1) && nothing.error.contains("nothing of spool"), "\(nothing)"
            )
        }
    }
}
