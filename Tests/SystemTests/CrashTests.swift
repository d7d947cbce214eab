import Foundation
import Testing

extension SystemTests {
    /// Laws 1, 2 and 4 while the daemon is killed, stopped and started.
    @Suite struct CrashTests {
        /// What holds after every fault.
        static func verify(_ oracle: Oracle, _ app: App) throws {
            try oracle.stop()
            let daemon = app.daemon
            try daemon.waitUntilLoaded()
            try oracle.verify(try daemon.sql(), app: app.name)
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["balanced"] == .bool(true), "\(books)")
            #expect(books["dead_lettered"] == .int(0) && books["spooled"] == .int(0))
            // A fresh event still flows.
            #expect(try app.store([App.click("fresh-\(UUID())")])["accepted"] == .int(1))
        }

        @Test func killedAtRandomMomentsTheDaemonLosesAndDoublesNothing() throws {
            let soak = Soak.asked
            let daemon = try Daemon(settings: ["spool.segment_bytes_max": "1MiB"]).start()
            let app = try App(daemon)
            let began = Date()
            let seconds = { Int(-began.timeIntervalSinceNow) }
            let bench = try BenchProcess(
                [daemon], key: app.key, events: soak.events,
                [
                    "--seed", "\(soak.seed)", "--rate", "\(soak.rate)", "--shuffle",
                    "--resend", "10", "--connections", "8",
                ])
            for kill in soak.kills {
                try bench.wait(untilAcknowledged: kill.acknowledgedBodies)
                #expect(bench.process.exit == nil, "the load ended before the last kill")
                usleep(kill.pauseMicroseconds)
                switch kill.victim {
                case .daemon:
                    try daemon.kill()
                    try daemon.spawn()
                case .postgres: try daemon.killPostmaster()
                }
            }
            let summary = try bench.finish(seconds: 1200)
            let acknowledged = seconds()
            #expect(acknowledged >= soak.seconds, "the load ended after \(acknowledged) s")
            try daemon.waitUntilReady()
            try daemon.waitUntilLoaded(seconds: 600)
            let loaded = seconds()
            let (exit, verdict) = try bench.verify(
                daemon, ["--url", daemon.url, "--key", app.key])
            #expect(exit == .code(0) && brokenLaws(verdict).isEmpty, "\(verdict)")
            #expect(verdict["laws"].items.allSatisfy { $0["holds"] == .bool(true) }, "\(verdict)")
            #expect(verdict["acknowledged"] == .int(Int64(soak.events)), "\(verdict)")
            #expect(summary["retries"].int ?? 0 > 0, "no kill met a body: \(summary)")
            let retries = summary["retries"].int ?? 0
            print(
                "soak: seed \(soak.seed), \(soak.daemonKills) kills of the daemon, "
                    + "\(soak.postgresKills) of PostgreSQL, \(soak.events) events, "
                    + "\(retries) bodies tried again; acknowledged after \(acknowledged) s, "
                    + "loaded after \(loaded) s, checked after \(seconds()) s")
            for law in verdict["laws"].items {
                print("soak: \(law["law"].text ?? "") \(law["detail"].text ?? "")")
            }
            #expect(try daemon.stop() == .code(0))
        }

        @Test func sigtermUnderLoadDrainsAndExits0() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 2)
            oracle.start()
            defer { oracle.abandon() }
            for _ in 0..<3 {
                try oracle.waitForMore(500)
                #expect(try daemon.stop() == .code(0), "\(daemon.log)")
                // What is durable is loaded before it ends, as the database is there.
                let left = try daemon.sql().int(
                    "SELECT coalesce(sum(published_spooled), 0) FROM tapline.spool")
                #expect(left == 0)
                try daemon.start()
            }
            try oracle.stop()
            try daemon.waitUntilLoaded()
            try oracle.verify(try daemon.sql(), app: app.name)
            #expect(try daemon.stop() == .code(0))
        }

        /// Whoever is impatient ends it no better and no worse: the spool has what was acknowledged.
        @Test func aSecondSigtermUnderLoadLosesNothing() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 46)
            oracle.start()
            defer { oracle.abandon() }
            for pause in [0, 1_000, 50_000] as [UInt32] {
                try oracle.waitForMore(300)
                // What is spooled cannot be loaded meanwhile.
                try cluster.stop(.fast)
                daemon.process?.signal(SIGTERM)
                usleep(pause)
                daemon.process?.signal(SIGTERM)
                let exit = try #require(try daemon.process?.wait(seconds: 40))
                #expect(exit == .code(0) || exit == .signal(SIGTERM), "\(exit)\n\(daemon.log)")
                try cluster.start()
                try daemon.start()
            }
            try CrashTests.verify(oracle, app)
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aBrokenFileOfSettingsAtSIGHUPLeavesTheOldOnes() throws {
            let home = TemporaryDirectory()
            let daemon = try Daemon(database: try Shared.daemon.conninfo)
            let file = try home.file("tapline.conf", "log.level = warn\n")
            daemon.environment = ["TAPLINE_CONFIG": file]
            try daemon.start()
            let app = try App(daemon)
            #expect(!daemon.log.contains("INFO"))
            func reload(_ text: String, until word: String) throws {
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                daemon.process?.signal(SIGHUP)
                try until("it says \(word)\n\(daemon.log)") {
                    daemon.log.contains(word) ? true : nil
                }
            }
            try reload("log.level = debug\nspool.keep = much\n", until: "the old ones stay")
            #expect(daemon.log.contains("spool.keep") && daemon.log.contains("much"))
            #expect(!daemon.log.contains("INFO"))
            #expect(try app.post(App.click("m")).status == 200)
            try reload("log.level = info\n", until: "settings read again")
            #expect(try app.storedCount() == 1)
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aSecondDaemonOnTheSameDirectoryRefuses() throws {
            let shared = try Shared.daemon
            let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", shared.directory]
            let outcome = try Tapline.run(arguments, seconds: 30)
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains(shared.directory))
            UsageTests.expectOneComplaint(outcome)
            #expect(try shared.get("/readyz").status == 200)
        }
    }
}
