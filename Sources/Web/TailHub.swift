import Event
import HTTPServer
import Ingest
import Metrics
import Platform
import Synchronization

/// Those who follow the events of an app, and the thread that passes them on.
///
/// An event is passed on once it is durable, before it is known whether it is a duplicate. A follower that
/// reads too slowly misses some and is told how many; nothing ever waits for one. While nobody follows,
/// a body costs one look at a flag.
final class TailHub: EventTap {
    private struct Follower: Sendable {
        let app: [UInt8]
        let key: [UInt8]
        let filter: TailFilter
        let stream: ResponseStream
        /// Events that it has not been told that it missed.
        var missed = 0
    }

    private struct State {
        var followers: [Int: Follower] = [:]
        var nextNumber = 0
        var waiting: [[UInt8]] = []
        var waitingBytes = 0
        /// Events of bodies that came when too many waited, by app.
        var dropped: [[UInt8]: Int] = [:]
        var isStopping = false
    }

    static let followersMax = 16
    /// Bodies wait here while events before them are written: a burst, not a lasting load.
    private static let waitingBytesMax = 16 << 20
    private static let streamBytesMax = 1 << 20
    private static let tickMilliseconds = 1_000
    private static let headers = [
        ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
        ("X-Accel-Buffering", "no"),
    ]

    private let keys: any KeyStore
    private let open = Atomic(false)
    private let state = Sync.Monitor(State())
    private let thread = Sync.Monitor<Thread?>(nil)

    init(keys: any KeyStore, registry: Registry) {
        self.keys = keys
        registry.gauge("tapline_tail_followers", "Open streams of live events.") { [state] in
            Double(state.withLock { $0.followers.count })
        }
    }

    func start() {
        thread.withLock { $0 = Thread.start(name: "tail") { self.run() } }
    }

    func stop() {
        let followers = state.withLock { state in
            state.isStopping = true
            return Array(state.followers.values)
        }
        state.broadcast()
        for follower in followers { follower.stream.finish() }
        thread.withLock { $0 }?.join()
    }

    /// Answers a request with a stream of events.
    func add(_ exchange: Exchange, app: [UInt8], through service: IngestService) {
        do throws(ServiceRefusal) {
            let filter = try TailFilter(exchange.target.queryItems)
            let stream = ResponseStream(bytesMax: Self.streamBytesMax)
            stream.tryWrite(Array("retry: 1000\n\n".utf8))
            let follower = Follower(
                app: app, key: ServiceKeys.key(in: exchange.headers) ?? [], filter: filter,
                stream: stream)
            let refusal = state.withLock { state -> ServiceRefusal? in
                if state.isStopping { return .draining }
                forgetClosed(&state)
                guard state.followers.count < Self.followersMax else {
                    return .tooManyViewers("follow events", limit: Self.followersMax)
                }
                state.followers[state.nextNumber] = follower
                state.nextNumber += 1
                open.store(true, ordering: .relaxed)
                return nil
            }
            if let refusal { throw refusal }
            service.answer(exchange, .stream(stream, headers: Self.headers))
        } catch {
            service.answer(exchange, error.response)
        }
    }

    // MARK: EventTap

    var isOpen: Bool { open.load(ordering: .relaxed) }

    func take(_ payload: [UInt8]) {
        state.withLock { state in
            guard state.waitingBytes + payload.count <= Self.waitingBytesMax else {
                if let body = try? BodyRecord(payload: payload) {
                    state.dropped[body.app, default: 0] += body.received - body.rejected
                }
                return
            }
            state.waiting.append(payload)
            state.waitingBytes += payload.count
        }
        state.signal()
    }

    // MARK: The thread

    private func run() {
        var nextTick = Clock.deadline(inMilliseconds: Self.tickMilliseconds)
        while let payloads = takeWaiting(until: nextTick) {
            for payload in payloads { pass(payload) }
            guard Clock.monotonic() >= nextTick else { continue }
            nextTick = Clock.deadline(inMilliseconds: Self.tickMilliseconds)
            tick()
        }
    }

    /// The bodies that have come, or none at the tick; nil at the end.
    private func takeWaiting(until deadline: Microseconds) -> [[UInt8]]? {
        state.wait(until: deadline) { state -> [[UInt8]]?? in
            if state.isStopping { return .some(nil) }
            guard !state.waiting.isEmpty else { return nil }
            defer {
                state.waiting = []
                state.waitingBytes = 0
            }
            return .some(state.waiting)
        } ?? []
    }

    private func pass(_ payload: [UInt8]) {
        guard let body = try? BodyRecord(payload: payload) else { return }
        let app = body.app
        let followers = state.withLock { $0.followers.filter { $0.value.app == app } }
        guard !followers.isEmpty, let rows = try? body.rows() else { return }
        for row in rows {
            var event: [UInt8] = []
            for (number, follower) in followers where follower.filter.admits(row) {
                if event.isEmpty { event = Self.event(row) }
                write(event, to: number)
            }
        }
    }

    private static func event(_ row: EventRow) -> [UInt8] {
        Array(
            ("event: event\ndata: {\"received_at\":\"\(Clock.rfc3339(row.receivedAt))\","
                + "\"event_time\":\"\(Clock.rfc3339(row.eventTime))\","
                + "\"type\":\"\(row.type.word)\",\"event\":").utf8) + oneLine(row.json())
            + Array("}\n\n".utf8)
    }

    /// JSON without its line ends: those of properties are between members alone.
    private static func oneLine(_ json: [UInt8]) -> [UInt8] {
        json.contains(where: { $0 == 0x0A || $0 == 0x0D })
            ? json.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 } : json
    }

    private func write(_ event: [UInt8], to number: Int) {
        state.withLock { state in
            guard let follower = state.followers[number] else { return }
            let note =
                follower.missed > 0
                ? Array("event: missed\ndata: {\"events\":\(follower.missed)}\n\n".utf8) : []
            if follower.stream.tryWrite(note + event) {
                state.followers[number]?.missed = 0
            } else {
                state.followers[number]?.missed += 1
            }
        }
    }

    /// Forgets who has gone or whose key has been revoked, and shows the others that the stream lives.
    private func tick() {
        let followers = state.withLock { state in
            for (number, follower) in state.followers {
                state.followers[number]?.missed += state.dropped[follower.app] ?? 0
            }
            state.dropped = [:]
            forgetClosed(&state)
            return state.followers
        }
        for follower in followers.values {
            if keys.isStillGood(follower.key) {
                follower.stream.tryWrite(Array(":\n\n".utf8))
            } else {
                follower.stream.finish()
            }
        }
    }

    private func forgetClosed(_ state: inout State) {
        state.followers = state.followers.filter { $0.value.stream.isOpen }
        guard state.followers.isEmpty else { return }
        open.store(false, ordering: .relaxed)
        state.waiting = []
        state.waitingBytes = 0
    }
}

/// The events that a follower asks for.
struct TailFilter: Sendable {
    private static let names = ["type", "campaign", "device", "message"]
    private let wanted: [String: String]

    init(_ items: [(name: String, value: String)]) throws(ServiceRefusal) {
        var wanted: [String: String] = [:]
        for (name, value) in items {
            guard Self.names.contains(name) else { throw .unknownParameter(name, Self.names) }
            guard wanted.updateValue(value, forKey: name) == nil else {
                throw .repeatedParameter(name)
            }
        }
        self.wanted = wanted
    }

    func admits(_ row: EventRow) -> Bool {
        wanted.allSatisfy { name, value in
            switch name {
            case "type": "\(row.type.word)" == value || row.text(.typeRaw) == value
            case "campaign": row.text(.campaignID) == value
            case "device": row.text(.deviceID) == value
            default: row.text(.messageUID) == value
            }
        }
    }
}

extension KeyStore {
    /// Whether a key that let somebody in has not been revoked since.
    func isStillGood(_ key: [UInt8]) -> Bool {
        switch lookup(key) {
        case .known, .ask, .unavailable: true
        case .revoked, .unknown, .device: false
        }
    }
}
