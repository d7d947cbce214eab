import Event
import Glibc
import Gzip
import HTTPServer
import HTTPTestClient
import Ingest
import Metrics
import Platform
import Spool
import Testing

/// Keys of a test.
final class FakeKeys: KeyStore {
    func lookup(_ key: [UInt8]) -> KeyVerdict {
        switch String(decoding: key, as: UTF8.self) {
        case "good": .known(app: Array("shop".utf8), role: .ingest)
        case "polite": .known(app: Array("news".utf8), role: .ingest)
        case "reader": .known(app: Array("shop".utf8), role: .read)
        case "old": .revoked
        case "new", "nowhere", "dark", "new-reader": .ask
        default: .unknown
        }
    }

    func ask(_ key: [UInt8], _ completion: @escaping @Sendable (KeyVerdict) -> Void) {
        let verdict: KeyVerdict =
            switch String(decoding: key, as: UTF8.self) {
            case "new": .known(app: Array("shop".utf8), role: .ingest)
            case "new-reader": .known(app: Array("shop".utf8), role: .read)
            case "dark": .unavailable
            default: .unknown
            }
        Thread.start(name: "ask") { completion(verdict) }
    }

    func lookup(alias: String) -> AliasVerdict {
        switch alias {
        case "open": .known(app: Array("shop".utf8), isOpen: true)
        case "keyed": .known(app: Array("shop".utf8), isOpen: false)
        default: .unknown
        }
    }
}

/// Answers what it is told, or that the time is over.
final class FakeWaiter: StoredWaiter {
    let counts: StoredCounts?
    let marks = Sync.Monitor<[SpoolMark]>([])
    /// Bodies announced and neither withdrawn nor waited for: 0 when nothing is under way.
    let announced = Sync.Monitor(0)
    init(_ counts: StoredCounts?) { self.counts = counts }

    func announce() { announced.withLock { $0 += 1 } }

    func withdraw() { announced.withLock { $0 -= 1 } }

    func whenStored(
        _ mark: SpoolMark, timeoutMilliseconds: Int,
        _ completion: @escaping @Sendable (StoredCounts?) -> Void
    ) {
        marks.withLock { $0.append(mark) }
        withdraw()
        completion(counts)
    }
}

/// A service on a real server and a real spool, in a directory of its own.
final class ServiceFixture: Sendable {
    let directory: String
    let spool: Spool
    let service: IngestService
    let server: HTTPServer
    let registry = Registry()

    init(
        _ change: (inout ServiceSettings) -> Void = { _ in },
        http: (inout HTTPServerConfiguration) -> Void = { _ in },
        options: SpoolOptions = SpoolOptions(), waiter: FakeWaiter? = nil
    ) throws {
        var template = Array("/tmp/tapline-service-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw RawClient.Failure("mkdtemp") }
        directory = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        spool = try Spool(directory: directory, options: options)
        var settings = ServiceSettings()
        change(&settings)
        service = IngestService(
            settings: settings, spool: spool, keys: FakeKeys(), registry: registry,
            storedWaiter: waiter,
            routes: { path in
                guard path == "/v1/reports/campaigns" else { return nil }
                return ServiceRoute(methods: ["GET"], roles: [.read]) { _, exchange, app in
                    let text = String(decoding: app, as: UTF8.self)
                    exchange.respond(.json(status: 200, "{\"app\":\"\(text)\"}"))
                }
            })
        var configuration = HTTPServerConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.bodyBytesMax = settings.bodyBytesMax
        http(&configuration)
        server = try HTTPServer(configuration: configuration, handler: service)
        service.metrics.register(server, in: registry)
    }

    deinit {
        server.stop(drainSeconds: 0)
        spool.close()
        for name in (try? Directory.list(directory)) ?? [] { unsafe unlink("\(directory)/\(name)") }
        unsafe rmdir(directory)
    }

    func client() throws -> RawClient { try RawClient(port: server.port) }

    /// The text of a request with a good key.
    static func request(
        _ body: [UInt8], target: String = "/v1/events", headers: [String] = []
    ) -> [UInt8] {
        var head = "POST \(target) HTTP/1.1\r\nHost: t\r\nContent-Length: \(body.count)\r\n"
        for header in headers { head += header + "\r\n" }
        if !headers.contains(where: { $0.hasPrefix("Authorization") }) {
            head += "Authorization: Bearer good\r\n"
        }
        return Array((head + "\r\n").utf8) + body
    }

    func post(
        _ body: [UInt8], target: String = "/v1/events", headers: [String] = []
    ) throws -> RawClient.Answer {
        let client = try client()
        client.send(Self.request(body, target: target, headers: headers))
        return try client.answer()
    }

    func post(
        _ body: String, target: String = "/v1/events", headers: [String] = []
    ) throws -> RawClient.Answer {
        try post(Array(body.utf8), target: target, headers: headers)
    }

    func postGzip(_ body: [UInt8]) throws -> RawClient.Answer {
        try post(body, headers: ["Content-Encoding: gzip"])
    }

    func get(_ target: String, headers: [String] = []) throws -> RawClient.Answer {
        let client = try client()
        let lines = headers.map { $0 + "\r\n" }.joined()
        client.send("GET \(target) HTTP/1.1\r\nHost: t\r\n\(lines)\r\n")
        return try client.answer()
    }

    /// All records of the spool that are durable now.
    func records() throws -> [BodyRecord] {
        let reader = try spool.makeReader(from: nil)
        var records: [BodyRecord] = []
        while let record = try reader.next(timeoutMilliseconds: 0) {
            records.append(try BodyRecord(payload: record.payload))
        }
        return records
    }

    func metric(_ line: String) -> String? {
        String(decoding: registry.render(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(line + " ") }.map { String($0.dropFirst(line.count + 1)) }
    }
}

extension RawClient.Failure {
    init(_ text: String) { self.init(description: text) }
}

/// A good line.
func goodLine(_ index: Int) -> String {
    "{\"type\":\"clicked\",\"message_uid\":\"m\(index)\",\"device_id\":\"d\(index)\"}"
}
