import Foundation

/// Runs a script of the tests with Python 3, whose standard library is all it needs.
public enum PythonScript {
    /// Runs it to its end, or to a deadline, at which its stacks are added to what it wrote.
    ///
    /// - Parameters:
    ///   - arguments: Those of `python3`: a script and its arguments, or `-m` and a module.
    ///   - directory: Its working directory, below `Tests`.
    ///   - seconds: The deadline. It is far from what any script takes: it is there to say where one hangs.
    /// - Returns: Its exit status, negative for a signal that ended it, and what it wrote to both outputs.
    public static func run(
        _ arguments: [String], in directory: String, seconds: Double = 600
    ) throws -> (status: Int32, said: String) {
        // A file has no end to wait for: a pipe is open as long as any process has inherited it.
        let path = FileManager.default.temporaryDirectory
            .appending(path: "tapline-python-\(UUID().uuidString)")
        _ = FileManager.default.createFile(atPath: path.path, contents: nil)
        defer { try? FileManager.default.removeItem(at: path) }
        let output = try FileHandle(forWritingTo: path)
        defer { try? output.close() }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-B", "-X", "faulthandler"] + arguments
        process.currentDirectoryURL =
            URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../\(directory)").standardized
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try withSignals { try process.run() }
        if ended.wait(timeout: .now() + seconds) == .timedOut {
            kill(process.processIdentifier, SIGABRT)
            if ended.wait(timeout: .now() + 10) == .timedOut {
                kill(process.processIdentifier, SIGKILL)
                ended.wait()
            }
        }
        let said = try String(decoding: Data(contentsOf: path), as: UTF8.self)
        let isSignal = process.terminationReason == .uncaughtSignal
        return (isSignal ? -process.terminationStatus : process.terminationStatus, said)
    }

    /// A program inherits what the thread that starts it blocks, and the threads of a test run block signals.
    private static func withSignals(_ body: () throws -> Void) rethrows {
        var none = sigset_t()
        var before = sigset_t()
        unsafe sigemptyset(&none)
        unsafe pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { unsafe _ = pthread_sigmask(SIG_SETMASK, &before, nil) }
        try body()
    }
}
