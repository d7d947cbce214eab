import Foundation
import Testing

extension SystemTests {
    /// The way to the database fails: it is silent, half open, cut, or loses an answer.
    @Suite struct NetworkFaultTests {
        /// A database behind a proxy, a daemon that soon gives up on it, and clients.
        struct Rig {
            let cluster: Cluster
            let proxy: DatabaseProxy
            let daemon: Daemon
            let app: App
            let oracle: Oracle

            init(seed: UInt64) throws {
                cluster = try Cluster()
                proxy = try DatabaseProxy(cluster)
                daemon = try Daemon(
                    database: proxy.conninfo(),
                    settings: [
                        "load.statement_timeout": "1s", "load.lock_timeout": "500ms",
                        "load.batch_age_ms": "20",
                    ]
                ).start()
                app = try App(daemon)
                oracle = Oracle(daemon, key: app.key, seed: seed)
            }

            /// Starts the clients and waits until the loader loads what they send.
            func startClients() throws {
                oracle.start()
                try oracle.waitForMore(300)
                try until("the daemon loads\n\(daemon.log)") {
                    try daemon.metric("tapline_load_batches_total") > 0 ? true : nil
                }
            }

            /// Waits until the loader has lost its session, and sees that events are taken.
            func expectLoss(log reason: String) throws {
                try until("the daemon gives up\n\(daemon.log)", seconds: 40) {
                    try daemon.metric("tapline_database_up") == 0
                        && daemon.log.contains(reason) ? true : nil
                }
                try oracle.waitForMore(200)
                #expect(try daemon.get("/readyz").status == 200)
            }

            /// Waits until it loads again.
            func expectReturn() throws {
                try until("the daemon loads again\n\(daemon.log)", seconds: 40) {
                    try daemon.metric("tapline_database_up") == 1 ? true : nil
                }
            }

            func verify() throws {
                try CrashTests.verify(oracle, app)
                #expect(
                    try daemon.get("/metrics").text.contains(
                        #"tapline_load_failures_total{reason="row"} 0"#))
                #expect(try daemon.stop() == .code(0))
            }
        }

        @Test(arguments: [DatabaseProxy.Mode.swallow, .stopReading])
        func aServerThatIsSilentIsGivenUpAndLoadingGoesOnLater(mode: DatabaseProxy.Mode) throws {
            let rig = try Rig(seed: 21)
            defer { rig.oracle.abandon() }
            try rig.startClients()
            rig.proxy.set(mode)
            try rig.expectLoss(log: "says nothing for 6000 ms")
            rig.proxy.set(.pass)
            try rig.expectReturn()
            try rig.verify()
        }

        @Test func aStopEndsThoughTheServerIsSilent() throws {
            let rig = try Rig(seed: 25)
            try rig.app.store([App.click("before")])
            rig.proxy.set(.swallow)
            for index in 0..<20 {
                #expect(try rig.app.post(App.click("m\(index)")).status == 200)
            }
            #expect(try rig.daemon.stop() == .code(0))
            rig.proxy.set(.pass)
            try rig.daemon.start()
            try rig.app.store([App.click("after")])
            #expect(try rig.app.count() == 22)
            #expect(try rig.daemon.check().exit == .code(0))
            #expect(try rig.daemon.stop() == .code(0))
        }

        @Test func aSessionWhoseServerHasVanishedIsGivenUp() throws {
            let rig = try Rig(seed: 22)
            defer { rig.oracle.abandon() }
            try rig.startClients()
            rig.proxy.forgetServers()
            try rig.expectLoss(log: "says nothing for 6000 ms")
            try rig.expectReturn()
            try rig.verify()
        }

        @Test func connectionsThatAreCutOrHalfClosedLoseNothing() throws {
            let rig = try Rig(seed: 23)
            defer { rig.oracle.abandon() }
            try rig.startClients()
            for round in 0..<20 {
                try rig.oracle.waitForMore(50)
                if round % 2 == 0 { rig.proxy.cut() } else { rig.proxy.halfClose() }
            }
            try rig.verify()
        }

        @Test func commitsWhoseAnswersAreLostAreNeitherRepeatedNorForgotten() throws {
            let rig = try Rig(seed: 24)
            try rig.app.store([App.click("first")])
            var count = 1
            for _ in 0..<5 {
                rig.proxy.cutNextCommits(1)
                for _ in 0..<10 {
                    #expect(try rig.app.post(App.click("m\(count)")).status == 200)
                    count += 1
                }
                try until("a commit is cut") { rig.proxy.commitsLeftToCut == 0 ? true : nil }
                #expect(try rig.app.storedCount() == count)
            }
            let (exit, books) = try rig.daemon.check()
            #expect(exit == .code(0) && books["duplicate"] == .int(0), "\(books)")
            #expect(books["dead_lettered"] == .int(0))
            #expect(try rig.daemon.stop() == .code(0))
        }
    }
}
