import Ingest
import Load
import Metrics
import Platform
import Postgres
import Report

/// Makes reports on threads of its own, each with a session that is kept.
///
/// A bounded number waits; more are refused at once. While another app's report waits, one app does
/// not get a second thread.
final class ReportRunner: Sendable {
    /// A report to be made.
    struct Job: Sendable {
        /// Whose turn it is.
        let app: String
        /// Whether nobody waits for it any more.
        var isMoot: @Sendable () -> Bool = { false }
        /// Makes it and answers; runs again on a new session when the session is lost in it.
        let run: @Sendable (borrowing PostgresConnection, ReportPlans) throws(ReportError) -> Void
        /// Answers that there is none.
        let fail: @Sendable (ServiceRefusal) -> Void
        fileprivate var isSecondTry = false

        init(
            app: String, isMoot: @escaping @Sendable () -> Bool = { false },
            run:
                @escaping @Sendable (borrowing PostgresConnection, ReportPlans)
                throws(ReportError) -> Void,
            fail: @escaping @Sendable (ServiceRefusal) -> Void
        ) {
            self.app = app
            self.isMoot = isMoot
            self.run = run
            self.fail = fail
        }
    }

    private struct State {
        var waiting: [Job] = []
        var running: [String: Int] = [:]
        var cancellers: [Int: PostgresCanceller] = [:]
        /// Until when (monotonic) no session is tried, as the last one did not come about.
        var isAwayUntil: Microseconds = 0
        var isStopping = false
    }

    private static let threadCount = 2
    private static let waitingMax = 16
    private static let waitingOfAppMax = 8
    private static let awayTime: Microseconds = 500_000

    private let database: @Sendable () throws(PostgresError) -> String
    private let timeoutMilliseconds: Int
    private let state = Sync.Monitor(State())
    private let threads = Sync.Monitor<[Thread]>([])
    private let seconds: Histogram
    private let refused: Counter

    init(
        database: @escaping @Sendable () throws(PostgresError) -> String, timeoutMilliseconds: Int,
        registry: Registry
    ) {
        self.database = database
        self.timeoutMilliseconds = timeoutMilliseconds
        seconds = registry.histogram(
            "tapline_report_seconds", "Time of one report over HTTP on its thread")
        refused = registry.counter(
            "tapline_reports_refused_total",
            "Reports over HTTP that were not made: too many, too slow, or no database.")
    }

    func start() {
        let started = (0..<Self.threadCount).map { index in
            Thread.start(name: "report-\(index)") { self.run(index) }
        }
        threads.withLock { $0 = started }
    }

    /// Cancels what runs, refuses what waits, and ends the threads.
    func stop() {
        let (waiting, cancellers) = state.withLock { state in
            state.isStopping = true
            defer { state.waiting = [] }
            return (state.waiting, Array(state.cancellers.values))
        }
        state.broadcast()
        for job in waiting { job.fail(.draining) }
        for canceller in cancellers { canceller.cancel() }
        for thread in threads.withLock({ $0 }) { thread.join() }
    }

    /// Adds a report, without waiting; it is refused at once where there is no room.
    func submit(_ job: Job) {
        let refusal = state.withLock { state -> ServiceRefusal? in
            if state.isStopping { return .draining }
            let ofApp = state.waiting.count { $0.app == job.app }
            if ofApp >= Self.waitingOfAppMax { return .tooManyReports(limit: Self.waitingOfAppMax) }
            if state.waiting.count >= Self.waitingMax {
                return .tooManyReports(limit: Self.waitingMax)
            }
            state.waiting.append(job)
            return nil
        }
        if let refusal { fail(job, refusal) } else { state.signal() }
    }

    private func fail(_ job: Job, _ refusal: ServiceRefusal) {
        refused.add()
        job.fail(refusal)
    }

    // MARK: The threads

    private func run(_ thread: Int) {
        var job = take()
        while let next = job { job = session(next, thread) }
    }

    /// Waits for the next report; nil at the end.
    private func take() -> Job? {
        state.wait { state -> Job?? in
            if state.isStopping { return .some(nil) }
            guard !state.waiting.isEmpty else { return nil }
            let index = state.waiting.firstIndex { state.running[$0.app] == nil } ?? 0
            let job = state.waiting.remove(at: index)
            state.running[job.app, default: 0] += 1
            return .some(job)
        } ?? nil
    }

    private func end(_ job: Job) {
        state.withLock { state in
            let left = state.running[job.app, default: 1] - 1
            state.running[job.app] = left > 0 ? left : nil
        }
    }

    /// Makes reports as long as one session lasts.
    ///
    /// - Returns: The report that needs another session; nil at the end.
    private func session(_ first: Job, _ thread: Int) -> Job? {
        do throws(LoadError) {
            return work(first, thread, on: try open())
        } catch {
            Log.debug("could not connect for a report: \(error)")
            fail(first, .databaseAway)
            end(first)
            return take()
        }
    }

    private func work(
        _ first: Job, _ thread: Int, on connection: borrowing PostgresConnection
    ) -> Job? {
        let canceller = connection.makeCanceller()
        state.withLock { $0.cancellers[thread] = canceller }
        defer { state.withLock { $0.cancellers[thread] = nil } }
        let plans = ReportPlans()
        var job = first
        while true {
            if !perform(job, connection, plans) {
                guard job.isSecondTry else {
                    job.isSecondTry = true
                    return job
                }
                fail(job, .databaseAway)
                end(job)
                return take()
            }
            end(job)
            guard let next = take() else { return nil }
            guard connection.isAlive else { return next }
            job = next
        }
    }

    private func open() throws(LoadError) -> PostgresConnection {
        let isAway = state.withLock { Clock.monotonic() < $0.isAwayUntil }
        if isAway {
            throw .postgres(.connectionLost(reason: "no session a moment ago", sqlstate: nil))
        }
        do throws(LoadError) {
            return try PostgresConnection.open(
                database: database, applicationName: "tapline reports",
                settings: "", statementMilliseconds: timeoutMilliseconds)
        } catch {
            state.withLock { $0.isAwayUntil = Clock.monotonic() + Self.awayTime }
            throw error
        }
    }

    /// - Returns: False when the session was lost, and the report may be tried again on another.
    private func perform(
        _ job: Job, _ connection: borrowing PostgresConnection, _ plans: ReportPlans
    ) -> Bool {
        if job.isMoot() { return true }
        let started = Clock.monotonic()
        defer { seconds.observe(Double(Clock.monotonic() - started) / 1_000_000) }
        do throws(ReportError) {
            try job.run(connection, plans)
        } catch {
            if case .database(let cause) = error, cause.errorClass == .connection { return false }
            fail(job, refusal(error))
        }
        return connection.isAlive || job.isSecondTry
    }

    private func refusal(_ error: ReportError) -> ServiceRefusal {
        guard case .database(let cause) = error else { return ServiceRefusal(error) }
        if cause.sqlstate == "57014" {
            let isStopping = state.withLock { $0.isStopping }
            return isStopping ? .draining : .reportTimeout(milliseconds: timeoutMilliseconds)
        }
        switch cause.errorClass {
        case .configuration, .connection: Log.debug("\(error)")
        default: Log.warn("\(error)")
        }
        return ServiceRefusal(error)
    }
}
