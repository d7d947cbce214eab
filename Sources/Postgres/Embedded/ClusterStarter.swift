internal import CPostgres
import Glibc
import Platform

/// Brings the server of a cluster up. The caller holds the turn (`DIR/postgres.lock`).
struct ClusterStarter {
    let layout: ClusterLayout
    let options: EmbeddedOptions
    let deadline: Microseconds
    let waitSeconds: Int
    let isCancelled: () -> Bool
    /// Told of each child process, which has to be waited for some time.
    let onChild: (Int32) -> Void

    enum Ping: Equatable {
        case ready
        /// It answers that it is starting or stopping.
        case busy
        case silent
    }

    /// - Parameter isTrusting: Whether a server is believed that says in its file that it is ready.
    /// - Returns: The connection string of a server that takes connections.
    func run(isTrusting: Bool) throws(PostgresError) -> String {
        let conninfo: String
        do throws(ClusterFault) {
            let alive = try EmbeddedCluster.files { () throws(SystemError) in
                try LockFile(layout.alive)
            }
            if let running = try adopt(alive, isTrusting: isTrusting) {
                conninfo = running
                Watchdog.ensure(layout, options, onChild: onChild)
                if isTrusting { return conninfo }
            } else {
                conninfo = try launch(alive)
            }
        } catch {
            throw .cluster(error)
        }
        try createDatabase(conninfo)
        return conninfo
    }

    /// Waits until the server that runs is ready.
    ///
    /// - Returns: Its connection string; nil when there is none, and then `alive` is locked.
    private func adopt(_ alive: LockFile, isTrusting: Bool) throws(ClusterFault) -> String? {
        let orphansTime = Clock.deadline(inMilliseconds: 5000)
        while !alive.tryExclusive() {
            let file = PostmasterFile(layout)
            if let file {
                let conninfo = Self.conninfo(socketDirectory: file.socketDirectory)
                if isTrusting && file.status == "ready" || Self.ping(conninfo) == .ready {
                    return conninfo
                }
            }
            if let file, ClusterProcesses.isPostmaster(file.pid, of: layout) {
                // A cleaner of /tmp may have taken the socket: nobody can reach it any more.
                let socket = file.socketDirectory + "/.s.PGSQL.5432"
                if file.status == "ready", unsafe access(socket, F_OK) != 0 {
                    Log.warn("embedded database has lost its socket", ["path": socket])
                    kill(file.pid, SIGINT)
                }
            } else if Clock.monotonic() > orphansTime {
                // Without a postmaster its children end, unless one is deep in a computation.
                for pid in ClusterProcesses.all(of: layout) { kill(pid, SIGQUIT) }
            }
            try pause()
        }
        return nil
    }

    /// Starts the server and waits until it is ready.
    ///
    /// - Parameter alive: Locked; nobody of the cluster lives, whatever the files say.
    private func launch(_ alive: LockFile) throws(ClusterFault) -> String {
        let programs = try ServerPrograms.find(version: layout.version)
        let user = try layout.serverUser()
        let place = try ServerPlace(layout, user)
        if !layout.hasCluster {
            try place.initialize(programs, alive: alive, isThrowaway: options.isThrowaway)
        }
        let socket = SocketDirectory(layout: layout, user: user)
        let socketDirectory = try EmbeddedCluster.files { () throws(SystemError) in
            let directory = try socket.make(isReachable: place.isReachable)
            // Left by a crash. The server would refuse to start if another process had been given
            // the number in them; the lock says that none of them is the server.
            socket.removeSocket(in: directory)
            try File.remove(layout.data + "/postmaster.pid")
            try ClusterSettings(
                layout: layout, user: user, socketDirectory: directory,
                version: programs.version, extra: options.settings
            ).write()
            return directory
        }
        let pid = try EmbeddedCluster.files { () throws(SystemError) in
            try File.remove(layout.startLog)
            let log = try File(layout.startLog, .createNew, permissions: 0o600)
            return try Spawn.start(
                [
                    programs.directory + "/postgres", "-D", place.path + "/data",
                    "-c", "cluster_name=" + layout.clusterName,
                ], environment: ServerPrograms.environment, user: user,
                niceness: Thread.behindAnswers, output: log.descriptor, third: place.descriptor,
                fourth: alive.descriptor)
        }
        onChild(pid)
        Watchdog.ensure(layout, options, onChild: onChild)
        let conninfo = Self.conninfo(socketDirectory: socketDirectory)
        while Self.ping(conninfo) != .ready {
            if Spawn.reap(pid) {
                throw .couldNotStart(
                    directory: layout.directory, reason: ServerLogs(layout).lastError)
            }
            try pause()
        }
        return conninfo
    }

    /// Creates database `tapline` when it is missing.
    private func createDatabase(_ conninfo: String) throws(PostgresError) {
        do throws(PostgresError) {
            _ = try PostgresConnection(conninfo: conninfo)
        } catch {
            guard error.sqlstate == "3D000" else { throw error }
            let other = conninfo + " " + Conninfo.setting("dbname", "postgres")
            let connection = try PostgresConnection(conninfo: other)
            do throws(PostgresError) {
                try connection.execute("CREATE DATABASE tapline")
            } catch {
                if error.sqlstate != "42P04" { throw error }
            }
        }
    }

    /// Lets the server get on; to be called between two looks at it.
    func pause() throws(ClusterFault) {
        if isCancelled() { throw .cancelled }
        guard Clock.monotonic() < deadline else {
            throw .notReadyInTime(directory: layout.directory, seconds: waitSeconds)
        }
        Spawn.pause(milliseconds: 20)
    }

    /// How to connect; settings that PG… variables of the environment could spoil are all named.
    static func conninfo(socketDirectory: String) -> String {
        Conninfo.setting("host", socketDirectory)
            + " port=5432 user=tapline dbname=tapline sslmode=disable gssencmode=disable"
            + " target_session_attrs=any options=''"
    }

    /// Asks the server whether it takes connections.
    static func ping(_ conninfo: String) -> Ping {
        switch unsafe PQping(conninfo + " connect_timeout=3") {
        case PQPING_OK: .ready
        case PQPING_REJECT: .busy
        default: .silent
        }
    }
}
