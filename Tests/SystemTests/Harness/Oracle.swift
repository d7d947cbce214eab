import Foundation
import Testing

/// Clients that issue events, retry them until there is a verdict, and remember both.
///
/// Each connection sends bodies of unique events, one repeated event and now and then a bad line.
/// A body is posted again after anything but an answer of 200; some are abandoned after a failure.
final class Oracle: @unchecked Sendable {
    private let port: Int
    private let key: String
    private let linesPerBody: Int
    private let seed: UInt64
    private let lock = NSLock()
    private var isStopping = false
    private var isAbandoned = false
    private var threads: [DispatchSemaphore] = []

    /// Every uid that was ever sent.
    private(set) var issued: Set<String> = []
    /// The uids of bodies that were answered with 200.
    private(set) var acknowledged: Set<String> = []
    /// Answers that broke the contract.
    private(set) var faults: [String] = []
    /// How often each client had no verdict.
    private var retriesOfClients: [Int: Int] = [:]
    private(set) var bodies = 0

    init(_ daemon: Daemon, key: String, seed: UInt64, linesPerBody: Int = 20) {
        port = daemon.port
        self.key = key
        self.seed = seed
        self.linesPerBody = linesPerBody
    }

    /// Starts the clients, each a thread.
    func start(connections: Int = 8) {
        for number in 0..<connections {
            let done = DispatchSemaphore(value: 0)
            threads.append(done)
            Thread.detachNewThread { [self] in
                run(number)
                done.signal()
            }
        }
    }

    /// Ends them, each after the verdict on its last body.
    func stop(seconds: Double = 60) throws {
        lock.withLock { isStopping = true }
        for done in threads where done.wait(timeout: .now() + seconds) == .timedOut {
            throw Failure("a client has no verdict after \(seconds) s")
        }
    }

    /// Ends them without a verdict, for a test that has failed.
    func abandon() {
        lock.withLock {
            isStopping = true
            isAbandoned = true
        }
    }

    var acknowledgedCount: Int { lock.withLock { acknowledged.count } }

    /// Waits until so many more events are acknowledged.
    func waitForMore(_ count: Int, seconds: Double = 30) throws {
        let goal = acknowledgedCount + count
        try until("\(count) more events are acknowledged", seconds: seconds) {
            acknowledgedCount >= goal ? true : nil
        }
    }

    /// Waits until each client has had no verdict once more: all answers that were sent to it before are noted.
    func waitUntilAllRetry() throws {
        let before = lock.withLock { retriesOfClients }
        try until("each client tries again") {
            let now = lock.withLock { retriesOfClients }
            return threads.indices.allSatisfy { now[$0, default: 0] > before[$0, default: 0] }
                ? true : nil
        }
    }

    private func run(_ number: Int) {
        var random = Random(seed: seed &+ UInt64(number))
        var connection: Connection?
        var serial = 0
        var last: String?
        while !lock.withLock({ isStopping }) {
            let uids = (0..<linesPerBody).map { "o\(seed)-\(number)-\(serial + $0)" }
            serial += linesPerBody
            var lines = uids.map(Self.line)
            if let last { lines.append(Self.line(last)) }
            let isBad = Int.random(in: 0..<8, using: &random) == 0
            if isBad { lines.insert(#"{"type":"clicked","message_uid":true}"#, at: 0) }
            last = uids.last
            lock.withLock { issued.formUnion(uids) }
            let body = Request.events(lines.joined(separator: "\n"), key: key).gzipped.bytes
            let mayAbandon = Int.random(in: 0..<10, using: &random) == 0
            while !lock.withLock({ isAbandoned }) {
                do {
                    if connection == nil { connection = try Connection(port: port) }
                    try connection!.send(body)
                    let answer = try connection!.answer()
                    if answer.status == 200 {
                        note(answer, uids: uids, lines: lines.count, rejected: isBad ? 1 : 0)
                        break
                    }
                    guard [429, 503, 507].contains(answer.status) else {
                        lock.withLock { faults.append("\(answer.status) \(answer.text)") }
                        break
                    }
                } catch {
                    connection = nil
                }
                lock.withLock { retriesOfClients[number, default: 0] += 1 }
                if mayAbandon { break }
                usleep(UInt32.random(in: 5000..<20000, using: &random))
            }
        }
    }

    /// Its event of a uid.
    static func line(_ uid: String) -> String {
        #"{"type":"clicked","message_uid":"\#(uid)","device_id":"d","event_uid":"\#(uid)","#
            + #""campaign_id":"c","properties":{"uid":"\#(uid)"}}"#
    }

    private func note(_ answer: Answer, uids: [String], lines: Int, rejected: Int) {
        let json = try? answer.json
        lock.withLock {
            bodies += 1
            acknowledged.formUnion(uids)
            if json?["received"].int != Int64(lines) || json?["rejected"].int != Int64(rejected)
                || json?["accepted"].int != Int64(lines - rejected)
            {
                faults.append("\(lines) lines, \(rejected) bad: \(answer.text)")
            }
        }
    }

    /// Compares what is stored with what was issued and acknowledged.
    ///
    /// - Parameter other: Another oracle that issued events of the same app.
    func verify(_ sql: SQL, app: String, with other: Oracle? = nil) throws {
        #expect(faults.isEmpty)
        let rows = try sql.rows(
            """
            SELECT message_uid, count(*),
                bool_and(event_uid = message_uid AND properties::jsonb->>'uid' = message_uid)
            FROM tapline.event WHERE app = '\(app)' GROUP BY message_uid
            """)
        let stored = Set(rows.compactMap { $0[0] })
        #expect(rows.filter { $0[1] != "1" }.isEmpty, "stored more than once")
        #expect(rows.filter { $0[2] != "t" }.isEmpty, "stored with another content")
        #expect(acknowledged.subtracting(stored).isEmpty, "acknowledged and lost")
        let known = issued.union(other?.issued ?? [])
        #expect(stored.subtracting(known).isEmpty, "stored and never issued")
        #expect(!acknowledged.isEmpty)
    }
}
