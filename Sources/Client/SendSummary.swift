import Platform

/// A line or a body that was not taken, or a file that could not be read to its end.
package struct SendProblem: Equatable, Sendable {
    /// The file's name, `(stdin)` for stdin.
    package let file: String
    /// The physical line of the file, from 1; nil for the file as a whole.
    package let line: Int?
    /// One line, in lower case.
    package let message: String

    /// Makes a problem.
    package init(file: String, line: Int?, message: String) {
        self.file = file
        self.line = line
        self.message = message
    }

    /// One line for stderr.
    package var description: String { file + (line.map { ":\($0)" } ?? "") + ": " + message }
}

/// What came of sending.
package struct SendSummary: Equatable, Sendable {
    /// Files begun.
    package var files = 0
    /// Bodies answered with verdicts.
    package var bodies = 0
    /// Events the server read.
    package var received = 0
    /// Events now durable, duplicates included.
    package var accepted = 0
    /// Events that are wrong, for ever.
    package var rejected = 0
    /// Bodies that could not be sent.
    package var failedBodies = 0
    /// The lines of those bodies.
    package var failedLines = 0
    /// Files that could not be read to their end.
    package var failedFiles = 0
    /// Bodies sent again.
    package var retries = 0
    /// Inflated bytes of the bodies answered with verdicts.
    package var bytes = 0
    /// Compressed bytes sent, repeats included.
    package var bytesSent = 0
    /// From the first to the last byte.
    package var seconds = 0.0
    /// The first few problems, of a file in the order of their lines.
    package var problems: [SendProblem] = []
    /// Why it ended before the last line, if it did.
    package var stopReason: String?

    /// Whether every line was accepted.
    package var isComplete: Bool {
        rejected == 0 && failedBodies == 0 && failedFiles == 0 && stopReason == nil
    }

    /// Events a second.
    package var eventsPerSecond: Double { seconds > 0 ? Double(received) / seconds : 0 }

    /// How many problems are kept.
    package static let problemsMax = 10

    /// Keeps a problem if it is one of the first of its file: bodies are answered in any order.
    mutating func note(_ problem: SendProblem) {
        let later = problems.firstIndex {
            $0.file == problem.file && $0.line ?? .max > problem.line ?? .max
        }
        problems.insert(problem, at: later ?? problems.count)
        if problems.count > SendSummary.problemsMax { problems.removeLast() }
    }

    /// The summary as one JSON object on one line.
    package var json: String {
        let list = problems.map { problem in
            "{\"file\":\(JSONString.quoted(problem.file)),\"line\":\(problem.line.map(String.init) ?? "null")"
                + ",\"message\":\(JSONString.quoted(problem.message))}"
        }
        let milliseconds = Int((seconds * 1000).rounded())
        return """
            {"files":\(files),"bodies":\(bodies),"received":\(received),"accepted":\(accepted),\
            "rejected":\(rejected),"failed_bodies":\(failedBodies),"failed_lines":\(failedLines),\
            "failed_files":\(failedFiles),"retries":\(retries),"bytes":\(bytes),\
            "bytes_sent":\(bytesSent),"milliseconds":\(milliseconds),"complete":\(isComplete),\
            "stopped":\(stopReason.map(JSONString.quoted) ?? "null"),\
            "problems":[\(list.joined(separator: ","))]}
            """
    }
}

/// How far sending is.
package struct SendProgress: Equatable, Sendable {
    /// Bytes of the files, as stored, that are answered for.
    package let bytesDone: Int
    /// Bytes of all files; nil when one is a pipe.
    package let bytesTotal: Int?
    /// Events the server read.
    package let events: Int
    /// Seconds since the start.
    package let seconds: Double
    /// Why it is waiting, while it waits.
    package let waiting: String?
}
