import Foundation
import Testing

extension SystemTests {
    /// The database goes away and comes back: acknowledgements go on, nothing is lost.
    @Suite struct DatabaseFaultTests {
        @Test func eventsAreTakenWhileTheDatabaseIsDownAndStoredAfterwards() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 3)
            oracle.start()
            defer { oracle.abandon() }
            let faults: [() throws -> Void] = [
                { try cluster.stop(.fast) }, { try cluster.stop(.immediate) },
                { try cluster.kill() },
            ]
            for fault in faults {
                try oracle.waitForMore(300)
                try fault()
                try oracle.waitForMore(1000)
                #expect(try daemon.get("/readyz").status == 200)
                try until("the daemon notices") {
                    try daemon.metric("tapline_database_up") == 0 ? true : nil
                }
                #expect(try daemon.metric("tapline_events_spooled") > 0)
                try cluster.start()
            }
            try CrashTests.verify(oracle, app)
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aDaemonStartedWithoutItsDatabaseStillTakesEvents() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store([App.click("before")])
            #expect(try daemon.stop() == .code(0))
            try cluster.stop(.fast)
            try daemon.start()
            #expect(try app.post(App.click("during")).status == 200)
            try StatusTests.expectRefusal(
                try app.post(App.click("during"), query: "?ack=stored"), 503)
            // A stop without the database keeps what is spooled.
            #expect(try daemon.stop() == .code(0))
            try cluster.start()
            try daemon.start()
            try app.store([App.click("after")])
            #expect(
                try app.stored("message_uid").map { $0[0] } == ["after", "before", "during"])
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func theEmbeddedDatabaseIsStartedAgainWhenItIsKilled() throws {
            let daemon = try Daemon().start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 4)
            oracle.start()
            defer { oracle.abandon() }
            for _ in 0..<2 {
                try oracle.waitForMore(300)
                let postmaster = try daemon.postmaster()
                kill(postmaster, SIGKILL)
                try oracle.waitForMore(300)
                try until("another postmaster runs", seconds: 60) {
                    try daemon.postmaster() != postmaster && (try? daemon.sql()) != nil ? true : nil
                }
            }
            try CrashTests.verify(oracle, app)
            #expect(try daemon.stop() == .code(0))
            // It ends with its daemon.
            #expect((try? daemon.postmaster()) == nil)
        }

        @Test func aCommitWhoseAnswerIsLostIsNeitherRepeatedNorForgotten() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store([App.click("before")])
            let sql = try SQL(cluster.conninfo() + " options='-c synchronous_commit=off'")
            // A commit now waits for a standby that there is not, after it has taken effect.
            try sql.rows("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            try sql.rows("SELECT pg_reload_conf()")
            for index in 0..<10 {
                #expect(try app.post(App.click("m\(index)")).status == 200)
            }
            try until("the loader waits in its commit") {
                let count = try sql.int(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                        + "WHERE wait_event = 'SyncRep' AND application_name LIKE '%load%'")
                return count > 0 ? true : nil
            }
            try sql.rows("ALTER SYSTEM RESET synchronous_standby_names")
            try sql.rows("SELECT pg_reload_conf()")
            #expect(try app.storedCount() == 11)
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["duplicate"] == .int(0), "\(books)")
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aBackendKilledInsideItsCopyStoresNothingTwice() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store([App.click("before")])
            let holder = try daemon.sql()
            // A COPY has begun and waits at its first row.
            try holder.rows(
                """
                CREATE FUNCTION tapline.gate() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NEW; END $$;
                CREATE TRIGGER gate BEFORE INSERT ON tapline.event_1
                    FOR EACH ROW EXECUTE FUNCTION tapline.gate();
                SELECT pg_advisory_lock(42)
                """)
            for index in 0..<20 {
                #expect(try app.post(App.click("m\(index)")).status == 200)
            }
            let backend = try until("a COPY waits") {
                try holder.value(
                    "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%' "
                        + "AND wait_event = 'advisory'"
                ).flatMap { pid_t($0) }
            }
            kill(backend, SIGKILL)
            // The server ends all sessions, the holder's too, and starts anew.
            #expect(try app.storedCount() == 21)
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["dead_lettered"] == .int(0), "\(books)")
            #expect(books["duplicate"] == .int(0), "\(books)")
            #expect(try daemon.stop() == .code(0))
        }

        // S10
        @Test func eightLoadersOfTheSameEventsInAnyOrderNeverDeadlock() throws {
            let cluster = try Cluster()
            let daemons = try (0..<8).map { _ in
                try Daemon(
                    database: cluster.conninfo(), settings: ["load.batch_age_ms": "5"])
            }
            for daemon in daemons { try daemon.start() }
            let app = try App(daemons[0])
            let uids = (0..<2000).map { "m\($0)" }
            let answers = Answers()
            DispatchQueue.concurrentPerform(iterations: 8) { number in
                var random = Random(seed: UInt64(number))
                // Ascending, descending, and shuffled.
                let order =
                    number < 2
                    ? uids : number < 4 ? uids.reversed() : uids.shuffled(using: &random)
                for start in stride(from: 0, to: uids.count, by: 100) {
                    let lines = order[start..<start + 100].map { App.click($0) }
                    let body = lines.joined(separator: "\n")
                    answers.add { try daemons[number].send(.events(body, key: app.key)) }
                }
            }
            #expect(answers.statuses == [Int](repeating: 200, count: 160))
            for daemon in daemons { try daemon.waitUntilLoaded() }
            #expect(try app.count() == 2000)
            var stored = 0.0
            var duplicates = 0.0
            for daemon in daemons {
                stored += try daemon.metric("tapline_events_stored_total")
                duplicates += try daemon.metric("tapline_events_duplicate_total")
            }
            #expect(stored == 2000 && duplicates == 14_000)
            for daemon in daemons { #expect(try daemon.stop() == .code(0)) }
            let (exit, books) = try daemons[0].check()
            #expect(exit == .code(0) && books["dead_lettered"] == .int(0), "\(books)")
            #expect(
                try SQL(cluster.conninfo()).int(
                    "SELECT deadlocks FROM pg_stat_database WHERE datname = 'tapline'") == 0)
        }

        @Test func terminatedSessionsLoseNothing() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 5)
            oracle.start()
            defer { oracle.abandon() }
            let sql = try daemon.sql()
            for _ in 0..<20 {
                try oracle.waitForMore(50)
                try sql.rows(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        + "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
            }
            try oracle.stop()
            try daemon.waitUntilLoaded()
            try oracle.verify(sql, app: app.name)
            #expect(try sql.int("SELECT count(*) FROM tapline.dead_letter") == 0)
            #expect(try daemon.stop() == .code(0))
        }

        /// Longer than all of `load.lock_timeout`, so that batches are given up and tried again.
        @Test func aLockThatIsHeldForAMinuteLosesNothing() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            // One event a body, for all of them wait on this machine's disk.
            let oracle = Oracle(daemon, key: app.key, seed: 6, linesPerBody: 1)
            oracle.start(connections: 2)
            defer { oracle.abandon() }
            try oracle.waitForMore(100)
            let sql = try SQL(cluster.conninfo())
            try sql.rows("BEGIN; LOCK TABLE tapline.event_1 IN ACCESS EXCLUSIVE MODE")
            let stored = try daemon.metric("tapline_events_stored_total")
            let end = Date(timeIntervalSinceNow: 60)
            while Date() < end {
                // They are taken all the time.
                try oracle.waitForMore(20, seconds: 5)
                #expect(try daemon.get("/readyz").status == 200)
                usleep(500_000)
            }
            #expect(try daemon.metric("tapline_events_stored_total") == stored)
            #expect(try daemon.metric("tapline_load_failures_total{reason=\"retry\"}") >= 2)
            let lines = daemon.log.split(separator: "\n")
            let places = lines.indices.filter { lines[$0].contains("55P03") }
            // Said once, and once more after a minute if the first was early enough.
            #expect(1...2 ~= places.count, "\(daemon.log)")
            for place in places {
                let next = lines.indices.contains(place + 1) ? lines[place + 1] : ""
                #expect(next.hasPrefix("hint: Look in pg_stat_activity"), "\(daemon.log)")
            }
            try sql.rows("COMMIT")
            try oracle.waitForMore(100)
            try oracle.stop()
            try daemon.waitUntilLoaded()
            try oracle.verify(sql, app: app.name)
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["dead_lettered"] == .int(0), "\(books)")
            #expect(try daemon.stop() == .code(0))
        }
    }
}
