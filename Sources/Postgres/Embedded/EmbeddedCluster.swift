internal import CPostgres
import Glibc
import Platform

/// How an embedded database is run.
package struct EmbeddedOptions: Sendable {
    /// How long a server without anybody who needs it lives on.
    package var watchdogSeconds = 60
    /// The program that is run as `PROGRAM __postgres-watchdog DIR SECONDS` and calls
    /// ``EmbeddedCluster/watchdogMain(_:)``; nil for no watchdog. At first this program itself,
    /// unless it is one of tests.
    package var watchdogProgram: String? = Watchdog.thisProgram
    /// More settings of the server, stronger than the usual ones.
    package var settings: [(name: String, value: String)] = []
    /// Whether a new cluster may be lost with the machine; for tests.
    package var isThrowaway = false
    /// Whether ``EmbeddedCluster/stop()`` is an immediate shutdown: quick, the next start recovers.
    package var isStopImmediate = false

    /// The usual way.
    package init() {}
}

/// The private PostgreSQL of a data directory.
///
/// Safe between processes: starts and stops take turns, a server that runs is used as it is, and a
/// watchdog ends it when nobody has needed it for a while. Calls block; any thread may make them.
package final class EmbeddedCluster: Sendable {
    /// The first argument of the watchdog's command line.
    package static let watchdogCommand = "__postgres-watchdog"

    private struct State {
        var users: LockFile?
        var isCommand = false
        var starts = 0
        var isStopped = false
        var children: [Int32] = []
        var conninfo: String?
    }

    private let dataDirectory: String
    private let options: EmbeddedOptions
    private let state = Sync.Monitor(State())

    /// Describes the database of a data directory; nothing is started.
    package init(dataDirectory: String, options: EmbeddedOptions = EmbeddedOptions()) {
        self.dataDirectory = dataDirectory
        self.options = options
    }

    /// Starts the server for a daemon, or adopts the one that runs; creates the cluster if missing.
    ///
    /// To be called again when the connection is lost: it does only what is needed then.
    ///
    /// - Parameter waitSeconds: How long recovery after a crash may take.
    /// - Returns: The connection string.
    /// - Throws: ``PostgresError/cluster(_:)``; a server that was still starting goes on.
    package func start(waitSeconds: Int = 3600) throws(PostgresError) -> String {
        try bringUp(waitSeconds: waitSeconds, isCommand: false, isCreating: true)
    }

    /// Finds the running server for a command, waits for one that is starting, or starts it for as
    /// long as commands need it.
    ///
    /// - Parameters:
    ///   - waitSeconds: How long to wait until it is ready.
    ///   - isCreating: Whether to create a cluster where there is none.
    ///   - isTrusting: Whether a server is believed that says in its file that it is ready, so that
    ///     nobody connects to it only to see: the caller does, and if that fails, does not trust it.
    /// - Returns: The connection string.
    /// - Throws: ``PostgresError/cluster(_:)``.
    package func attach(
        waitSeconds: Int = 30, isCreating: Bool = true, isTrusting: Bool = false
    ) throws(PostgresError) -> String {
        try bringUp(
            waitSeconds: waitSeconds, isCommand: true, isCreating: isCreating,
            isTrusting: isTrusting)
    }

    /// Ends the use of the server, for good: after ``start(waitSeconds:)`` the server is stopped,
    /// after ``attach(waitSeconds:isCreating:)`` only if nobody else needs it. A start that is
    /// under way in another thread throws `cancelled`, and so does a later one.
    ///
    /// A fast shutdown; an immediate one after 20 s.
    package func stop() throws(PostgresError) {
        state.withLock { $0.isStopped = true }
        let users = state.wait { state -> LockFile?? in state.starts == 0 ? .some(state.users) : nil
        }
        guard let users = users ?? nil else { return }
        var isEnded = false
        defer { forget(isEnded: isEnded) }
        do throws(ClusterFault) {
            let layout = try Self.files { () throws(SystemError) in
                try ClusterLayout(dataDirectory)
            }
            let turn = try Self.files { () throws(SystemError) in try LockFile(layout.lock) }
            let deadline = Clock.deadline(inMilliseconds: 60_000)
            while !turn.tryExclusive() {
                guard Clock.monotonic() < deadline else {
                    throw .couldNotStop(directory: layout.directory)
                }
                Spawn.pause(milliseconds: 20)
            }
            // A shared lock can become exclusive only if it is the last one.
            if state.withLock({ $0.isCommand }), !users.tryExclusive() { return }
            try ClusterStopper(layout: layout, options: options).stop()
            isEnded = true
        } catch {
            throw .cluster(error)
        }
    }

    private func forget(isEnded: Bool) {
        let children = state.withLock { state in
            state.users = nil
            state.conninfo = nil
            defer { state.children = [] }
            return state.children
        }
        // After the server the watchdog ends by itself, within a moment; then nothing is left of us.
        let deadline = Clock.deadline(inMilliseconds: isEnded ? 2000 : 0)
        for child in children {
            while !Spawn.reap(child), Clock.monotonic() < deadline { Spawn.pause(milliseconds: 10) }
        }
    }

    /// Whether the server takes connections now. Asks it; false before it was started.
    package var isHealthy: Bool {
        guard let conninfo = state.withLock({ $0.conninfo }) else { return false }
        return ClusterStarter.ping(conninfo) == .ready
    }

    private func bringUp(
        waitSeconds: Int, isCommand: Bool, isCreating: Bool, isTrusting: Bool = false
    ) throws(PostgresError) -> String {
        let isStopped = state.withLock { state in
            if !state.isStopped { state.starts += 1 }
            return state.isStopped
        }
        if isStopped { throw .cluster(.cancelled) }
        defer {
            state.withLock { $0.starts -= 1 }
            state.broadcast()
        }
        let layout: ClusterLayout
        let turn: LockFile
        do throws(ClusterFault) {
            layout = try open(isCreating: isCreating)
            turn = try Self.files { () throws(SystemError) in try LockFile(layout.lock) }
        } catch {
            throw .cluster(error)
        }
        let starter = ClusterStarter(
            layout: layout, options: options,
            deadline: Clock.deadline(inMilliseconds: waitSeconds * 1000), waitSeconds: waitSeconds,
            isCancelled: { [state] in state.withLock { $0.isStopped } },
            onChild: { [state] child in state.withLock { $0.children.append(child) } })
        do throws(ClusterFault) {
            while !turn.tryExclusive() { try starter.pause() }
            try use(layout, isCommand: isCommand)
        } catch {
            throw .cluster(error)
        }
        let conninfo = try starter.run(isTrusting: isTrusting)
        state.withLock { state in
            state.children.removeAll { Spawn.reap($0) }
            state.conninfo = conninfo
        }
        return conninfo
    }

    private func open(isCreating: Bool) throws(ClusterFault) -> ClusterLayout {
        if isCreating {
            return try Self.files { () throws(SystemError) in
                try ClusterLayout(creating: dataDirectory)
            }
        }
        guard let layout = try? ClusterLayout(dataDirectory), layout.hasCluster else {
            throw .noCluster(directory: dataDirectory)
        }
        return layout
    }

    /// Declares that this process needs the server.
    private func use(_ layout: ClusterLayout, isCommand: Bool) throws(ClusterFault) {
        guard state.withLock({ $0.users == nil }) else { return }
        let users = try Self.files { () throws(SystemError) in
            let users = try LockFile(layout.users)
            try users.takeShared()
            return users
        }
        state.withLock { state in
            state.users = users
            state.isCommand = isCommand
        }
    }

    /// Turns a failed system call into a fault of the cluster.
    static func files<Result: ~Copyable>(
        _ body: () throws(SystemError) -> Result
    ) throws(ClusterFault) -> Result {
        do throws(SystemError) { return try body() } catch { throw .files(error.description) }
    }

    /// The main program of the watchdog.
    ///
    /// - Parameter arguments: Those after ``watchdogCommand``: the data directory and the seconds.
    /// - Returns: The exit code of the process.
    package static func watchdogMain(_ arguments: [String]) -> Int32 {
        guard arguments.count == 2, let seconds = Int(arguments[1]),
            let watchdog = try? Watchdog(directory: arguments[0], seconds: seconds)
        else { return 2 }
        return watchdog.run()
    }
}
