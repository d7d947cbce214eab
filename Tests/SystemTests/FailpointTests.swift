import Foundation
import Testing

extension SystemTests {
    /// The daemon crashes, hangs or fails at each named place (`Sources/Platform/Failpoint.swift`),
    /// under clients that retry. The debug build has these places, a release build has none.
    @Suite struct FailpointTests {
        /// The debug build of `tapline`, made with the tests and beside them.
        static let binary: String = {
            let tests = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            return tests.deletingLastPathComponent().path + "/tapline"
        }()

        /// Whether the other tests use a release build, as `make test` has them do.
        static let hasRelease: Bool = {
            let other = URL(fileURLWithPath: Tapline.binary).resolvingSymlinksInPath().path
            return other != binary && !other.contains("/debug/")
        }()

        /// A new database of the shared server.
        static func database() throws -> String {
            let shared = try Shared.daemon.conninfo
            let name = "f" + UUID().uuidString.prefix(8).lowercased()
            try SQL(shared).rows("CREATE DATABASE \(name)")
            return shared.replacingOccurrences(of: "dbname=tapline", with: "dbname=\(name)")
        }

        /// A daemon that rotates, closes and deletes all the time.
        static func daemon(_ database: String? = nil) throws -> Daemon {
            let settings = [
                "spool.segment_bytes_max": "64KiB", "spool.keep": "0s", "spool.keep_bytes": "0",
                "load.segment_rows_max": "500", "load.batch_age_ms": "20",
            ]
            let daemon = try Daemon(database: database ?? self.database(), settings: settings)
            daemon.binary = binary
            return daemon
        }

        /// Restarts a daemon with a rule.
        static func spawn(_ daemon: Daemon, _ rule: String) throws {
            let status = try daemon.stop()
            #expect(status == .code(0), "\(daemon.log)")
            daemon.environment = ["TAPLINE_FAILPOINTS": rule]
            try daemon.spawn()
        }

        /// Restarts a daemon without a rule and checks that nothing was lost or doubled.
        static func recover(_ daemon: Daemon, _ oracle: Oracle, _ app: App) throws {
            daemon.environment = [:]
            try daemon.start()
            try oracle.waitForMore(200)
            try CrashTests.verify(oracle, app)
            let status = try daemon.stop()
            #expect(status == .code(0), "\(daemon.log)")
        }

        static func expectHit(_ daemon: Daemon, _ rule: String) {
            let place = rule.prefix { $0 != "=" }
            #expect(daemon.log.contains("failpoint \(place): "), "\(rule)\n\(daemon.log)")
        }

        // MARK: Crash

        static let crashes = [
            "spool.write.before=crash", "spool.write.before=crash@20", "spool.write.after=crash@20",
            "spool.sync.before=crash@10", "spool.answer.before=crash@10", "spool.rotate=crash",
            "spool.rotate=crash@3", "spool.release=crash@2", "spool.delete=crash@2",
            "file.replace=crash", "load.copy=crash@300", "load.commit.before=crash@3",
            "load.commit.sent=crash@3", "load.commit.after=crash@3", "load.close=crash",
            "keys.reload=crash@2", "settings.reload=crash",
        ]

        @Test(arguments: crashes) func aCrashAnywhereLosesAndDoublesNothing(rule: String) throws {
            let daemon = try Self.daemon().start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try Self.spawn(daemon, rule)
            let oracle = Oracle(daemon, key: app.key, seed: 5)
            oracle.start()
            defer { oracle.abandon() }
            if rule.hasPrefix("settings.reload") {
                try oracle.waitForMore(100)
                daemon.process?.signal(SIGHUP)
            }
            #expect(try daemon.process?.wait(seconds: 60) == .signal(SIGKILL), "\(rule)")
            Self.expectHit(daemon, rule)
            try Self.recover(daemon, oracle, app)
        }

        @Test func aCrashInEachMigrationLeavesADatabaseThatUpgrades() throws {
            let conninfo = try Self.database()
            var applied = 0
            // The first migration that is missing is committed, and the next one crashes.
            while true {
                let outcome = try Tapline.run(
                    ["migrate", "--database", conninfo],
                    environment: ["TAPLINE_FAILPOINTS": "migrate=crash@2"], binary: Self.binary)
                if outcome.isSuccess { break }
                #expect(outcome.exit == .signal(SIGKILL), "\(outcome)")
                applied += 1
                let sql = try SQL(conninfo)
                let version = try sql.int("SELECT count(*) FROM tapline.schema_version")
                #expect(version == applied)
                try #require(version == applied)
            }
            #expect(applied > 1)
            let daemon = try Self.daemon(conninfo).start()
            try App(daemon).store([App.click("upgraded")])
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        // MARK: Stop

        /// The committer or the loader hangs in a system call that does not return.
        @Test(arguments: ["spool.sync.before=stop@10", "load.commit.sent=stop@3"])
        func aHungThreadHangsNothingElseAndAKillLosesNothing(rule: String) throws {
            let daemon = try Self.daemon().start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try Self.spawn(daemon, rule)
            let oracle = Oracle(daemon, key: app.key, seed: 6)
            oracle.start()
            defer { oracle.abandon() }
            try until("the thread hangs") { daemon.log.contains("failpoint ") ? true : nil }
            Self.expectHit(daemon, rule)
            #expect(try daemon.get("/healthz").status == 200)
            #expect(try daemon.get("/metrics").status == 200)
            // Events are taken while only the loader hangs.
            if rule.hasPrefix("load") { try oracle.waitForMore(200) }
            try daemon.kill()
            try Self.recover(daemon, oracle, app)
        }

        // MARK: Errors

        @Test(arguments: [
            "spool.write.before=enospc%7", "spool.write.after=eio%7", "spool.sync.before=eio%3",
            "spool.rotate=enospc%2", "file.replace=eio%2", "load.commit.before=eio%3",
        ])
        func aStepThatFailsNowAndThenLosesAndDoublesNothing(rule: String) throws {
            let daemon = try Self.daemon().start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try Self.spawn(daemon, rule)
            let oracle = Oracle(daemon, key: app.key, seed: 7)
            oracle.start(connections: 3)
            defer { oracle.abandon() }
            try daemon.waitUntilReady()
            try oracle.waitForMore(1000)
            try until("the step fails") { daemon.log.contains("failpoint ") ? true : nil }
            Self.expectHit(daemon, rule)
            let exit = try daemon.stop()
            #expect(exit == .code(0), "\(exit)\n\(daemon.log)")
            try Self.recover(daemon, oracle, app)
        }

        @Test func whatCouldNotBeSyncedIsRefusedAndItsRetryIsNoDuplicate() throws {
            let daemon = try Self.daemon().start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try Self.spawn(daemon, "spool.sync.before=eio%2")
            try daemon.waitUntilReady()
            for number in 0..<100 {
                // Each first try falls to the first of two syncs, so the second post fails.
                let first = App.click("first-\(number)")
                #expect(try app.post(first).status == 200)
                let second = App.click("second-\(number)")
                try StatusTests.expectRefusal(try app.post(second), 503)
                #expect(try app.post(second).status == 200)
                try StatusTests.expectRefusal(try app.post(App.click("gone-\(number)")), 503)
            }
            #expect(try app.storedCount() == 200)
            let books = try daemon.check().books
            #expect(books["balanced"] == .bool(true), "\(books)")
            #expect(try daemon.metric("tapline_spool_failures_total") >= 200)
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aBatchWhoseTransactionFailsIsNotTakenForItsOwnDuplicate() throws {
            let daemon = try Self.daemon().start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try Self.spawn(daemon, "load.commit.before=eio%2")
            try daemon.waitUntilReady()
            for number in 0..<4 {
                let answer = try app.store([App.click("e\(number)")])
                #expect(answer["accepted"] == .int(1), "\(answer)")
                #expect(answer["duplicates"] == .int(0), "\(answer)")
            }
            Self.expectHit(daemon, "load.commit.before")
            #expect(try daemon.stop() == .code(0))
        }

        // MARK: The switch

        @Test(.enabled(if: hasRelease)) func aReleaseBuildHasNoFailpoints() throws {
            let names = ["TAPLINE_FAILPOINTS", "spool.sync.before", "load.commit.sent"]
            for (path, expected) in [(Self.binary, true), (Tapline.binary, false)] {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                for name in names {
                    let found = bytes.range(of: Data(name.utf8)) != nil
                    #expect(found == expected, "\(name) in \(path)")
                }
            }
        }

        @Test(arguments: [
            "spool.nowhere=crash", "spool.rotate=explode", "load.copy=eio", "migrate=crash@0",
        ])
        func aRuleThatMeansNothingIsRefused(rule: String) throws {
            let outcome = try Tapline.run(
                ["migrate", "--database", try Self.database()],
                environment: ["TAPLINE_FAILPOINTS": rule], binary: Self.binary)
            #expect(outcome.exit == .code(2))
            #expect(outcome.error.contains(rule))
        }
    }
}
