import Glibc
import Platform

/// A small process that ends the server when nobody has needed it for a while.
///
/// A daemon that is killed can stop nothing, so this one watches: everybody who needs the server
/// holds a shared lock on DIR/postgres.users, which the kernel drops with the process. When an
/// exclusive lock can be had for long enough, the server is stopped. It ends with the server.
struct Watchdog {
    private let layout: ClusterLayout
    private let seconds: Int

    /// - Throws: ``SystemError`` when the data directory cannot be opened.
    init(directory: String, seconds: Int) throws(SystemError) {
        layout = try ClusterLayout(directory)
        self.seconds = seconds
    }

    /// Watches until the server has ended.
    ///
    /// - Returns: The exit code of the process.
    func run() -> Int32 {
        guard let only = try? LockFile(layout.watchdog), let users = try? LockFile(layout.users),
            let alive = try? LockFile(layout.alive), let turn = try? LockFile(layout.lock)
        else { return 1 }
        guard only.tryExclusive() else { return 0 }
        var unused: Microseconds?
        var turns = 0
        while !alive.isFree() {
            if turns % 256 == 0 { ServerLogs(layout).prune() }
            turns += 1
            let now = Clock.monotonic()
            if users.isFree() {
                let since = unused ?? now
                unused = since
                if now - since >= Int64(seconds) * 1_000_000, turn.tryExclusive() {
                    // With the turn taken nobody can come any more; somebody just may have.
                    if users.isFree() {
                        let stopper = ClusterStopper(layout: layout, options: EmbeddedOptions())
                        return (try? stopper.stop()) == nil ? 1 : 0
                    }
                    turn.release()
                }
            } else {
                unused = nil
            }
            Spawn.pause(milliseconds: 200)
        }
        return 0
    }

    /// Starts a watchdog where there is none. Failing that the server runs on without.
    static func ensure(
        _ layout: ClusterLayout, _ options: EmbeddedOptions, onChild: (Int32) -> Void
    ) {
        guard let program = options.watchdogProgram, let only = try? LockFile(layout.watchdog),
            only.isFree()
        else { return }
        do throws(SystemError) {
            onChild(
                try Spawn.start([
                    program, EmbeddedCluster.watchdogCommand, layout.directory,
                    String(options.watchdogSeconds),
                ]))
        } catch {
            Log.warn("could not start the watchdog of the embedded database: \(error)")
        }
    }

    /// The running program; nil when it runs tests, and would run them again.
    static var thisProgram: String? {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = unsafe readlink("/proc/self/exe", buffer.baseAddress!, 4096)
            guard count > 0 else { return nil }
            let path = unsafe String(
                decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if path.hasSuffix(".xctest") || path.contains("testing-helper") { return nil }
            // After an upgrade the file is another, or gone; this way it is still the one that runs.
            return path.hasSuffix(" (deleted)") ? "/proc/self/exe" : path
        }
    }
}
