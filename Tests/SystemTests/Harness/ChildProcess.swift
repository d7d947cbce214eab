import Foundation
import Glibc

/// How a process ended.
enum Exit: Equatable, Sendable {
    case code(Int32)
    case signal(Int32)
}

/// A program started by a test, in a process group of its own, its output going to files.
final class ChildProcess: @unchecked Sendable {
    let pid: pid_t
    let outputPath: String
    let errorPath: String
    private let lock = NSLock()
    private var result: Exit?

    /// - Parameters:
    ///   - arguments: The program's path, then its arguments.
    ///   - input: The file that becomes its standard input.
    ///   - scratch: A directory for its output.
    ///   - isTracked: Whether it is ended with the test run.
    init(
        _ arguments: [String], environment: [String: String] = ChildProcess.environment,
        input: String = "/dev/null", scratch: String, isTracked: Bool = true
    ) throws {
        let name = UUID().uuidString
        outputPath = "\(scratch)/\(name).out"
        errorPath = "\(scratch)/\(name).err"
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
        let flags = O_WRONLY | O_CREAT | O_TRUNC
        unsafe posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, outputPath, flags, 0o644)
        unsafe posix_spawn_file_actions_addopen(&actions, 2, errorPath, flags, 0o644)
        // Nothing of the test run is inherited, however many connections another test has open now.
        // Closing what is not open is no error here; a few more may be opened until the program starts.
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let highest = open.compactMap { Int32($0) }.max() ?? 0
        for file in 3...highest + 256 {
            unsafe posix_spawn_file_actions_addclose(&actions, file)
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe _ = posix_spawnattr_destroy(&attributes) }
        // Swift's runtime or the test runner may block signals that the program waits for.
        var noSignals = sigset_t()
        unsafe sigemptyset(&noSignals)
        unsafe posix_spawnattr_setsigmask(&attributes, &noSignals)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        // SAFETY: strdup's texts live until they are freed after the call.
        let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let variables = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        defer { unsafe (words + variables).forEach { unsafe free($0) } }
        var pid: pid_t = 0
        let code = unsafe posix_spawnp(
            &pid, arguments[0], &actions, &attributes, words, variables)
        guard code == 0 else { throw Failure("could not start \(arguments[0]): errno \(code)") }
        self.pid = pid
        if isTracked { Living.add(self) }
    }

    /// The caller's environment without anything that would configure Tapline or libpq.
    static let environment: [String: String] = {
        var result = ProcessInfo.processInfo.environment.filter { name, _ in
            !name.hasPrefix("TAPLINE_") && !name.hasPrefix("PG") && name != "DATABASE_URL"
        }
        let program = ProcessInfo.processInfo.environment["TAPLINE_POSTGRES_BIN"]
        if let program { result["TAPLINE_POSTGRES_BIN"] = program }
        result["NO_COLOR"] = "1"
        return result
    }()

    /// How it ended; nil while it runs.
    var exit: Exit? {
        lock.withLock {
            if let result { return result }
            var status: Int32 = 0
            guard unsafe waitpid(pid, &status, WNOHANG) == pid else { return nil }
            result = status & 0x7F == 0 ? .code(status >> 8 & 0xFF) : .signal(status & 0x7F)
            Living.remove(self)
            return result
        }
    }

    func signal(_ number: Int32) { if exit == nil { _ = Glibc.kill(pid, number) } }

    /// Waits for its end.
    func wait(seconds: Double) throws -> Exit {
        try until("process \(pid) has ended", seconds: seconds, interval: 0.003) { exit }
    }

    var output: String { Self.text(outputPath) }
    var error: String { Self.text(errorPath) }

    private static func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }

    /// A field of /proc/PID/status in bytes, for example `VmRSS` or `VmHWM`.
    func memory(_ field: String) -> Int {
        let lines = Self.text("/proc/\(pid)/status").split(separator: "\n")
        let line = lines.first { $0.hasPrefix(field + ":") }
        let kilobytes = line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first
        return (kilobytes.flatMap { Int($0) } ?? 0) << 10
    }
}
