import Foundation
import Glibc
import Testing

/// Ends the test run when one test takes too long, and says which and what its threads wait for.
///
/// Every wait of the harness has a deadline of its own; this is for the one that was forgotten.
/// `timeLimit` only marks a test: one that is blocked for ever would still keep the run for ever.
struct Deadline: SuiteTrait, TestTrait, TestScoping {
    let seconds: Double
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let name = "\(test.name) at \(test.sourceLocation)"
        let number = Watchdog.shared.begin(name, seconds: seconds)
        defer { Watchdog.shared.end(number) }
        try await function()
    }

    /// The report of a test that is over its time.
    static func report(_ name: String, seconds: Double) -> String {
        var text = "\n\(name) has run for \(seconds) s, which is too long. Its threads:\n"
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        for task in tasks.sorted() {
            let words = ["comm", "wchan", "syscall"].map { file in
                let path = "/proc/self/task/\(task)/\(file)"
                let data = FileManager.default.contents(atPath: path) ?? Data()
                return String(decoding: data, as: UTF8.self)
                    .trimmingCharacters(in: .whitespacesAndNewlines)
            }
            text += "  \(task) \(words.joined(separator: " "))\n"
        }
        return text + "Its processes:\n" + Living.description
    }
}

extension Trait where Self == Deadline {
    /// Five minutes, or as long as `make soak` takes.
    static var deadline: Deadline {
        let isSoak = ProcessInfo.processInfo.environment["SOAK_KILLS"] != nil
        return Deadline(seconds: isSoak ? 6 * 3600 : 300)
    }
}

private final class Watchdog: @unchecked Sendable {
    static let shared = Watchdog()
    private let lock = NSLock()
    private var running: [Int: (name: String, seconds: Double, end: Date)] = [:]
    private var last = 0

    private init() {
        Thread.detachNewThread { [self] in
            while true {
                sleep(1)
                let late = lock.withLock { running.values.first { $0.end < Date() } }
                guard let late else { continue }
                FileHandle.standardError.write(
                    Data(Deadline.report(late.name, seconds: late.seconds).utf8))
                // Not `exit`, which would wait for the processes. The watcher of `Living` ends them.
                _exit(70)
            }
        }
    }

    func begin(_ name: String, seconds: Double) -> Int {
        lock.withLock {
            last += 1
            running[last] = (name, seconds, Date().addingTimeInterval(seconds))
            return last
        }
    }

    func end(_ number: Int) { lock.withLock { running[number] = nil } }
}
