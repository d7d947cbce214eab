import Foundation
import Glibc

/// A PostgreSQL of the test's own, which it can stop and kill.
final class Cluster {
    private static let programs: String = {
        if let path = ProcessInfo.processInfo.environment["TAPLINE_POSTGRES_BIN"] { return path }
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        let newest = versions.max { (Int($0) ?? 0) < (Int($1) ?? 0) }
        return "\(root)/\(newest ?? "15")/bin"
    }()

    private let home = TemporaryDirectory()
    private var isStopped = true
    var data: String { home.path + "/data" }
    /// The path of its socket.
    var socket: String { home.path + "/.s.PGSQL.5432" }

    /// A stopped one, of which the others are copies: `initdb` takes some seconds.
    ///
    /// SAFETY: nobody changes it after it is made.
    nonisolated(unsafe) private static let model = Result { try Cluster(initialized: ()) }

    /// Creates and starts one with an empty database `tapline`.
    init() throws {
        let model = try unsafe Self.model.get()
        try giveAway()
        try Tapline.tool(["cp", "-a", model.data, data])
        try start()
    }

    private init(initialized: ()) throws {
        try giveAway()
        let options = ["--auth=trust", "--username=tapline", "--no-sync", "--locale=C"]
        try Self.run(["initdb", "-D", data, "--encoding=UTF8"] + options)
        try start()
        try SQL(conninfo("postgres")).rows("CREATE DATABASE tapline")
        try stop(.fast)
    }

    /// PostgreSQL refuses root.
    private func giveAway() throws {
        if geteuid() == 0 { try Tapline.tool(["chown", owner, home.path]) }
    }

    /// Makes a standby of another one by `pg_basebackup`, and starts it; it takes sessions that read.
    init(standbyOf primary: Cluster) throws {
        try giveAway()
        let source = ["-h", primary.home.path, "-p", "5432", "-U", "tapline"]
        try Self.run(["pg_basebackup", "-D", data, "-R", "-c", "fast", "--no-sync"] + source)
        try start()
    }

    deinit { if !isStopped { try? stop(.immediate) } }

    /// Makes a standby a server of its own, and waits until it takes writes.
    func promote() throws { try Self.run(["pg_ctl", "-D", data, "-w", "promote"]) }

    func conninfo(_ database: String = "tapline", user: String = "tapline") -> String {
        "host=\(home.path) port=5432 user=\(user) dbname=\(database)"
    }

    /// The user that it runs as.
    let owner = geteuid() == 0 ? "postgres" : NSUserName()

    /// Asks for the password of everybody but its superuser, from now on.
    func requirePasswords() throws {
        let rules = "local all tapline trust\nlocal all all scram-sha-256\n"
        try rules.write(toFile: data + "/pg_hba.conf", atomically: false, encoding: .utf8)
        try SQL(conninfo("postgres")).rows("SELECT pg_reload_conf()")
    }

    func start() throws {
        let options = "-k \(home.path) -c listen_addresses= -c fsync=off -c max_connections=50"
        try Self.run(["pg_ctl", "-D", data, "-o", options, "-l", home.path + "/log", "-w", "start"])
        isStopped = false
    }

    enum Mode: String { case fast, immediate }

    func stop(_ mode: Mode) throws {
        try Self.run(["pg_ctl", "-D", data, "-m", mode.rawValue, "-w", "stop"])
        isStopped = true
    }

    /// `kill -9` of the postmaster; its children notice and end.
    func kill() throws {
        let text = try String(contentsOfFile: data + "/postmaster.pid", encoding: .utf8)
        guard let pid = text.split(separator: "\n").first.flatMap({ pid_t($0) }) else {
            throw Failure("postmaster.pid: \(text)")
        }
        _ = Glibc.kill(pid, SIGKILL)
        try until("the postmaster has ended") { Glibc.kill(pid, 0) != 0 ? true : nil }
    }

    private static func run(_ arguments: [String]) throws {
        let command = ["\(programs)/\(arguments[0])"] + arguments.dropFirst()
        let user = geteuid() == 0 ? ["runuser", "-u", "postgres", "--"] : []
        try Tapline.tool(user + command)
    }
}
