import Glibc

/// How to send.
package struct SendConfiguration: Sendable {
    /// The daemon's URL; without a path, `/v1/events` is meant.
    package var url = "http://127.0.0.1:8080"
    /// The ingest key.
    package var key: String?
    /// Lines of a body.
    package var batchLines = 1000
    /// Inflated bytes of a body.
    package var batchBytesMax = 8 << 20
    /// Bodies in flight at the same time.
    package var connections = 4
    /// A body is given up after failing for so long.
    package var retrySeconds = 600.0
    /// One try of one body ends after so long.
    package var requestTimeoutMilliseconds = 120_000
    /// What the server sees as `User-Agent`.
    package var userAgent = "tapline-send"
    /// Whether a body is sent again in halves until the server, which names a hundred bad lines of a
    /// body, has named all of them.
    package var namesEveryRejection = false

    /// Makes the defaults.
    package init() {}
}

/// Sends inputs to a daemon, each line until it has a verdict or its time is up.
///
/// One thread, the caller's, which blocks. Holds at most `connections` bodies, inflated and
/// compressed, plus one piece of the file.
package final class Sender {
    private let configuration: SendConfiguration
    private let progress: (SendProgress) -> Void
    private let isCancelled: () -> Bool
    private var summary = SendSummary()
    private let answered: (Body, [LineError]) -> Void
    private var sources: [any BodySource] = []
    private var inFlight: [Int: Attempt] = [:]
    private var waiting: [Attempt] = []
    private var pausedUntil: Int64 = 0
    private var waitReason: String?
    private var bytesDone = 0
    private var bytesTotal: Int?
    private var random = SystemRandomNumberGenerator()
    private let started = monotonicMicroseconds()

    /// A body and what happened to it so far.
    private struct Attempt {
        let body: Body
        let compressed: [UInt8]
        var tries = 0
        var notBefore: Int64 = 0
        /// When its first failure gives it up.
        var deadline: Int64?
    }

    /// Makes a sender.
    ///
    /// - Parameters:
    ///   - progress: Called about ten times a second, on the caller's thread.
    ///   - isCancelled: Asked as often; true ends sending, what is in flight included.
    ///   - answered: Told of each body that the server has read, with every line that it rejected.
    package init(
        _ configuration: SendConfiguration,
        progress: @escaping (SendProgress) -> Void = { _ in },
        isCancelled: @escaping () -> Bool = { false },
        answered: @escaping (Body, [LineError]) -> Void = { _, _ in }
    ) {
        self.configuration = configuration
        self.progress = progress
        self.isCancelled = isCancelled
        self.answered = answered
    }

    /// Sends everything in these inputs. Call once.
    ///
    /// - Returns: What came of it; a refusal by the server is in there, not thrown.
    /// - Throws: ``ClientError`` when an input cannot be opened, before anything is sent, or when
    ///   libcurl fails.
    package func send(_ inputs: [SendInput]) throws(ClientError) -> SendSummary {
        var sources: [any BodySource] = []
        for input in inputs {
            sources.append(
                try LineSource(
                    input, linesMax: configuration.batchLines,
                    bytesMax: configuration.batchBytesMax))
        }
        return try send(from: sources)
    }

    /// Sends everything that these sources give. Call once; see ``send(_:)``.
    package func send(from inputs: [any BodySource]) throws(ClientError) -> SendSummary {
        sources = inputs
        bytesTotal = sources.reduce(0) { total, source in
            total.flatMap { total in source.bytesTotal.map { total + $0 } }
        }
        summary.files = sources.count
        let target = try Target(url: configuration.url, key: configuration.key)
        var transfers = try Transfers(
            connections: configuration.connections, userAgent: configuration.userAgent,
            timeoutMilliseconds: configuration.requestTimeoutMilliseconds)
        var reportedAt: Int64 = 0
        while summary.stopReason == nil {
            let now = monotonicMicroseconds()
            if now - reportedAt >= 100_000 {
                reportedAt = now
                report(now)
                if isCancelled() {
                    summary.stopReason = "interrupted"
                    break
                }
            }
            while inFlight.count < configuration.connections, var attempt = try nextAttempt(now) {
                attempt.tries += 1
                summary.bytesSent += attempt.compressed.count
                inFlight[try transfers.start(attempt.compressed, to: target)] = attempt
            }
            if inFlight.isEmpty && waiting.isEmpty && sources.isEmpty { break }
            try transfers.run(timeoutMilliseconds: pauseMilliseconds(now))
            while let (number, answer) = transfers.nextAnswer() {
                guard let attempt = inFlight.removeValue(forKey: number) else { continue }
                take(answer, for: attempt)
            }
        }
        countUnsent()
        summary.seconds = Double(monotonicMicroseconds() - started) / 1_000_000
        report(monotonicMicroseconds())
        return summary
    }

    /// The next body to post now: one whose pause is over, else a new one of the files.
    private func nextAttempt(_ now: Int64) throws(ClientError) -> Attempt? {
        guard now >= pausedUntil else { return nil }
        if let index = waiting.firstIndex(where: { $0.notBefore <= now }) {
            return waiting.remove(at: index)
        }
        // Bodies that wait hold memory: read on only while there is room.
        guard waiting.count + inFlight.count < configuration.connections,
            let body = nextBody()
        else { return nil }
        return try attempt(body)
    }

    private func attempt(_ body: Body) throws(ClientError) -> Attempt {
        guard let compressed = gzipMember(body.bytes) else {
            throw .unavailable(reason: "out of memory")
        }
        return Attempt(body: body, compressed: compressed)
    }

    private func nextBody() -> Body? {
        while let source = sources.first {
            do throws(ClientError) {
                switch try source.next() {
                case .body(let body): return body
                case .end: sources.removeFirst()
                case .overlongLine(let number):
                    summary.received += 1
                    summary.rejected += 1
                    let limit = configuration.batchBytesMax
                    summary.note(
                        SendProblem(
                            file: source.name, line: number,
                            message: "line_too_long: longer than \(limit) bytes, not sent"))
                }
            } catch {
                summary.failedFiles += 1
                summary.note(
                    SendProblem(file: source.name, line: nil, message: error.message))
                sources.removeFirst()
            }
        }
        return nil
    }

    private func take(_ answer: Answer, for attempt: Attempt) {
        let body = attempt.body
        let result = outcome(
            status: answer.status, retryAfterSeconds: answer.retryAfterSeconds,
            bytes: answer.bytes, transportError: answer.transportError)
        switch result {
        case .verdicts(let received, let accepted, let rejected, let errors):
            waitReason = nil
            if configuration.namesEveryRejection, errors.count < rejected,
                let (first, second) = body.halves,
                let first = try? self.attempt(first), let second = try? self.attempt(second)
            {
                return waiting.insert(contentsOf: [first, second], at: 0)
            }
            answered(body, errors)
            summary.bodies += 1
            summary.received += received
            summary.accepted += accepted
            summary.rejected += rejected
            summary.bytes += body.bytes.count
            bytesDone += body.sourceBytes
            for error in errors {
                summary.note(
                    SendProblem(
                        file: body.file, line: body.fileLine(error.line),
                        message: error.code + (error.message.isEmpty ? "" : ": ")
                            + error.message))
            }
        case .retry(let reason, let seconds):
            retry(attempt, reason: reason, afterSeconds: seconds)
        case .tooLarge(let reason):
            halve(body, reason: reason)
        case .refused(let reason, let stops):
            fail(body, reason: reason)
            if stops { summary.stopReason = reason }
        }
    }

    private func retry(_ attempt: Attempt, reason: String, afterSeconds seconds: Double?) {
        let now = monotonicMicroseconds()
        let pause = backoff(
            attempt: attempt.tries, retryAfterSeconds: seconds,
            random: Double.random(in: 0..<1, using: &random))
        var attempt = attempt
        let deadline =
            attempt.deadline ?? now + Int64(configuration.retrySeconds * 1_000_000)
        attempt.deadline = deadline
        guard now + pause <= deadline else {
            fail(attempt.body, reason: "\(reason) (given up after \(attempt.tries) tries)")
            summary.stopReason = reason
            return
        }
        attempt.notBefore = now + pause
        // A server that is short of something is left alone by every connection.
        if seconds != nil { pausedUntil = max(pausedUntil, attempt.notBefore) }
        waitReason = reason
        summary.retries += 1
        waiting.append(attempt)
    }

    private func halve(_ body: Body, reason: String) {
        guard let (first, second) = body.halves,
            let first = try? attempt(first), let second = try? attempt(second)
        else { return fail(body, reason: reason) }
        waiting.insert(contentsOf: [first, second], at: 0)
    }

    private func fail(_ body: Body, reason: String) {
        summary.failedBodies += 1
        summary.failedLines += body.lineCount
        bytesDone += body.sourceBytes
        summary.note(
            SendProblem(
                file: body.file, line: body.firstLine,
                message: "\(body.lines) not sent: \(reason)"))
    }

    /// Counts what a stop left behind: read from a file, and without a verdict.
    private func countUnsent() {
        for attempt in waiting
            + inFlight.values.sorted(by: { $0.body.firstLine < $1.body.firstLine })
        {
            summary.failedBodies += 1
            summary.failedLines += attempt.body.lineCount
        }
    }

    private func pauseMilliseconds(_ now: Int64) -> Int {
        var pause: Int64 = 100_000
        if inFlight.count < configuration.connections {
            for attempt in waiting {
                pause = min(pause, max(attempt.notBefore, pausedUntil) - now)
            }
        }
        return Int(max(pause + 999, 0) / 1000)
    }

    private func report(_ now: Int64) {
        progress(
            SendProgress(
                bytesDone: bytesDone, bytesTotal: bytesTotal, events: summary.received,
                seconds: Double(now - started) / 1_000_000,
                waiting: inFlight.isEmpty ? waitReason : nil))
    }
}

/// A clock that never goes back.
func monotonicMicroseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}
