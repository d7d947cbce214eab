import Foundation

/// What a command printed and how it ended.
struct Outcome {
    let exit: Exit
    let output: String
    let error: String

    var isSuccess: Bool { exit == .code(0) }
    /// The lines on stderr without the hint.
    var complaints: [String] {
        error.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("hint: ") }
    }
}

/// The binary under test.
enum Tapline {
    static let packageRoot: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        return url.path
    }()

    /// `TAPLINE_BINARY`, else the release build, else the debug build.
    static let binary: String = {
        if let path = ProcessInfo.processInfo.environment["TAPLINE_BINARY"] { return path }
        let builds = ["release", "debug"].map { "\(packageRoot)/.build/\($0)/tapline" }
        return builds.first { FileManager.default.isExecutableFile(atPath: $0) } ?? builds[0]
    }()

    private static let scratch = TemporaryDirectory()

    /// Starts a command.
    static func start(
        _ arguments: [String], environment: [String: String] = [:], input: String = "/dev/null",
        binary: String = binary
    ) throws -> ChildProcess {
        try ChildProcess(
            [binary] + arguments,
            environment: ChildProcess.environment.merging(environment) { $1 },
            input: input, scratch: scratch.path)
    }

    /// Runs a command to its end.
    @discardableResult
    static func run(
        _ arguments: [String], environment: [String: String] = [:], input: String = "/dev/null",
        seconds: Double = 60, binary: String = binary
    ) throws -> Outcome {
        let process = try start(
            arguments, environment: environment, input: input, binary: binary)
        defer { process.signal(SIGKILL) }
        let exit = try process.wait(seconds: seconds)
        return Outcome(exit: exit, output: process.output, error: process.error)
    }

    /// Runs another program to its end; its output.
    @discardableResult
    static func tool(_ arguments: [String], input: String = "/dev/null") throws -> String {
        let process = try ChildProcess(arguments, input: input, scratch: scratch.path)
        let exit = try process.wait(seconds: 60)
        guard exit == .code(0) else {
            throw Failure("\(arguments): \(exit): \(process.output)\(process.error)")
        }
        return process.output
    }
}
