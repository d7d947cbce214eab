import Foundation

/// A `tapline bench` under way, with its log.
final class BenchProcess {
    let log: String
    let process: ChildProcess
    private let daemons: [Daemon]
    private let directory = TemporaryDirectory()
    /// How far the log is read, and how many acknowledged bodies are up to there.
    private var read: (offset: UInt64, bodies: Int) = (0, 0)

    /// Starts it.
    ///
    /// - Parameter options: Further ones; bodies are of 100 events unless they say otherwise.
    init(_ daemons: [Daemon], key: String, events: Int, _ options: [String] = []) throws {
        self.daemons = daemons
        log = directory.path + "/run.log"
        let urls = daemons.flatMap { ["--url", $0.url] }
        process = try Tapline.start(
            ["bench", "--key", key, "--events", "\(events)", "--batch", "100", "--log", log]
                + ["--format", "json"] + urls + options)
    }

    deinit { process.signal(SIGKILL) }

    /// How many bodies are acknowledged.
    ///
    /// It is asked many times a second for minutes, so only what is new of the log is read.
    var acknowledgedBodies: Int {
        guard let file = FileHandle(forReadingAtPath: log) else { return 0 }
        defer { try? file.close() }
        guard (try? file.seek(toOffset: read.offset)) != nil, let text = try? file.readToEnd(),
            let end = text.lastIndex(of: UInt8(ascii: "\n"))
        else { return read.bodies }
        let lines = text[...end]
        read.offset += UInt64(lines.count)
        read.bodies += lines.split(separator: UInt8(ascii: "\n")).count {
            $0.first == UInt8(ascii: "a")
        }
        return read.bodies
    }

    /// Waits until so many bodies are acknowledged, or the run has ended.
    func wait(untilAcknowledged count: Int, seconds: Double = 120) throws {
        let states = {
            self.daemons.map { daemon in
                let exit = daemon.process?.exit.map { "ended with \($0)" } ?? "runs"
                return "\(daemon.url) \(exit)\n\(daemon.log.suffix(2_000))"
            }.joined(separator: "\n")
        }
        try until("\(count) bodies are acknowledged\n\(states())", seconds: seconds) {
            acknowledgedBodies >= count || process.exit != nil ? true : nil
        }
    }

    /// Waits for its end; what it printed.
    func finish(seconds: Double = 300) throws -> JSON {
        let exit = try process.wait(seconds: seconds)
        guard exit == .code(0), let summary = try? JSON(parsing: process.output.utf8) else {
            throw Failure("bench: \(exit): \(process.error)\(process.output)")
        }
        return summary
    }

    /// `tapline bench --verify`: how it ended and what it found.
    ///
    /// - Parameter options: Such as those that lead to the daemon for L5 and L6.
    func verify(_ daemon: Daemon, _ options: [String] = []) throws -> (exit: Exit, verdict: JSON) {
        let outcome = try Tapline.run(
            ["bench", "--verify", "--log", log, "--format", "json"] + daemon.store + options,
            seconds: 180)
        guard let verdict = try? JSON(parsing: outcome.output.utf8) else {
            throw Failure("bench --verify: \(outcome)")
        }
        return (outcome.exit, verdict)
    }
}

extension Daemon {
    var url: String { "http://127.0.0.1:\(port)" }
}

/// The laws that a verdict says are broken.
func brokenLaws(_ verdict: JSON) -> [String] {
    verdict["laws"].items.filter { $0["holds"] == .bool(false) }.compactMap { $0["law"].text }
}

/// What a verdict says against a law.
func breaches(_ verdict: JSON, _ law: String) -> [String] {
    verdict["laws"].items.filter { $0["law"].text == law }
        .flatMap { $0["breaches"].items.compactMap(\.text) }
}
