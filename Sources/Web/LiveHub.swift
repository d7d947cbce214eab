import HTTPServer
import Ingest
import Load
import Metrics
import Platform
import Postgres
import Report

/// Those who look at the live page, and the thread that tells them what happens.
///
/// Each second it sends what is counted in memory. The campaigns of an app are read from the database
/// for all its viewers together, five seconds after the last time at the earliest; while nobody looks
/// nothing is done at all.
final class LiveHub: Sendable {
    private struct Viewer: Sendable {
        let app: String
        let key: [UInt8]
        let stream: ResponseStream
    }

    /// The campaigns of one app, as last read.
    private struct Board {
        var events: [UInt8] = []
        var isBeingRead = false
        var nextAt: Microseconds = 0
        /// When each flag of a campaign was first seen, on the wall clock.
        var seenAt: [LiveBoard.Flag: Microseconds] = [:]
    }

    private struct State {
        var viewers: [Viewer] = []
        var boards: [String: Board] = [:]
        var isStopping = false
    }

    static let viewersMax = 64
    private static let tickMilliseconds = 1_000
    private static let boardMilliseconds = 5_000
    /// More than a few seconds of events; a viewer that reads no faster misses some.
    private static let streamBytesMax = 256 * 1024
    private static let headers = [
        ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
        // Some proxies keep an answer back until it is complete.
        ("X-Accel-Buffering", "no"),
    ]

    private let runner: ReportRunner
    private let keys: any KeyStore
    private let dataThrough: @Sendable (borrowing PostgresConnection) -> Microseconds?
    private let counters: @Sendable () -> LiveCounters
    private let state = Sync.Monitor(State())
    private let thread = Sync.Monitor<Thread?>(nil)

    init(
        runner: ReportRunner, keys: any KeyStore,
        dataThrough: @escaping @Sendable (borrowing PostgresConnection) -> Microseconds?,
        counters: @escaping @Sendable () -> LiveCounters, registry: Registry
    ) {
        self.runner = runner
        self.keys = keys
        self.dataThrough = dataThrough
        self.counters = counters
        registry.gauge("tapline_live_viewers", "Open streams of the live page.") { [state] in
            Double(state.withLock { $0.viewers.count })
        }
    }

    func start() {
        thread.withLock { $0 = Thread.start(name: "live") { self.run() } }
    }

    func stop() {
        let viewers = state.withLock { state in
            state.isStopping = true
            return state.viewers
        }
        state.broadcast()
        for viewer in viewers { viewer.stream.finish() }
        thread.withLock { $0 }?.join()
    }

    /// Answers a request with a stream of events.
    func add(_ exchange: Exchange, app: String, through service: IngestService) {
        let stream = ResponseStream(bytesMax: Self.streamBytesMax)
        let viewer = Viewer(
            app: app, key: ServiceKeys.key(in: exchange.headers) ?? [], stream: stream)
        // A browser that reads events by itself comes back this soon.
        stream.tryWrite(Array("retry: 1000\n\n".utf8))
        stream.tryWrite(Self.event("counters", LiveMeter().json(counters(), now: Clock.now())))
        let refusal = state.withLock { state -> ServiceRefusal? in
            if state.isStopping { return .draining }
            state.viewers.removeAll { !$0.stream.isOpen }
            guard state.viewers.count < Self.viewersMax else {
                return .tooManyViewers(limit: Self.viewersMax)
            }
            stream.tryWrite(state.boards[app]?.events ?? [])
            state.viewers.append(viewer)
            return nil
        }
        if let refusal {
            service.answer(exchange, refusal.response)
        } else {
            state.broadcast()
            service.answer(exchange, .stream(stream, headers: Self.headers))
        }
    }

    static func event(_ name: String, _ json: String) -> [UInt8] {
        // Only between the members of an object are there newlines: those of strings are escaped.
        Array("event: \(name)\ndata: \(json.replacing("\n", with: ""))\n\n".utf8)
    }

    // MARK: The thread

    private func run() {
        while waitForViewers() {
            let meter = LiveMeter()
            repeat { tick(meter) } while pause() && hasViewers
        }
    }

    private var hasViewers: Bool { state.withLock { !$0.viewers.isEmpty } }

    private func waitForViewers() -> Bool {
        state.wait { state -> Bool? in
            if state.isStopping { return false }
            return state.viewers.isEmpty ? nil : true
        } ?? false
    }

    private func pause() -> Bool {
        let deadline = Clock.deadline(inMilliseconds: Self.tickMilliseconds)
        return state.wait(until: deadline) { $0.isStopping ? false : nil } ?? true
    }

    private func tick(_ meter: LiveMeter) {
        let viewers = state.withLock { state in
            state.viewers.removeAll { !$0.stream.isOpen }
            return state.viewers
        }
        let event = Self.event("counters", meter.json(counters(), now: Clock.now()))
        for viewer in viewers {
            // A key that was revoked meanwhile shows nothing more.
            if isGood(viewer) { viewer.stream.tryWrite(event) } else { viewer.stream.finish() }
        }
        for app in appsToRead() { read(app) }
    }

    private func isGood(_ viewer: Viewer) -> Bool {
        switch keys.lookup(viewer.key) {
        case .known, .ask, .unavailable: true
        case .revoked, .unknown, .device: false
        }
    }

    private func appsToRead() -> [String] {
        let now = Clock.monotonic()
        return state.withLock { state in
            let apps = Set(state.viewers.map(\.app))
            // What was read for those who have left is not kept.
            state.boards = state.boards.filter { apps.contains($0.key) || $0.value.isBeingRead }
            return apps.filter { app in
                let board = state.boards[app] ?? Board()
                guard !board.isBeingRead, board.nextAt <= now else { return false }
                state.boards[app, default: Board()].isBeingRead = true
                return true
            }
        }
    }

    private func read(_ app: String) {
        runner.submit(
            ReportRunner.Job(app: app, isMoot: { [self] in !isLookedAt(app) }) {
                [self] connection, plans throws(ReportError) in
                var options = LiveBoard.options(app)
                options.dataThrough = dataThrough(connection)
                show(
                    LiveBoard(try CampaignReport.load(options, on: connection, plans: plans)),
                    of: app)
            } fail: { [self] refusal in
                send(
                    Self.event(
                        "problem", "{\"message\":\(JSONString.quoted(refusal.message))}"),
                    of: app, isKept: false)
            })
    }

    private func isLookedAt(_ app: String) -> Bool {
        state.withLock { state in
            let isLookedAt = state.viewers.contains { $0.app == app }
            if !isLookedAt { state.boards[app] = nil }
            return isLookedAt
        }
    }

    private func show(_ board: LiveBoard, of app: String) {
        let now = Clock.now()
        let flags = state.withLock { state in
            let before = state.boards[app]?.seenAt ?? [:]
            let flags = board.flags.map { ($0, before[$0] ?? now) }
            let seenAt = Dictionary(flags, uniquingKeysWith: { first, _ in first })
            state.boards[app, default: Board()].seenAt = seenAt
            return flags
        }
        send(
            Self.event("campaigns", board.report.json())
                + Self.event("flags", LiveBoard.json(flags)),
            of: app, isKept: true)
    }

    /// Sends what was read, or why it was not, and says when to read again.
    private func send(_ events: [UInt8], of app: String, isKept: Bool) {
        let viewers = state.withLock { state in
            var board = state.boards[app] ?? Board()
            if isKept { board.events = events }
            board.isBeingRead = false
            board.nextAt = Clock.deadline(inMilliseconds: Self.boardMilliseconds)
            state.boards[app] = board
            return state.viewers.filter { $0.app == app }
        }
        for viewer in viewers { viewer.stream.tryWrite(events) }
    }
}

extension ServiceRefusal {
    static func tooManyViewers(limit: Int) -> ServiceRefusal {
        ServiceRefusal(
            503, "too_many_viewers", "\(limit) others look at the live page already",
            details: [("limit", limit)], retryAfter: jittered(10))
    }
}
