import Foundation
import Testing

extension SystemTests {
    /// Clients whose packets stop, both ways and without a word: a phone in a tunnel, a cable that is cut.
    @Suite struct VanishedClientTests {
        /// Clients come from this address, to which the kernel then has no way.
        static let source: UInt8 = 77

        /// Ends or mends the way to the clients.
        static func setWay(isThere: Bool) throws {
            // A run that was killed may have left it.
            try Tapline.tool([
                "ip", "route", isThere ? "del" : "replace", "blackhole", "127.0.0.\(source)/32",
                "table", "local",
            ])
        }

        /// Whether this may be done here; in a container it needs `CAP_NET_ADMIN`.
        static let canCutWays: Bool = {
            guard (try? setWay(isThere: false)) != nil else { return false }
            return (try? setWay(isThere: true)) != nil
        }()

        @Test(.enabled(if: canCutWays, "needs the right to change routes"))
        func clientsThatVanishAreGivenUpAndHoldNothing() throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo,
                settings: [
                    "http.header_timeout": "5s", "http.body_timeout": "5s",
                    "http.idle_timeout": "5s", "load.batch_age_ms": "5",
                ]
            ).start()
            let app = try App(daemon)
            let admin = try daemon.key(app.name, role: "admin")
            try app.store([App.click("before")])
            let process = try #require(daemon.process)
            func connections() throws -> Double { try daemon.metric("tapline_http_connections") }
            // That of the question.
            try until("nobody is connected") { try connections() == 1 ? true : nil }
            let before = AbuseTests.Usage(process)

            let body = Request.events(App.click("cut"), key: app.key)
            let asked = Request.get("/metrics").bytes
            var held: [Connection] = []
            for kind in 0..<6 {
                for _ in 0..<10 {
                    let one = try Connection(port: daemon.port, source: Self.source)
                    switch kind {
                    case 0: break  // Says nothing.
                    case 1: try one.send(body.bytes.prefix(40))
                    case 2: try one.send(body.bytes.dropLast(3))
                    case 3:  // Has its answer, and would go on.
                        try one.send(Request.events(App.click("k"), key: app.key).bytes)
                        #expect(try one.answer().status == 200)
                    case 4:  // Is to be sent more than the kernels keep.
                        try one.send((0..<400).flatMap { _ in asked })
                    default:  // Follows, for ever.
                        try one.send(Request.get("/v1/tail", key: admin).bytes)
                        #expect(try one.answer(hasBody: false).status == 200)
                    }
                    held.append(one)
                }
            }
            try until("all are there") {
                try daemon.metric("tapline_tail_followers") == 10 ? true : nil
            }
            #expect(try connections() > 50)
            try Self.setWay(isThere: false)
            defer { try? Self.setWay(isThere: true) }
            // Followers are sent something, for of those who are sent nothing nothing can be known.
            try app.store([App.click("after")])
            let began = Date()
            try until("the quick ones are given up", seconds: 30) {
                try connections() <= 21 ? true : nil
            }
            let quick = Date().timeIntervalSince(began)
            // 30 s without a sign that what was sent has arrived.
            try until("nobody is left", seconds: 60, interval: 0.1) {
                try connections() == 1 && daemon.metric("tapline_tail_followers") == 0 ? true : nil
            }
            print(
                "vanished clients: those that should send given up after \(quick) s, all after "
                    + "\(Date().timeIntervalSince(began)) s")
            try until("no file is left") {
                AbuseTests.Usage(process).files <= before.files ? true : nil
            }
            #expect(AbuseTests.Usage(process).threads <= before.threads)
            // There is room for followers again.
            let one = try daemon.connect()
            try one.send(Request.get("/v1/tail", key: admin).bytes)
            #expect(try one.answer(hasBody: false).status == 200)
            #expect(try app.store([App.click("end")])["accepted"] == .int(1))
            #expect(try daemon.stop() == .code(0))
            withExtendedLifetime(held) {}
        }
    }
}
