import Glibc
import Platform
import Postgres
import PostgresTesting
import Testing

/// A data directory of a test, and a look at the cluster in it from outside.
final class ClusterRig {
    let root: String
    let directory: String

    init(subdirectory: String = "", isPrivate: Bool = false) throws {
        root = try TestDirectory.make()
        directory = subdirectory.isEmpty ? root : root + "/" + subdirectory
        if isPrivate { unsafe chmod(root, 0o700) }
    }

    /// Ends whatever lives and removes everything.
    deinit {
        if (try? isServerAlive) == true, let cluster = try? makeCluster() {
            _ = try? cluster.start()
            try? cluster.stop()
        }
        TestDirectory.remove(root)
    }

    func makeCluster(watchdogSeconds: Int = 5) throws -> EmbeddedCluster {
        var options = EmbeddedOptions.forTests
        options.watchdogSeconds = watchdogSeconds
        _ = try #require(options.watchdogProgram, "the watchdog for tests is not built")
        return EmbeddedCluster(dataDirectory: directory, options: options)
    }

    /// The process id in `postmaster.pid`.
    var postmaster: Int32? {
        let path = directory + "/postgres/data/postmaster.pid"
        guard let bytes = try? File.contents(of: path) else { return nil }
        return Int32(String(decoding: bytes, as: UTF8.self).prefix { $0.isNumber })
    }

    /// Whether a process of the server lives, by the lock that all of them inherit. A watchdog that looks, or a child of another test on its way
    /// from fork to exec, holds it too, but only for a moment.
    var isServerAlive: Bool {
        get throws {
            let deadline = Clock.deadline(inMilliseconds: 500)
            while try FileLock.tryTake(directory + "/postgres.alive") == nil {
                guard Clock.monotonic() < deadline else { return true }
                poll(nil, 0, 5)
            }
            return false
        }
    }

    /// The process ids of the watchdogs of this directory.
    var watchdogs: [Int32] {
        get throws {
            try Directory.list("/proc").compactMap { Int32($0) }.filter { pid in
                guard let file = try? File("/proc/\(pid)/cmdline", .read),
                    let bytes = try? file.read(count: 4096, at: 0)
                else { return false }
                let words = bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
                return words.contains(EmbeddedCluster.watchdogCommand) && words.contains(directory)
            }
        }
    }

    /// Waits for another process to do something; the test fails when it does not.
    func eventually(
        seconds: Int = 20, _ what: Comment, _ condition: () throws -> Bool
    ) throws {
        let deadline = Clock.deadline(inMilliseconds: seconds * 1000)
        while try !condition() {
            guard Clock.monotonic() < deadline else {
                Issue.record("not within \(seconds) s: \(what)")
                return
            }
            poll(nil, 0, 10)
        }
    }

    /// The first line of /proc/PID/status with this key, without it.
    static func status(_ pid: Int32, _ key: String) throws -> String {
        let file = try File("/proc/\(pid)/status", .read)
        let text = String(decoding: try file.read(count: 8192, at: 0), as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix(key + ":") }
        return try String(#require(line).dropFirst(key.count + 1)).replacing("\t", with: " ")
    }
}
