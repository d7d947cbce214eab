import Event
import Glibc
import Gzip
import HTTPServer
import HTTPTestClient
import Ingest
import JSONLines
import Metrics
import Platform
import Spool

/// Prints what ingesting costs, stage by stage, in nanoseconds of CPU an event.
///
/// ```
/// swift run -c release ingest-bench [STAGE [ROUNDS]]
/// ```
/// Each round puts the same bodies through one stage; the figure is the least of the rounds, since
/// other work of the machine only ever adds. Instructions are to be counted from outside, stage by
/// stage: `perf stat -e instructions:u`, or `valgrind --tool=callgrind`.
@main
struct IngestBench {
    static func main() throws {
        Memory.limitArenas(to: 2)
        let arguments = CommandLine.arguments.dropFirst()
        let only = arguments.first
        let rounds = arguments.dropFirst().first.flatMap { Int($0) } ?? 15
        var bench = try IngestBench()
        func stage(
            _ name: String, butMine: Bool = false, _ run: (inout IngestBench) throws -> Void
        ) rethrows {
            guard only == nil || only == name else { return }
            var least = Int64.max
            for _ in 0..<rounds {
                let before = cpuNanoseconds(butMine: butMine)
                try run(&bench)
                least = min(least, cpuNanoseconds(butMine: butMine) - before)
            }
            let padded = name + String(repeating: " ", count: 8 - name.count)
            print("\(padded) \(least / Int64(bodyCount * Bodies.events)) ns an event")
        }
        try stage("inflate") { try $0.inflate() }
        stage("scan") { $0.scan() }
        try stage("read") { try $0.read() }
        stage("decode") { $0.decode() }
        try stage("spool") { try $0.append() }
        try stage("whole", butMine: true) { try $0.post() }
        bench.end()
        print("checksum \(bench.checksum)")
    }

    private static let bodyCount = 40
    private static let clientCount = 8

    private let bodies: [[UInt8]]
    private let gzipped: [[UInt8]]
    private let app = Array("bench".utf8)
    private let receivedAt = Bodies.now
    private let decoder = Decoder()
    private let directory: String
    private let spool: Spool
    private let server: HTTPServer
    private let clients: [RawClient]
    /// Of what each stage made, so that none of it can be left out.
    private var checksum = 0

    private final class Decoder {
        var events = EventDecoder()
    }

    private init() throws {
        var numbers = Numbers(state: 1)
        bodies = (0..<Self.bodyCount).map { _ in Bodies.make(&numbers) }
        gzipped = try bodies.map { try Gzip.compress($0, level: 1) }
        var template = Array("/tmp/tapline-bench-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else {
            throw SystemError.last("create", "/tmp/tapline-bench-XXXXXX")
        }
        directory = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        spool = try Spool(directory: directory)
        var configuration = HTTPServerConfiguration()
        configuration.listen = "127.0.0.1:0"
        let service = IngestService(spool: spool, keys: OneKey(), registry: Registry())
        server = try HTTPServer(configuration: configuration, handler: service)
        clients = try (0..<Self.clientCount).map { [server] _ in try RawClient(port: server.port) }
    }

    private func end() {
        server.stop(drainSeconds: 0)
        spool.close()
        for name in (try? Directory.list(directory)) ?? [] { unsafe unlink("\(directory)/\(name)") }
        unsafe rmdir(directory)
    }

    // MARK: stages

    /// Inflating in the pieces that the server hands over.
    private mutating func inflate() throws {
        var bytes: [UInt8] = []
        for body in gzipped {
            var stream = try InflateStream(limit: 10 << 20)
            bytes.removeAll(keepingCapacity: true)
            var index = 0
            while index < body.count {
                let end = min(index + 40_806, body.count)
                try stream.push(body.span.extracting(index..<end), into: &bytes)
                index = end
            }
            try stream.finish()
            checksum &+= bytes.count
        }
    }

    /// Cutting lines and validating each: a part of `read`.
    private mutating func scan() {
        var members = GrowingTable<JSONMember>()
        for body in bodies {
            var lines = LineSplitter()
            let bytes = body.rawSpan
            while let line = lines.next(in: bytes) {
                let text = bytes.extracting(line.range)
                _ = JSONObject.scan(text, 0..<text.byteCount, into: &members)
                checksum &+= members.count
            }
        }
    }

    /// Finding the fields of each line: a part of `decode`.
    private mutating func read() throws {
        for body in bodies {
            var lines = LineSplitter()
            let bytes = body.rawSpan
            while let line = lines.next(in: bytes) {
                try decoder.events.read(bytes.extracting(line.range), nil)
                checksum &+= 1
            }
        }
    }

    /// All from the inflated body to the record.
    private mutating func decode() {
        for body in bodies { checksum &+= record(body, &decoder.events).count }
    }

    private func record(_ body: [UInt8], _ decoder: inout EventDecoder) -> [UInt8] {
        var builder = BodyRecord.Builder(
            app: app, receivedAt: receivedAt, capacity: body.count + body.count / 2)
        var lines = LineSplitter()
        let bytes = body.rawSpan
        while let line = lines.next(in: bytes) {
            let verdict = decoder.decode(
                line: bytes.extracting(line.range), receivedAt: receivedAt, sentAtHeader: nil,
                app: app, into: &builder)
            precondition(verdict == .accepted, "a line of the bench was rejected")
        }
        return builder.finish()
    }

    /// Appending each record durably, one after the other: the checksum, the write and the sync.
    private mutating func append() throws {
        let record = record(bodies[0], &decoder.events)
        let done = Sync.Monitor(0)
        for count in 1...Self.bodyCount {
            try spool.append(record, events: Bodies.events) { _ in
                done.withLock { $0 += 1 }
                done.signal()
            }
            _ = done.wait { $0 == count ? true : nil }
        }
    }

    /// Requests of clients, all at one time, to the service on its server; what the clients use is
    /// not counted.
    private mutating func post() throws {
        for start in stride(from: 0, to: Self.bodyCount, by: Self.clientCount) {
            for (client, body) in zip(clients, gzipped[start...]) {
                let head =
                    "POST /v1/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench\r\n"
                    + "Content-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n"
                    + "Content-Length: \(body.count)\r\n\r\n"
                client.send(Array(head.utf8) + body)
            }
            for client in clients {
                let answer = try client.answer()
                precondition(answer.status == 200, answer.body)
                checksum &+= answer.status
            }
        }
    }
}

/// CPU time of all threads, or of all but the one that asks.
private func cpuNanoseconds(butMine: Bool) -> Int64 {
    func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
    return read(CLOCK_PROCESS_CPUTIME_ID) - (butMine ? read(CLOCK_THREAD_CPUTIME_ID) : 0)
}

/// Takes any key for one app.
private final class OneKey: KeyStore {
    func lookup(_ key: [UInt8]) -> KeyVerdict { .known(app: Array("bench".utf8), role: .ingest) }

    func ask(_ key: [UInt8], _ completion: @escaping @Sendable (KeyVerdict) -> Void) {
        completion(.unavailable)
    }
}
