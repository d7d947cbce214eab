import Glibc
import Platform
import Postgres
import Synchronization

/// Empty databases for tests, in one throwaway server a test process.
///
/// The server starts when the first test asks and ends with the process: at its exit, or by its
/// watchdog when the process is killed. It does not sync, so it is fast, and it keeps no promise.
package enum TestDatabase {
    /// Creates an empty database.
    ///
    /// - Returns: The connection string, for user `tapline`, a superuser.
    package static func create() throws -> String { try create(template: "template1") }

    private static func create(template: String) throws -> String {
        let server = try TestServer.shared.get()
        let name = "test_\(number.add(1, ordering: .relaxed).newValue)"
        let connection = try PostgresConnection(conninfo: server)
        try connection.execute("CREATE DATABASE \(name) TEMPLATE \(template)")
        return server + " dbname=\(name)"
    }

    /// Creates a database as `fill` would make it of an empty one; it is called once a process for each name,
    /// as to copy what it makes is several times as fast.
    ///
    /// - Parameters:
    ///   - name: Of what it makes.
    ///   - fill: Given the connection string of an empty database, in which it leaves no session open.
    /// - Returns: As of ``create()``.
    package static func create(
        like name: String, _ fill: (String) throws -> Void
    ) throws -> String {
        let template = try templates.withLock { templates in
            if let known = templates[name] { return known }
            let conninfo = try create()
            try fill(conninfo)
            let template = conninfo.split(separator: "=").last.map(String.init) ?? ""
            templates[name] = template
            return template
        }
        return try create(template: template)
    }

    private static let templates = Sync.Monitor<[String: String]>([:])
    private static let number = Atomic(0)
}

/// The server of this process.
enum TestServer {
    static let shared = Result { try start() }

    nonisolated(unsafe) private static var cluster: EmbeddedCluster?
    nonisolated(unsafe) private static var directory = ""

    private static func start() throws -> String {
        try TestDirectory.removeLeftovers()
        var options = EmbeddedOptions.forTests
        options.isStopImmediate = true
        options.settings += [
            ("synchronous_commit", "off"), ("full_page_writes", "off"),
            ("max_connections", "200"), ("shared_buffers", "64MB"), ("max_wal_size", "1GB"),
        ]
        let path = try TestDirectory.make()
        let cluster = EmbeddedCluster(dataDirectory: path, options: options)
        unsafe directory = path
        unsafe self.cluster = cluster
        atexit {
            try? unsafe TestServer.cluster?.stop()
            unsafe TestDirectory.remove(TestServer.directory)
        }
        return try cluster.start()
    }
}

extension EmbeddedOptions {
    /// For a cluster of a test: no sync, and a watchdog that waits for 5 s.
    package static var forTests: EmbeddedOptions {
        var options = EmbeddedOptions()
        options.isThrowaway = true
        options.watchdogSeconds = 5
        options.watchdogProgram = testWatchdog
        options.settings = [("fsync", "off")]
        return options
    }

    /// Built beside the tests, which are a program themselves.
    private static var testWatchdog: String? {
        // SAFETY: realpath allocates, so the text is ours to free.
        guard let this = unsafe realpath("/proc/self/exe", nil) else { return nil }
        defer { unsafe free(this) }
        let directory = unsafe Directory.parent(of: String(cString: this))
        let program = directory + "/postgres-watchdog-for-tests"
        return unsafe access(program, X_OK) == 0 ? program : nil
    }
}

/// Directories of tests, under /tmp, named after the process.
package enum TestDirectory {
    private static let prefix = "tapline-test-"
    private static let number = Atomic(0)

    /// Makes a new directory that other users may pass through.
    package static func make() throws -> String {
        let count = number.add(1, ordering: .relaxed).newValue
        let path = "/tmp/\(prefix)\(getpid())-\(count)"
        try Directory.create(path, permissions: 0o711)
        return path
    }

    /// Removes a directory of a test and all in it.
    package static func remove(_ path: String) {
        guard path.hasPrefix("/tmp/" + prefix) else { return }
        removeTree(path)
    }

    /// Removes what killed test processes have left, once their servers are gone.
    static func removeLeftovers() throws {
        for name in try Directory.list("/tmp") where name.hasPrefix(prefix) {
            let owner = Int32(name.dropFirst(prefix.count).prefix { $0.isNumber }) ?? 0
            guard owner > 0, kill(owner, 0) != 0, errno == ESRCH else { continue }
            let path = "/tmp/" + name
            if let alive = try FileLock.tryTake(path + "/postgres.alive") {
                removeTree(path)
                _ = consume alive
            }
        }
    }

    private static func removeTree(_ path: String) {
        var info = stat()
        guard unsafe lstat(path, &info) == 0 else { return }
        if info.st_mode & S_IFMT == S_IFDIR {
            for name in (try? Directory.list(path)) ?? [] { removeTree(path + "/" + name) }
            unsafe rmdir(path)
        } else {
            unsafe unlink(path)
        }
    }
}
