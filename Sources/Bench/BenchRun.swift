import Client
import Event
import Platform
import Sample

/// Sends the events of a plan and logs what is acknowledged.
///
/// One thread, the caller's, which blocks. Holds the bodies in flight and nothing of those before.
package final class BenchRun {
    let configuration: BenchConfiguration
    let maker: EventMaker
    var summary = BenchSummary()
    private let progress: (BenchProgress) -> Void
    private var targets: [Target] = []
    private var log: AckLog?
    private var nextBody = 0
    private var issuedBodies = 0
    private var resends: [Int] = []
    private var waiting: [Attempt] = []
    private var inFlight: [Int: Attempt] = [:]
    private var storm: Storm
    /// Until when a daemon that asked for it is left alone.
    private var pausedUntil: [Microseconds]
    private var waitReason: String?
    private var random: SplitMix64
    private var started: Microseconds = 0
    /// When the rate lets the next new body go.
    private var dueAt: Microseconds = 0
    private var reported: (at: Microseconds, acknowledged: Int) = (0, 0)

    /// A pause grows to this, so that a run goes on soon after the daemon is back.
    static let pauseSecondsMax = 2.0
    /// One try ends after so long.
    static let requestTimeoutMilliseconds = 60_000

    /// A body and what happened to it so far.
    struct Attempt {
        let body: Int
        let bytes: Int
        let compressed: [UInt8]
        let isResend: Bool
        var tries = 0
        var target = 0
        var startedAt: Microseconds = 0
        var notBefore: Microseconds = 0
        /// When its first failure gives it up.
        var deadline: Microseconds?
    }

    /// - Parameter progress: Called about ten times a second, on the caller's thread.
    package init(
        _ configuration: BenchConfiguration, _ plan: BenchPlan,
        progress: @escaping (BenchProgress) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.progress = progress
        maker = EventMaker(plan)
        storm = Storm(clients: configuration.storm)
        pausedUntil = Array(repeating: 0, count: configuration.urls.count)
        random = SplitMix64(seed: plan.seed)
        summary.seed = plan.seed
    }

    /// Makes the run. Call once.
    ///
    /// - Returns: What came of it; refusals of the server are in there, not thrown.
    /// - Throws: ``BenchError``; what was acknowledged until then is in the log.
    package func run() throws(BenchError) -> BenchSummary {
        var transfers = try connect()
        try beginLog()
        started = Clock.monotonic()
        reported.at = started
        while summary.stopReason == nil {
            let now = Clock.monotonic()
            report(now, interval: 100_000)
            while inFlight.count < configuration.connections, let attempt = try nextAttempt(now) {
                try send(attempt, now, &transfers)
            }
            if inFlight.isEmpty, waiting.isEmpty, resends.isEmpty, nextBody == maker.plan.bodies {
                break
            }
            do throws(ClientError) {
                try storm.send(now, targets, &transfers)
                try transfers.run(timeoutMilliseconds: pauseMilliseconds(now))
            } catch {
                throw .client(error)
            }
            try takeAnswers(&transfers)
        }
        if summary.stopReason == nil { note(.end) }
        try syncLog()
        summary.seconds = Double(Clock.monotonic() - started) / 1_000_000
        report(Clock.monotonic(), interval: 0)
        return summary
    }

    private func connect() throws(BenchError) -> Transfers {
        do throws(ClientError) {
            for url in configuration.urls {
                targets.append(try Target(url: url, key: configuration.key))
            }
            return try Transfers(
                connections: configuration.connections + configuration.storm,
                userAgent: configuration.userAgent,
                timeoutMilliseconds: Self.requestTimeoutMilliseconds)
        } catch {
            throw .client(error)
        }
    }

    private func beginLog() throws(BenchError) {
        guard let path = configuration.log else { return }
        let keyHash = sha256(Array((configuration.key ?? "").utf8))
        do throws(SystemError) {
            log = try AckLog.create(path, plan: maker.plan, keyHash: keyHash)
        } catch {
            throw .system(error)
        }
    }

    // MARK: What is sent next

    /// The next body to post now: one whose pause is over, else one to repeat, else a new one.
    private func nextAttempt(_ now: Microseconds) throws(BenchError) -> Attempt? {
        if let index = waiting.firstIndex(where: { $0.notBefore <= now && isOpen($0.target, now) })
        {
            return waiting.remove(at: index)
        }
        // Bodies that wait are in the way of others: a daemon that is away is not to be run over.
        guard waiting.count + inFlight.count < configuration.connections else { return nil }
        let turns = targets.indices.map { (nextBody + $0) % targets.count }
        guard let target = turns.first(where: { isOpen($0, now) }) else { return nil }
        let hasNew = nextBody < maker.plan.bodies
        if !resends.isEmpty, !hasNew || resends.count > 2 * configuration.connections {
            return try attempt(resends.removeFirst(), isResend: true, target: target)
        }
        guard hasNew, takeTurn(now) else { return nil }
        if nextBody == issuedBodies { try issueMore() }
        nextBody += 1
        return try attempt(nextBody - 1, isResend: false, target: target)
    }

    private func isOpen(_ target: Int, _ now: Microseconds) -> Bool { pausedUntil[target] <= now }

    /// Whether the rate lets a new body go; if so, it has gone. What was missed while the daemon was
    /// away is not caught up, but for a tenth of a second: the rate is the most there may be.
    private func takeTurn(_ now: Microseconds) -> Bool {
        guard let rate = configuration.rate else { return true }
        guard dueAt <= now else { return false }
        dueAt = max(dueAt, now - 100_000) + Int64(maker.plan.batch) * 1_000_000 / Int64(rate)
        return true
    }

    /// Writes down that more bodies may be sent, before they are.
    private func issueMore() throws(BenchError) {
        issuedBodies = min(
            issuedBodies + max(64, 4 * configuration.connections), maker.plan.bodies)
        note(.issue(upTo: issuedBodies))
        try syncLog()
    }

    private func attempt(_ body: Int, isResend: Bool, target: Int) throws(BenchError) -> Attempt {
        let lines = maker.lines(ofBody: body)
        guard let compressed = gzipMember(lines) else {
            throw .client(.unavailable(reason: "out of memory"))
        }
        if !isResend { storm.learn(compressed) }
        return Attempt(
            body: body, bytes: lines.count, compressed: compressed, isResend: isResend,
            target: target)
    }

    private func send(
        _ attempt: Attempt, _ now: Microseconds, _ transfers: inout Transfers
    ) throws(BenchError) {
        var attempt = attempt
        attempt.tries += 1
        attempt.startedAt = Clock.monotonic()
        do throws(ClientError) {
            inFlight[try transfers.start(attempt.compressed, to: targets[attempt.target])] = attempt
        } catch {
            throw .client(error)
        }
    }

    // MARK: What came of it

    /// Takes the answers that are there; one sync of the log stands before all of them count.
    private func takeAnswers(_ transfers: inout Transfers) throws(BenchError) {
        var acknowledged: [Attempt] = []
        while let (number, answer) = transfers.nextAnswer() {
            let outcome = outcome(
                status: answer.status, retryAfterSeconds: answer.retryAfterSeconds,
                bytes: answer.bytes, transportError: answer.transportError)
            if storm.take(number, outcome) {
                count(outcome)
            } else if let attempt = inFlight.removeValue(forKey: number), take(outcome, attempt) {
                acknowledged.append(attempt)
            }
        }
        try syncLog()
        let now = Clock.monotonic()
        for attempt in acknowledged { count(attempt, now) }
    }

    /// Takes an answer to a body.
    ///
    /// - Returns: Whether it is an acknowledgement of all of its events.
    private func take(_ outcome: Outcome, _ attempt: Attempt) -> Bool {
        let name = "body \(attempt.body)"
        switch outcome {
        case .verdicts(let received, let accepted, let rejected, let errors):
            waitReason = nil
            let count = eventCount(attempt.body)
            guard received == count, accepted == count, rejected == 0 else {
                let first = errors.first.map { ": line \($0.line): \($0.code)" } ?? ""
                refuse(
                    attempt,
                    "\(name) of \(count) events: \(received) received, \(accepted) accepted, "
                        + "\(rejected) rejected\(first)")
                return false
            }
            if !attempt.isResend { note(.ack(body: attempt.body)) }
            return true
        case .retry(let reason, let seconds): retry(attempt, reason, afterSeconds: seconds)
        case .tooLarge(let reason): refuse(attempt, "\(name): \(reason)")
        case .refused(let reason, let stops):
            refuse(attempt, "\(name): \(reason)")
            if stops { summary.stopReason = reason }
        }
        return false
    }

    private func eventCount(_ body: Int) -> Int {
        min(maker.plan.batch, maker.plan.events - body * maker.plan.batch)
    }

    private func refuse(_ attempt: Attempt, _ problem: String) {
        summary.note(problem)
        if !attempt.isResend { note(.refuse(body: attempt.body)) }
    }

    private func count(_ attempt: Attempt, _ now: Microseconds) {
        guard !attempt.isResend else {
            summary.resent += 1
            return
        }
        summary.bodies += 1
        summary.acknowledged += eventCount(attempt.body)
        summary.bytes += attempt.bytes
        summary.bytesSent += attempt.compressed.count
        summary.latencies.add(now - attempt.startedAt)
        if random.next() % 100 < UInt64(configuration.resendPercent) {
            resends.append(attempt.body)
        }
    }

    private func count(_ outcome: Outcome) {
        if case .verdicts = outcome {
            summary.stormAcknowledged += 1
        } else {
            summary.stormRefused += 1
        }
    }

    private func retry(_ attempt: Attempt, _ reason: String, afterSeconds seconds: Double?) {
        let now = Clock.monotonic()
        let pause = backoff(
            attempt: attempt.tries, retryAfterSeconds: seconds, random: Random.uniform(),
            longestSeconds: Self.pauseSecondsMax)
        var attempt = attempt
        let deadline =
            attempt.deadline ?? now + Int64(configuration.retrySeconds * 1_000_000)
        attempt.deadline = deadline
        guard now + pause <= deadline else {
            summary.note("body \(attempt.body): \(reason) (given up after \(attempt.tries) tries)")
            summary.stopReason = reason
            return
        }
        attempt.notBefore = now + pause
        if seconds != nil {
            pausedUntil[attempt.target] = max(pausedUntil[attempt.target], attempt.notBefore)
        }
        // The first daemon may have the body all the same: the next one must not make it two.
        attempt.target = (attempt.target + 1) % targets.count
        waitReason = reason
        summary.retries += 1
        waiting.append(attempt)
    }

    // MARK: The log and the progress

    private func note(_ entry: AckLog.Entry) { log?.note(entry) }

    private func syncLog() throws(BenchError) {
        do throws(SystemError) {
            try log?.sync()
        } catch {
            throw .system(error)
        }
    }

    private func pauseMilliseconds(_ now: Microseconds) -> Int {
        var pause: Int64 = 100_000
        if configuration.rate != nil { pause = 2000 }
        if storm.clients > 0 { pause = min(pause, Storm.pauseMicroseconds) }
        if inFlight.count < configuration.connections {
            for attempt in waiting {
                pause = min(pause, max(attempt.notBefore, pausedUntil[attempt.target]) - now)
            }
        }
        return Int(max(pause + 999, 0) / 1000)
    }

    private func report(_ now: Microseconds, interval: Microseconds) {
        let seconds = Double(now - reported.at) / 1_000_000
        guard now - reported.at >= interval else { return }
        summary.issued = min(nextBody * maker.plan.batch, maker.plan.events)
        let count = summary.acknowledged - reported.acknowledged
        reported = (now, summary.acknowledged)
        progress(
            BenchProgress(
                acknowledged: summary.acknowledged, events: maker.plan.events,
                rate: seconds > 0 ? Double(count) / seconds : 0,
                seconds: Double(now - started) / 1_000_000,
                p99Microseconds: summary.latencies.quantile(perThousand: 990),
                waiting: inFlight.isEmpty ? waitReason : nil))
    }
}
