import Glibc
import Platform

/// How the server's user gets to its directory, DIR/postgres.
///
/// As root we may have been given a DIR that no other user can enter, such as one of `mktemp -d`.
/// Then the server inherits the open directory and goes through /proc/self/fd, which asks for no
/// permission above it; so nobody's permissions have to be widened.
struct ServerPlace: ~Copyable {
    private let layout: ClusterLayout
    private let user: ServerUser?
    private let directory: File
    /// Whether the server's user gets there by the ordinary path.
    let isReachable: Bool

    /// Makes DIR/postgres when missing.
    init(_ layout: ClusterLayout, _ user: ServerUser?) throws(ClusterFault) {
        self.layout = layout
        self.user = user
        directory = try EmbeddedCluster.files { () throws(SystemError) in
            try Directory.create(layout.base, permissions: 0o700)
            if let user, unsafe lchown(layout.base, user.uid, user.gid) != 0 {
                throw .last("hand over directory", layout.base)
            }
            return try File(layout.base, .read)
        }
        isReachable = user?.canSearch(layout.base) ?? true
    }

    /// DIR/postgres for the server.
    var path: String { isReachable ? layout.base : "/proc/self/fd/3" }

    /// What the server inherits as descriptor 3; -1 for nothing.
    var descriptor: Int32 { isReachable ? -1 : directory.descriptor }

    /// Creates the cluster: beside its place, then by a rename, so that half of one is never used.
    ///
    /// - Parameter alive: Inherited by `initdb`, which may outlive us; nobody begins anew until then.
    func initialize(
        _ programs: ServerPrograms, alive: LockFile, isThrowaway: Bool
    ) throws(ClusterFault) {
        let unfinished = path + "/data.init"
        var command = [
            programs.directory + "/initdb", "-D", unfinished, "-U", "tapline", "--auth=peer",
            "--encoding=UTF8", "--locale=" + (Spawn.hasLocale("C.UTF-8") ? "C.UTF-8" : "C"),
            "--no-instructions",
        ]
        if isThrowaway { command.append("--no-sync") }
        _ = try run(["/bin/rm", "-rf", unfinished], alive)
        let (isSuccess, output) = try run(command, alive)
        guard isSuccess else {
            throw .couldNotInitialize(
                directory: layout.directory, reason: ServerLogs.lastError(in: output))
        }
        try EmbeddedCluster.files { () throws(SystemError) in
            guard unsafe rename(layout.unfinishedData, layout.data) == 0 else {
                throw .last("rename directory", layout.unfinishedData)
            }
            try Directory.sync(layout.base)
        }
    }

    private func run(
        _ command: [String], _ alive: LockFile
    ) throws(ClusterFault) -> (isSuccess: Bool, output: String) {
        try EmbeddedCluster.files { () throws(SystemError) in
            try Spawn.run(
                command, environment: ServerPrograms.environment, user: user, third: descriptor,
                fourth: alive.descriptor)
        }
    }
}
