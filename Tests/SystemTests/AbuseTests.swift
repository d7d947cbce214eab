import Foundation
import Glibc
import Testing

extension SystemTests {
    /// While clients abuse the daemon, a polite one is served, and what the daemon uses stays bounded.
    @Suite struct AbuseTests {
        /// What the kernel says a process has.
        struct Usage {
            let bytes: Int
            let files: Int
            let threads: Int

            init(_ process: ChildProcess) {
                bytes = process.memory("VmRSS")
                func count(_ name: String) -> Int {
                    let path = "/proc/\(process.pid)/\(name)"
                    return (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
                }
                files = count("fd")
                threads = count("task")
            }
        }

        /// A thread that does the same again and again until it is ended.
        ///
        /// A round that fails is none: it is counted apart, with what it failed of.
        final class Nuisance: @unchecked Sendable {
            private let lock = NSLock()
            private var isEnding = false
            private var rounds = 0
            private var failed = 0
            private var failure = ""
            private let done = DispatchSemaphore(value: 0)

            init(_ body: @escaping @Sendable (Int) throws -> Void) {
                Thread.detachNewThread { [self] in
                    while !lock.withLock({ isEnding }) {
                        do {
                            try body(lock.withLock { rounds })
                            lock.withLock { rounds += 1 }
                        } catch {
                            lock.withLock { (failed, failure) = (failed + 1, "\(error)") }
                        }
                    }
                    done.signal()
                }
            }

            var count: Int { lock.withLock { rounds } }
            var failures: (count: Int, last: String) { lock.withLock { (failed, failure) } }

            func end() throws {
                lock.withLock { isEnding = true }
                guard done.wait(timeout: .now() + 60) == .success else {
                    throw Failure("a nuisance has not ended in 60 s")
                }
            }
        }

        /// Posts events one after the other; the times of the answers in ms, sorted.
        static func politeTimes(_ app: App, _ name: String, count: Int) throws -> [Double] {
            let connection = try app.daemon.connect()
            var times: [Double] = []
            for index in 0..<count {
                let start = Date()
                let body = Request.events(App.click("\(name)\(index)"), key: app.key)
                try connection.send(body.bytes)
                let answer = try connection.answer()
                #expect(answer.status == 200, "\(answer.text)")
                times.append(Date().timeIntervalSince(start) * 1000)
            }
            return times.sorted()
        }

        /// As many files as the kernel lets us open, up to what is needed.
        static func raiseFileLimit(to wanted: UInt) -> Int {
            var limit = rlimit()
            let which = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            unsafe getrlimit(which, &limit)
            limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, wanted))
            unsafe setrlimit(which, &limit)
            return Int(limit.rlim_cur)
        }

        static let connectionsMax = 8000
        static let perAddressMax = 1000
        static let idleCount = 5000
        static let canOpenFiles = raiseFileLimit(to: 8000) >= idleCount + 1500

        @Test func aBodyThatIsCompressedTwiceIsInflatedOnce() throws {
            let app = try Shared.app()
            let inner = gzip(App.click("m") + "\n")
            let answer = try app.daemon.send(Request.events(inner, key: app.key).gzipped)
            // What is inside is no text, so that its lines are refused one by one.
            #expect(answer.status == 200)
            #expect(try answer.json["accepted"] == .int(0))
            #expect(try answer.json["received"] == answer.json["rejected"])
            #expect(try app.storedCount() == 0)
        }

        @Test(.enabled(if: canOpenFiles, "needs a limit of 6,500 open files"))
        func aPoliteClientIsServedBesideFiveThousandBadOnes() throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo,
                settings: [
                    "http.connections_per_address_max": "\(Self.perAddressMax)",
                    "http.connections_max": "\(Self.connectionsMax)", "http.header_timeout": "1m",
                    "http.body_timeout": "1m", "http.idle_timeout": "5m",
                ]
            ).start()
            let app = try App(daemon)
            let process = try #require(daemon.process)
            let calm = try Self.politeTimes(app, "calm", count: 300)
            let before = Usage(process)

            // Idle connections, slow heads, slow bodies, and answers that nobody reads.
            // From so many addresses that none of them is refused.
            func hold(_ index: Int) throws -> Connection {
                try Connection(port: daemon.port, source: UInt8(10 + index / 800))
            }
            var held = try (0..<Self.idleCount).map(hold)
            for index in 0..<200 {
                let connection = try hold(Self.idleCount + index)
                let request = Request.events(App.click("slow"), key: app.key)
                switch index % 4 {
                case 0: try connection.send(request.bytes.prefix(40))
                case 1: try connection.send(request.bytes.dropLast(3))
                case 2: try connection.send(request.head)
                default:
                    let asked = Request.get("/metrics").bytes
                    // It takes no more at some time, and then we leave it.
                    try connection.send((0..<8).flatMap { _ in asked })
                }
                held.append(connection)
            }
            var bomb = Request.events(
                gzip([UInt8](repeating: 0x20, count: 64 << 20), level: 1), key: app.key)
            bomb.headers.append(("Content-Encoding", "gzip"))
            let bombBytes = bomb.bytes
            let port = daemon.port
            let key = app.key
            // Each from its own address, as those who open connections in storms are refused by theirs.
            let nuisances = [
                Nuisance { _ in
                    let connection = try Connection(port: port, source: 2)
                    try connection.send(bombBytes)
                    _ = try connection.answer()
                },
                Nuisance { round in
                    // Cut off inside the head, the body, or the answer.
                    let connection = try Connection(port: port, source: 3)
                    let bytes = Request.events(App.click("cut"), key: "stranger").bytes
                    try connection.send(bytes.prefix(1 + round % bytes.count))
                },
                Nuisance { round in
                    var random = Random(seed: UInt64(round))
                    let connection = try Connection(port: port, source: 4)
                    let noise = (0..<512).map { _ in UInt8.random(in: 0...255, using: &random) }
                    try connection.send(noise)
                    connection.endSending()
                    _ = try connection.rest()
                },
                Nuisance { round in
                    let deep = String(repeating: "[", count: 60_000)
                    let lines = [String](repeating: App.click("d", ",\"x\":\(deep)"), count: 50)
                    let connection = try Connection(port: port, source: 5)
                    try connection.send(
                        Request.events(lines.joined(separator: "\n"), key: key).gzipped.bytes)
                    _ = try connection.answer()
                },
            ]
            try until("all are at work") {
                nuisances.allSatisfy { $0.count > 3 } ? true : nil
            }
            let counts = nuisances.map(\.count)
            let busy = try Self.politeTimes(app, "busy", count: 300)
            let during = Usage(process)
            let open = try daemon.metric("tapline_http_connections")
            for nuisance in nuisances { try nuisance.end() }
            // All of them were at it meanwhile.
            for (index, nuisance) in nuisances.enumerated() {
                #expect(nuisance.count > counts[index], "\(index): \(nuisance.failures)")
                // Who opens connections faster than they can be closed is refused at its limit.
                guard index != 1 else { continue }
                #expect(nuisance.failures.count == 0, "\(index): \(nuisance.failures)")
            }
            #expect(try daemon.metric("tapline_http_connections") >= Double(Self.idleCount))
            #expect(during.threads <= before.threads)
            // Bombs and what is nested too deep are read by threads that hold up nobody.
            #expect(try daemon.metric("tapline_bodies_large_total") >= 6)
            // Those that have gone are thousands, and wait to be closed; their address bounds them.
            #expect(nuisances[1].count > 2 * Self.perAddressMax)
            // Four more are told so; the others are the nuisances', ours, and who asks for the metrics.
            let openMax = held.count + Self.perAddressMax + 4 + nuisances.count + 2
            #expect(open <= Double(openMax))
            // A connection's file may outlive it, for its client to read the answer: of 256 at most.
            #expect(during.files <= before.files + openMax + 256)
            // 20 KiB a connection, and the inflated bytes in flight.
            #expect(during.bytes - before.bytes < held.count * 20 << 10 + 64 << 20)
            held = []
            try until("the connections are closed") {
                Usage(process).files <= before.files + 5 ? true : nil
            }
            #expect(try app.storedCount() == 600)
            #expect(try daemon.check().exit == .code(0))
            print(
                "polite client: p99 \(calm[296]) ms alone, \(busy[296]) ms beside "
                    + "\(Self.idleCount) idle and \(nuisances.count) busy abusers; "
                    + "\((during.bytes - before.bytes) >> 20) MiB more resident")
            #expect(try daemon.stop() == .code(0))
        }
    }
}
