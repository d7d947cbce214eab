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
            let daemon = try Daemon(settings: ["spool.segment_bytes_max": "1MiB"]).start()
            let app = try App(daemon)
            let oracle = Oracle(daemon, key: app.key, seed: 1)
            oracle.start()
            defer { oracle.abandon() }
            var random = Random(seed: 50)
            for round in 1...50 {
                if round % 5 != 0 {
                    try daemon.waitUntilReady()
                    try oracle.waitForMore(1)
                }
                usleep(UInt32.random(in: 0..<250_000, using: &random))
                try daemon.kill()
                try daemon.spawn()
            }
            try daemon.waitUntilReady()
            try Self.verify(oracle, app)
            #expect(oracle.retries > 50)
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
