import Glibc
import Platform

/// The configuration files of the embedded server, written anew at each start.
struct ClusterSettings {
    let layout: ClusterLayout
    let user: ServerUser?
    let socketDirectory: String
    let version: Int
    let extra: [(name: String, value: String)]

    /// Writes `postgresql.conf`, `pg_hba.conf` and `pg_ident.conf` into the cluster.
    func write() throws(SystemError) {
        try write("postgresql.conf", configuration)
        try write("pg_hba.conf", Self.authentication)
        try write("pg_ident.conf", users)
    }

    /// Why these values: docs/operations.md. An operator's own go to `local.conf` beside it.
    private var configuration: String {
        let memory = Self.memoryBytes()
        var settings: [(name: String, value: String)] = [
            ("listen_addresses", ""),
            ("unix_socket_directories", socketDirectory),
            ("port", "5432"),
            ("max_connections", "50"),
            ("shared_buffers", "\(max(16, min(256, memory >> 23)))MB"),
            ("max_wal_size", "\(max(1, min(8, Self.diskBytes(layout.directory) >> 33)))GB"),
            ("checkpoint_timeout", "30min"),
            ("wal_compression", version >= 15 ? "lz4" : "on"),
            ("fsync", "on"),
            ("synchronous_commit", "on"),
            ("autovacuum", "on"),
            ("jit", "off"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            ("lc_messages", "C"),
            ("logging_collector", "on"),
            ("log_directory", "../log"),
            ("log_filename", "postgresql-%Y%m%d%H%M%S.log"),
            ("log_rotation_age", "0"),
            ("log_rotation_size", "16MB"),
        ]
        // Containers often have 64 MB there, too little for a parallel query.
        if Self.diskBytes("/dev/shm") < 256 << 20 {
            settings.append(("dynamic_shared_memory_type", "sysv"))
        }
        settings += extra
        let lines = settings.map { "\($0.name) = \(Self.quote($0.value, "'"))\n" }.joined()
        return "# Written by tapline at each start; changes belong into local.conf.\n" + lines
            + "include_if_exists = 'local.conf'\n"
    }

    /// The socket's directory already keeps strangers out; beyond that the kernel tells the server
    /// who is calling (`peer`), and only the users of `pg_ident.conf` may be `tapline`. So nothing
    /// depends on a password, or on the permissions of a directory alone.
    private static let authentication = "local all all peer map=tapline\n"

    /// Root, the user the server runs as, the owner of the data directory and the caller.
    private var users: String {
        let owner = ClusterLayout.owner(of: layout.directory) ?? 0
        var names = ["root"]
        for name in [user?.name, ServerUser(uid: owner)?.name, ServerUser(uid: geteuid())?.name] {
            if let name, !names.contains(name) { names.append(name) }
        }
        return names.map { "tapline \(Self.quote($0, "\"")) tapline\n" }.joined()
    }

    private static func quote(_ text: String, _ mark: Character) -> String {
        String(mark) + text.flatMap { $0 == mark ? [mark, mark] : [$0] } + String(mark)
    }

    /// Replaces a file in the cluster's directory.
    ///
    /// That belongs to another user while we may be root, so no symbolic link in it is followed.
    private func write(_ name: String, _ text: String) throws(SystemError) {
        let path = layout.data + "/" + name
        let directory = unsafe open(layout.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard directory >= 0 else { throw .last("open", layout.data) }
        defer { close(directory) }
        let temporary = name + ".new"
        unsafe unlinkat(directory, temporary, 0)
        let file = unsafe openat(
            directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .last("write", path) }
        defer { close(file) }
        if let user, fchown(file, user.uid, user.gid) != 0 { throw .last("write", path) }
        let bytes = Array(text.utf8)
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count,
            unsafe renameat(directory, temporary, directory, name) == 0
        else { throw .last("write", path) }
    }

    /// The memory of the machine, or of the control group where that is less.
    private static func memoryBytes() -> Int {
        let machine = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
        guard let file = try? File("/sys/fs/cgroup/memory.max", .read),
            let text = try? file.read(count: 32, at: 0),
            let limit = Int(String(decoding: text, as: UTF8.self).prefix { $0.isNumber })
        else { return machine }
        return min(machine, limit)
    }

    /// The size of the file system that holds a path; a large one when it cannot be told.
    private static func diskBytes(_ path: String) -> Int {
        var info = statvfs()
        guard unsafe statvfs(path, &info) == 0 else { return 1 << 40 }
        return Int(info.f_blocks) * Int(info.f_frsize)
    }
}
