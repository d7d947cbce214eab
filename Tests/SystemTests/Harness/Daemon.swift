import Foundation
import Glibc

/// A `tapline serve` and its data directory.
///
/// Used by one test at a time; only ``port`` is read by other threads.
final class Daemon: @unchecked Sendable {
    /// The data directory.
    let directory: String
    /// The conninfo given to it; nil for the embedded database.
    let database: String?
    /// Its port, the same at each start.
    let port: Int
    var settings: [String: String]
    /// The program, and variables that it gets.
    var binary = Tapline.binary
    var environment: [String: String] = [:]
    private(set) var process: ChildProcess?
    private let owned: TemporaryDirectory?

    /// - Parameters:
    ///   - directory: The data directory; nil makes one that is removed at the end, where the embedded
    ///     database is there already, and empty.
    ///   - settings: Passed with `--set`.
    init(
        directory: String? = nil, database: String? = nil, settings: [String: String] = [:]
    ) throws {
        owned = directory == nil ? TemporaryDirectory() : nil
        self.directory = directory ?? owned!.path + "/d"
        if directory == nil, database == nil {
            let model = try Self.model.get()
            try FileManager.default.createDirectory(
                atPath: self.directory, withIntermediateDirectories: false)
            try Tapline.tool(["cp", "-a", model.path + "/d/postgres", self.directory])
        }
        self.database = database
        self.settings = settings
        port = try Self.freePort()
    }

    /// An embedded database with its schema, of which the others are copies: to make one takes some seconds.
    private static let model = Result {
        let directory = TemporaryDirectory()
        let outcome = try Tapline.run(["migrate", "--data-dir", directory.path + "/d"])
        guard outcome.isSuccess else { throw Failure("migrate: \(outcome)") }
        return directory
    }

    /// Ends it roughly, as a test that failed has no use for it.
    deinit {
        process?.signal(SIGTERM)
        if (try? process?.wait(seconds: 10)) == nil { process?.signal(SIGKILL) }
    }

    /// The options by which other commands find the same database.
    var store: [String] {
        ["--data-dir", directory] + (database.map { ["--database", $0] } ?? [])
    }

    /// Starts it without waiting.
    func spawn() throws {
        var arguments = ["serve", "--listen", "127.0.0.1:\(port)"] + store
        for (name, value) in settings { arguments += ["--set", "\(name)=\(value)"] }
        process = try Tapline.start(arguments, environment: environment, binary: binary)
    }

    /// Starts it and waits until it can make events durable.
    @discardableResult
    func start() throws -> Daemon {
        try spawn()
        try waitUntilReady()
        return self
    }

    func waitUntilReady(seconds: Double = 60) throws {
        try until("the daemon is ready\n\(log)", seconds: seconds) {
            if let exit = process?.exit {
                throw Failure("the daemon ended: \(exit)\n\(log)", isFinal: true)
            }
            return try get("/readyz").status == 200 ? true : nil
        }
    }

    /// `kill -9`.
    func kill() throws {
        process?.signal(SIGKILL)
        _ = try process?.wait(seconds: 10)
    }

    /// SIGTERM; how it ended.
    @discardableResult
    func stop() throws -> Exit {
        process?.signal(SIGTERM)
        guard let exit = try process?.wait(seconds: 40) else { throw Failure("not started") }
        return exit
    }

    /// What it wrote to stderr since its last start.
    var log: String { process?.error ?? "" }

    // MARK: HTTP

    func connect() throws -> Connection { try Connection(port: port) }

    /// Sends one request on a connection of its own.
    func send(_ request: Request) throws -> Answer {
        let connection = try connect()
        try connection.send(request.bytes)
        return try connection.answer(hasBody: request.method != "HEAD")
    }

    func get(_ target: String, key: String? = nil) throws -> Answer {
        try send(.get(target, key: key))
    }

    /// Sends lines and waits until they are stored.
    @discardableResult
    func store(_ lines: [String], key: String) throws -> JSON {
        let body = lines.joined(separator: "\n") + "\n"
        return try until("the events are stored") {
            let answer = try send(.events(body, key: key, query: "?ack=stored"))
            guard answer.status == 200 else {
                // A test before may have cut the daemon's connections: 503 says to try again.
                let text = "\(answer.status) \(answer.text)\n\(log)"
                throw Failure(text, isFinal: answer.status != 503)
            }
            return try answer.json
        }
    }

    /// The value of a metric without labels.
    func metric(_ name: String) throws -> Double {
        let lines = try get("/metrics").text.split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix(name + " ") }),
            let value = Double(line.dropFirst(name.count + 1))
        else { throw Failure("no metric \(name)") }
        return value
    }

    // MARK: The command line

    /// Makes a key.
    func key(_ app: String, role: String = "ingest") throws -> String {
        let outcome = try Tapline.run(["key", "create", "--app", app, "--role", role] + store)
        let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
        guard outcome.isSuccess, lines.count == 2, !lines[0].isEmpty, lines[1].isEmpty else {
            throw Failure("key create: \(outcome)")
        }
        return String(lines[0])
    }

    /// `tapline check --format json`, with its exit code.
    func check() throws -> (exit: Exit, books: JSON) {
        let outcome = try Tapline.run(["check", "--format", "json"] + store)
        guard let books = try? JSON(parsing: outcome.output.utf8) else {
            throw Failure("check: \(outcome)")
        }
        return (outcome.exit, books)
    }

    /// Waits until nothing is spooled.
    func waitUntilLoaded(seconds: Double = 60) throws {
        try until("the spool is loaded\n\(log.suffix(2000))", seconds: seconds, interval: 0.05) {
            // After a start nothing counts as spooled until the checkpoint is known; the bytes do.
            try metric("tapline_events_spooled") == 0
                && metric("tapline_spool_unloaded_bytes") == 0 ? true : nil
        }
    }

    // MARK: SQL

    /// The daemon's database, for a test or for another daemon.
    var conninfo: String {
        database ?? "host=\(socketDirectory) port=5432 user=tapline dbname=tapline"
    }

    /// A connection of the test to the daemon's database, which may still be starting.
    func sql() throws -> SQL {
        try until("the database answers", seconds: 30) { try SQL(conninfo) }
    }

    private var socketDirectory: String {
        let record = try? String(
            contentsOfFile: directory + "/postgres.socket-dir", encoding: .utf8)
        return record ?? directory + "/run"
    }

    /// The embedded postmaster's process id.
    func postmaster() throws -> pid_t {
        let text = try String(
            contentsOfFile: directory + "/postgres/data/postmaster.pid", encoding: .utf8)
        guard let pid = text.split(separator: "\n").first.flatMap({ pid_t($0) }) else {
            throw Failure("postmaster.pid: \(text)")
        }
        return pid
    }

    /// A port that is free now, below those that the kernel gives to connections: the connections of other
    /// tests could take one of these each time that the daemon is down.
    private static func freePort() throws -> Int {
        for _ in 0..<1_000 {
            let port = UInt16.random(in: 10_000..<32_768)
            let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(socket) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            // SAFETY: a sockaddr_in is a sockaddr, and its own size is given.
            let code = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe bind(socket, pointer, size)
                }
            }
            if code == 0 { return Int(port) }
        }
        throw Failure("no free port: errno \(errno)")
    }
}
