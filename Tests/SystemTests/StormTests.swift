import Foundation
import Testing

extension SystemTests {
    /// Clients that repeat without end and never wait.
    @Suite struct StormTests {
        // S23
        @Test func aStormOfOneKeyIsRefusedUnreadAndAPoliteKeyNever() throws {
            let cluster = try Cluster()
            // Each key may save up 100 requests; the polite ones send fewer in all.
            let daemon = try Daemon(
                database: cluster.conninfo(),
                settings: [
                    "http.key_requests_per_second_max": "10", "http.key_burst": "10s",
                    "load.batch_age_ms": "5",
                ]
            ).start()
            let (app, polite, early) = (try App(daemon), try App(daemon), try App(daemon))
            let bodies = (0..<8).map { number in
                (0..<50).map { App.click("s\(number)-\($0)") }.joined(separator: "\n")
            }
            let alone = try Self.politely(early)
            let began = Date()
            let before = try daemon.metric("tapline_body_inflated_bytes_total")
            let storm = Storm(daemon.port, bodies.map { Request.events($0, key: app.key).gzipped })
            storm.start()
            defer { storm.stop() }
            try storm.wait(refusals: 200)
            let beside = try Self.politely(polite)
            try storm.wait(refusals: storm.refusals.count + 200)
            storm.stop()

            #expect(storm.faults.isEmpty, "\(storm.faults)")
            var seconds: [Int] = []
            for answer in storm.refusals {
                #expect(try answer.json["error"]["code"].text == "too_many_requests")
                let header = answer.header("Retry-After").flatMap { Int64($0) }
                #expect(try answer.json["retry_after"].int == header)
                seconds.append(Int(header ?? 0))
            }
            #expect(seconds.allSatisfy { $0 >= 1 } && Set(seconds).count > 10, "jittered")
            // To the byte: what was refused was not inflated.
            let read = storm.accepted.reduce(beside.bytes) { $0 + bodies[$1].utf8.count }
            let after = try daemon.metric("tapline_body_inflated_bytes_total")
            #expect(after - before == Double(read))
            #expect(
                try daemon.metric("tapline_http_rate_limited_total{limit=\"requests\"}")
                    == Double(storm.refusals.count))
            let lines = daemon.log.split(separator: "\n").count { $0.contains("with 429") }
            let minutes = Int(Date().timeIntervalSince(began) / 60)
            #expect((1...1 + minutes).contains(lines), "a line a minute\n\(daemon.log)")
            // What was let in is stored once, however often it came.
            #expect(try app.storedCount() == Set(storm.accepted).count * 50)
            #expect(try polite.storedCount() == 60)
            #expect(try daemon.check().exit == .code(0))
            // Wall time is for people: others may work on this machine.
            func text(_ times: [Double]) -> String {
                "p50 \(times[times.count / 2]) ms, p99 \(times[times.count * 99 / 100]) ms"
            }
            print("polite key: \(text(alone.times)) alone, \(text(beside.times)) beside a storm")
        }

        /// Posts events of a key one after the other, each of which is taken.
        ///
        /// - Returns: The times of the answers in ms, sorted, and the bytes of the bodies.
        private static func politely(_ app: App) throws -> (times: [Double], bytes: Int) {
            var (times, bytes): ([Double], Int) = ([], 0)
            for number in 0..<60 {
                let text = App.click("p\(number)")
                bytes += text.utf8.count
                let start = Date()
                let answer = try app.daemon.send(Request.events(text, key: app.key).gzipped)
                times.append(Date().timeIntervalSince(start) * 1000)
                #expect(answer.status == 200, "\(answer.text)")
            }
            return (times.sorted(), bytes)
        }
    }
}

/// Connections that send bodies over and over, whatever is answered.
private final class Storm: @unchecked Sendable {
    private let port: Int
    private let requests: [Request]
    private let lock = NSLock()
    private var isStopping = false
    private var threads: [DispatchSemaphore] = []
    private var state: (accepted: [Int], refusals: [Answer], faults: [String]) = ([], [], [])

    /// The number of the body of each answer of 200.
    var accepted: [Int] { lock.withLock { state.accepted } }
    /// The answers of 429.
    var refusals: [Answer] { lock.withLock { state.refusals } }
    var faults: [String] { lock.withLock { state.faults } }

    init(_ port: Int, _ requests: [Request]) {
        self.port = port
        self.requests = requests
    }

    func start() {
        for number in requests.indices {
            let done = DispatchSemaphore(value: 0)
            threads.append(done)
            Thread.detachNewThread { [self] in
                run(number)
                done.signal()
            }
        }
    }

    /// Ends them after the answers under way.
    func stop() {
        lock.withLock { isStopping = true }
        for done in threads where done.wait(timeout: .now() + 60) == .timedOut {
            lock.withLock { state.faults.append("a connection has not ended in 60 s") }
        }
        threads = []
    }

    func wait(refusals count: Int) throws {
        try until("\(count) requests are refused: \(faults)", seconds: 60) {
            refusals.count >= count ? true : nil
        }
    }

    private func run(_ number: Int) {
        do {
            let connection = try Connection(port: port)
            while !lock.withLock({ isStopping }) {
                try connection.send(requests[number].bytes)
                let answer = try connection.answer()
                lock.withLock {
                    switch answer.status {
                    case 200: state.accepted.append(number)
                    case 429: state.refusals.append(answer)
                    default: state.faults.append("\(answer.status) \(answer.text)")
                    }
                }
            }
        } catch {
            lock.withLock { state.faults.append("\(error)") }
        }
    }
}
