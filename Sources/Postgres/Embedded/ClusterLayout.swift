import Glibc
import Platform

/// Where the parts of the embedded database are in the data directory DIR.
///
///     DIR/postgres/data         the cluster; DIR/postgres belongs to the user the server runs as
///     DIR/postgres/log          its log files
///     DIR/run                   its socket, or a short directory named in DIR/postgres.socket-dir
///     DIR/postgres.lock         locked exclusively while somebody starts or stops the server
///     DIR/postgres.users        locked shared by everybody who needs the server
///     DIR/postgres.alive        locked by the processes of the server, all of them, by inheritance
///     DIR/postgres.watchdog     locked by the watchdog
///     DIR/postgres.start.log    what the server printed before it opened its log
struct ClusterLayout: Sendable {
    /// DIR, absolute and without symbolic links.
    let directory: String

    /// Creates DIR when missing and resolves it.
    init(creating path: String) throws(SystemError) {
        // Root's server runs as another user, which has to pass through.
        try Directory.create(path, permissions: geteuid() == 0 ? 0o711 : 0o700)
        try self.init(path)
    }

    init(_ path: String) throws(SystemError) {
        // SAFETY: realpath allocates, so the text is ours to free.
        guard let resolved = unsafe realpath(path, nil) else {
            throw .last("open data directory", path)
        }
        defer { unsafe free(resolved) }
        directory = unsafe String(cString: resolved)
    }

    var base: String { directory + "/postgres" }
    var data: String { base + "/data" }
    var unfinishedData: String { base + "/data.init" }
    var logs: String { base + "/log" }
    var run: String { directory + "/run" }
    var lock: String { base + ".lock" }
    var users: String { base + ".users" }
    var alive: String { base + ".alive" }
    var watchdog: String { base + ".watchdog" }
    var startLog: String { base + ".start.log" }
    var socketRecord: String { base + ".socket-dir" }

    /// Whether a finished cluster is there.
    var hasCluster: Bool { unsafe access(data + "/PG_VERSION", F_OK) == 0 }

    /// The major version of the cluster.
    var version: Int? {
        guard let text = try? File.contents(of: data + "/PG_VERSION") else { return nil }
        return Int(String(decoding: text, as: UTF8.self).prefix { $0.isNumber })
    }

    /// Marks the processes of this cluster: part of the postmaster's command line, and of the title
    /// of its children. FNV-1a of DIR.
    var clusterName: String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in directory.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "tapline-" + String(hash, radix: 16)
    }

    /// The user the server runs as; nil is the caller.
    ///
    /// Root asks whose cluster it is, else whose data directory, else takes `postgres`.
    func serverUser() throws(ClusterFault) -> ServerUser? {
        let owner = Self.owner(of: base)
        guard geteuid() == 0 else {
            if let owner, owner != geteuid() {
                throw .files(
                    "cannot use the embedded database in \"\(directory)\": it belongs to user "
                        + (ServerUser(uid: owner)?.name ?? String(owner)))
            }
            return nil
        }
        if let owner, owner != 0 {
            guard let user = ServerUser(uid: owner) else { throw .noServerUser }
            return user
        }
        if let owner = Self.owner(of: directory), owner != 0, let user = ServerUser(uid: owner) {
            return user
        }
        guard let user = ServerUser(named: "postgres") else { throw .noServerUser }
        return user
    }

    /// The owner of a file or directory, nil when it is not there; symbolic links are not followed.
    static func owner(of path: String) -> UInt32? {
        var info = stat()
        return unsafe lstat(path, &info) == 0 ? info.st_uid : nil
    }
}

/// What the running postmaster says of itself in `postmaster.pid`.
struct PostmasterFile {
    let pid: Int32
    let socketDirectory: String
    /// `starting`, `ready`, `stopping` or `standby`.
    let status: String

    /// Nil when there is none, or only part of one yet.
    init?(_ layout: ClusterLayout) {
        guard let bytes = try? File.contents(of: layout.data + "/postmaster.pid") else {
            return nil
        }
        let lines = String(decoding: bytes, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 8, let pid = Int32(lines[0]), pid > 1 else { return nil }
        self.pid = pid
        socketDirectory = String(lines[4])
        status = String(lines[7].prefix { $0 != " " })
    }
}

/// The processes of a cluster, as /proc shows them to any user.
enum ClusterProcesses {
    /// Whether a process is the postmaster of the cluster, and no other that has its number now.
    static func isPostmaster(_ pid: Int32, of layout: ClusterLayout) -> Bool {
        commandLine(pid).contains("cluster_name=" + layout.clusterName)
    }

    /// All processes of the cluster that live.
    static func all(of layout: ClusterLayout) -> [Int32] {
        let title = "postgres: \(layout.clusterName): "
        let setting = "cluster_name=" + layout.clusterName
        return ((try? Directory.list("/proc")) ?? []).compactMap { Int32($0) }.filter { pid in
            let words = commandLine(pid)
            return words.contains(setting) || words.first?.hasPrefix(title) == true
        }
    }

    private static func commandLine(_ pid: Int32) -> [String] {
        guard let file = try? File("/proc/\(pid)/cmdline", .read),
            let bytes = try? file.read(count: 4096, at: 0)
        else { return [] }
        return bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }
}
