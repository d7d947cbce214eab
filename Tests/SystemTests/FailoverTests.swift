import Foundation
import Testing

extension SystemTests {
    /// The name of the database leads to another server: a standby, which may be promoted.
    @Suite struct FailoverTests {
        /// A primary with a streaming standby, the proxy that is the name of both, a daemon and clients.
        private struct Rig {
            let primary: Cluster
            let standby: Cluster
            let proxy: DatabaseProxy
            let daemon: Daemon
            let app: App
            let oracle: Oracle

            init(seed: UInt64, segmentRows: Int = 500) throws {
                primary = try Cluster()
                proxy = try DatabaseProxy(primary)
                daemon = try Daemon(
                    database: proxy.conninfo(),
                    settings: [
                        "load.statement_timeout": "1s", "load.lock_timeout": "500ms",
                        "load.batch_age_ms": "5", "load.segment_rows_max": "\(segmentRows)",
                        "spool.segment_bytes_max": "64KiB",
                    ]
                ).start()
                app = try App(daemon)
                standby = try Cluster(standbyOf: primary)
                oracle = Oracle(daemon, key: app.key, seed: seed)
                oracle.start(connections: 4)
            }

            /// Waits until the standby has all that the primary has, which takes nothing more.
            func waitForStandby() throws {
                let end = try SQL(primary.conninfo()).value("SELECT pg_current_wal_flush_lsn()")
                let there = try SQL(standby.conninfo())
                try until("the standby has all of it") {
                    try there.value("SELECT pg_last_wal_replay_lsn() >= '\(end ?? "")'") == "t"
                        ? true : nil
                }
            }

            /// Lets nothing more come to the standby.
            func cutReplication() throws {
                let sql = try SQL(standby.conninfo())
                try sql.rows("ALTER SYSTEM SET primary_conninfo = ''")
                try sql.rows("SELECT pg_reload_conf()")
                try until("the standby receives nothing") {
                    try sql.int("SELECT count(*) FROM pg_stat_wal_receiver") == 0 ? true : nil
                }
            }

            /// Leads the daemon to the standby, and sees that its clients notice nothing and its operator all.
            func turnToStandby() throws {
                let failures = #"tapline_load_failures_total{reason="configuration"}"#
                #expect(try daemon.metric(failures) == 0)
                proxy.turn(to: standby)
                try until("the daemon complains\n\(daemon.log)") {
                    try daemon.metric(failures) >= 2 ? true : nil
                }
                try oracle.waitForMore(500)
                #expect(try daemon.get("/readyz").status == 200)
                #expect(try daemon.metric("tapline_database_up") == 0)
                #expect(try daemon.metric("tapline_events_spooled") > 0)
                let lines = daemon.log.split(separator: "\n")
                let places = lines.indices.filter { lines[$0].contains("25006") }
                #expect(places.count == 1, "\(daemon.log)")
                let place = try #require(places.first)
                #expect(lines[place].contains(" ERROR loading waits"), "\(lines[place])")
                let next = lines.indices.contains(place + 1) ? lines[place + 1] : ""
                #expect(next.hasPrefix("hint: Connect to the primary"), "\(daemon.log)")
            }

            /// Each event is stored once, the books balance, and reports are of the events.
            func verify() throws {
                try until("the daemon loads again\n\(daemon.log)", seconds: 40) {
                    try daemon.metric("tapline_database_up") == 1 ? true : nil
                }
                try oracle.waitForMore(500)
                try CrashTests.verify(oracle, app)
                let proof = try Tapline.run(["check", "--reports"] + daemon.store)
                #expect(proof.isSuccess, "\(proof)")
                #expect(try daemon.metric("tapline_load_failures_total{reason=\"row\"}") == 0)
            }
        }

        @Test(arguments: [true, false]) func aServerThatIsAStandbyNowIsSaidAndLosesNothing(
            isPromoted: Bool
        ) throws {
            let rig = try Rig(seed: isPromoted ? 61 : 62)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(1_500)
            try rig.turnToStandby()
            if isPromoted {
                try rig.waitForStandby()
                try rig.primary.stop(.immediate)
                try rig.standby.promote()
            } else {
                rig.proxy.turn(to: rig.primary)
            }
            try rig.verify()
            // No batch was loaded twice: nothing but the repeats of the clients is one.
            #expect(!rig.daemon.log.contains("another history"), "\(rig.daemon.log)")
            #expect(try rig.daemon.stop() == .code(0))
        }

        /// Replication that nobody waits for: what was committed last is not on the server that takes over.
        /// In segments that it does not know, too, or in the open one alone, of which the daemon knows the keys.
        @Test(arguments: [500, 500_000]) func whatThePromotedServerLacksIsLoadedAgainOnce(
            segmentRows: Int
        ) throws {
            let rig = try Rig(seed: segmentRows == 500 ? 63 : 65, segmentRows: segmentRows)
            defer { rig.oracle.abandon() }
            let (primary, standby) = (
                try SQL(rig.primary.conninfo()), try SQL(rig.standby.conninfo())
            )
            let count = "SELECT count(*) FROM tapline.event"
            try until("the standby has some") { try standby.int(count) >= 300 ? true : nil }
            try rig.cutReplication()
            let closed = "SELECT count(*) FROM tapline.segment WHERE state <> 'open'"
            // The standby is asked each time, as it may not be through with what it received.
            func isAhead() throws -> Bool {
                let isClosed = try segmentRows > 500 || primary.int(closed) > standby.int(closed)
                return try isClosed && primary.int(count) >= standby.int(count) + 500
            }
            try until("some is on the primary alone") { try isAhead() ? true : nil }
            try rig.turnToStandby()
            #expect(try isAhead())
            try rig.primary.stop(.immediate)
            try rig.standby.promote()
            try rig.verify()
            #expect(rig.daemon.log.contains("another history"), "\(rig.daemon.log)")
            #expect(try rig.daemon.stop() == .code(0))
        }

        /// A standby that is promoted while it is behind with what it has received: it takes that first.
        @Test func aStandbyThatIsBehindWhenItIsPromotedStoresNothingTwice() throws {
            let rig = try Rig(seed: 64)
            defer { rig.oracle.abandon() }
            try rig.oracle.waitForMore(500)
            let standby = try SQL(rig.standby.conninfo())
            try standby.rows("SELECT pg_wal_replay_pause()")
            try until("it is paused") {
                try standby.value("SELECT pg_get_wal_replay_pause_state()") == "paused" ? true : nil
            }
            try rig.oracle.waitForMore(1_000)
            try rig.turnToStandby()
            try rig.primary.stop(.fast)
            try rig.standby.promote()
            try rig.verify()
            #expect(try rig.daemon.stop() == .code(0))
        }
    }
}
