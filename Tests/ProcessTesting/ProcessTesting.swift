import Foundation

/// Other programs that tests run to their end.
package enum ProcessTesting {
    /// Runs a program.
    ///
    /// Its output goes to a file: a pipe ends only when everything that the program has started is gone.
    ///
    /// - Parameters:
    ///   - arguments: The program, looked up in `PATH`, and its arguments.
    ///   - directory: Where it runs; nil for the directory of the tests.
    ///   - seconds: Then it is interrupted, and it has failed.
    /// - Returns: Its exit status, and all that it wrote.
    package static func run(
        _ arguments: [String], in directory: URL? = nil, seconds: Double = 300
    ) throws -> (status: Int32, output: String) {
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("tapline-process-\(UUID().uuidString)")
        try Data().write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        let output = try FileHandle(forWritingTo: path)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        if let directory { process.currentDirectoryURL = directory }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        // An interrupt first: a script of Python then says where it was.
        var isLate = false
        for (signal, patience) in [(SIGINT, seconds), (SIGKILL, 10), (0, 10)] {
            let deadline = Date().addingTimeInterval(patience)
            while process.isRunning, Date() < deadline { usleep(5_000) }
            guard process.isRunning, signal != 0 else { break }
            isLate = true
            kill(process.processIdentifier, signal)
        }
        let text = String(decoding: (try? Data(contentsOf: path)) ?? Data(), as: UTF8.self)
        if isLate || process.isRunning {
            return (-1, "\(arguments) did not end in \(seconds) s\n\(text)")
        }
        return (process.terminationStatus, text)
    }
}
