import Glibc
import Platform

/// Ends the server of a cluster. The caller holds the turn (`DIR/postgres.lock`).
struct ClusterStopper {
    let layout: ClusterLayout
    let options: EmbeddedOptions

    /// Fast shutdown, after 20 s an immediate one, after 10 s more SIGKILL.
    ///
    /// - Throws: ``ClusterFault/couldNotStop(directory:)`` when processes are left even then.
    func stop() throws(ClusterFault) {
        let alive = try EmbeddedCluster.files { () throws(SystemError) in
            try LockFile(layout.alive)
        }
        if !alive.tryExclusive() {
            let first = options.isStopImmediate ? SIGQUIT : SIGINT
            signalPostmaster(first)
            if !waitUntilFree(alive, milliseconds: 20_000) {
                signalPostmaster(SIGQUIT)
                if !waitUntilFree(alive, milliseconds: 10_000) {
                    for pid in ClusterProcesses.all(of: layout) { kill(pid, SIGKILL) }
                    guard waitUntilFree(alive, milliseconds: 10_000) else {
                        throw .couldNotStop(directory: layout.directory)
                    }
                }
            }
        }
        SocketDirectory(layout: layout, user: try layout.serverUser()).removeShort()
        // At once, even if a child that is just being started has inherited the descriptor.
        alive.release()
    }

    /// Signals the postmaster, or without one whatever processes it left.
    func signalPostmaster(_ signal: Int32) {
        if let file = PostmasterFile(layout),
            ClusterProcesses.isPostmaster(file.pid, of: layout)
        {
            kill(file.pid, signal)
        } else {
            for pid in ClusterProcesses.all(of: layout) { kill(pid, SIGQUIT) }
        }
    }

    private func waitUntilFree(_ alive: LockFile, milliseconds: Int) -> Bool {
        let deadline = Clock.deadline(inMilliseconds: milliseconds)
        while !alive.tryExclusive() {
            guard Clock.monotonic() < deadline else { return false }
            Spawn.pause(milliseconds: 10)
        }
        return true
    }
}
