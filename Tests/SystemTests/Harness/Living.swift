import Foundation
import Glibc

/// The processes and directories that must not outlive the test run.
///
/// They are ended and removed when the run ends; by a process that watches it, when it is killed.
enum Living {
    private final class State: @unchecked Sendable {
        let lock = NSLock()
        var processes: [pid_t: ChildProcess] = [:]
        var directories: [String] = []
        let watcher = Watcher()
    }

    private static let state: State = {
        atexit { Living.endAll() }
        return State()
    }()

    static func add(_ process: ChildProcess) {
        state.lock.withLock {
            state.processes[process.pid] = process
            state.watcher?.tell("+ \(process.pid)")
        }
    }

    static func remove(_ process: ChildProcess) {
        state.lock.withLock {
            state.processes[process.pid] = nil
            state.watcher?.tell("- \(process.pid)")
        }
    }

    /// Removes a directory at the end of the test run, after all processes have ended.
    static func add(directory: String) {
        state.lock.withLock {
            state.directories.append(directory)
            state.watcher?.tell("dir \(directory)")
        }
    }

    /// The processes that live, a line each.
    static var description: String {
        state.lock.withLock { state.processes.keys.sorted() }.map { pid in
            let words = FileManager.default.contents(atPath: "/proc/\(pid)/cmdline") ?? Data()
            let line = words.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return "  \(pid) \(line.joined(separator: " "))\n"
        }.joined()
    }

    private static func endAll() {
        let processes = state.lock.withLock { Array(state.processes.values) }
        for process in processes { process.signal(SIGTERM) }
        // All of them together: the run has to end, whatever they do.
        let deadline = Date().addingTimeInterval(20)
        for process in processes
        where (try? process.wait(seconds: max(0, deadline.timeIntervalSinceNow))) == nil {
            process.signal(SIGKILL)
        }
        for directory in state.lock.withLock({ state.directories }).reversed() {
            try? FileManager.default.removeItem(atPath: directory)
        }
        state.watcher?.tell("end")
    }
}

/// A shell that is told of each process and directory, and ends them when the pipe to it breaks.
private final class Watcher {
    private static let script = """
        pids=; dirs=
        while read -r what value; do
            case $what in
            +) pids="$pids $value" ;;
            -) kept=; for pid in $pids; do [ $pid = $value ] || kept="$kept $pid"; done; pids=$kept ;;
            dir) dirs="$dirs $value" ;;
            end) rm -rf "$0"; exit ;;
            esac
        done
        kill -TERM $pids; sleep 10; kill -KILL $pids; rm -rf $dirs "$0"
        """

    private let pipe: Int32

    init?() {
        var template = Array("/tmp/tls-watcher-XXXXXX".utf8CString)
        // SAFETY: a NUL-terminated template, which mkdtemp fills in.
        guard unsafe mkdtemp(&template) != nil else { return nil }
        let bytes = template.dropLast().map { UInt8(bitPattern: $0) }
        let directory = String(decoding: bytes, as: UTF8.self)
        let path = directory + "/pipe"
        // Opened for reading too and not blocking, so that neither opening nor writing waits for the
        // shell.
        guard unsafe mkfifo(path, 0o600) == 0,
            case let file = unsafe open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK),
            file >= 0,
            (try? ChildProcess(
                ["/bin/sh", "-c", Self.script, directory], input: path, scratch: directory,
                isTracked: false)) != nil
        else { return nil }
        pipe = file
    }

    func tell(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe write(pipe, bytes, bytes.count)
    }
}
