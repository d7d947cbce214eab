import Platform

/// One client connection, as long as its socket is open.
@safe
final class Connection: @unchecked Sendable {
    /// Where a connection stands; decides which timeout holds.
    enum Phase {
        case fresh  // accepted, no request line yet
        case idle  // between two requests
        case head  // request line read, headers awaited
        case body  // body awaited
        case waiting  // it is the handler's turn
        case writing  // the client reads the answer

        /// Whether a request is under way.
        var isBusy: Bool { self != .fresh && self != .idle }
    }

    /// What the next call of the access handler means.
    enum Step {
        case head
        case headDeferred
        case body
        case discarding(Response)
        case answering
        case answered
    }

    let socket: Int32
    /// The number of its server thread.
    let worker: Int
    let address: ClientAddress
    /// Over a connection limit: its first request is answered 503.
    let limitExceeded: Int?

    // Under the registry's lock.
    var phase = Phase.fresh
    var since: Microseconds
    var bodyCount = 0
    var isCut = false
    /// When its client was seen to have gone.
    var goneSince: Microseconds?
    var exchange: Exchange?
    var stream: ResponseStream?

    // On the connection's server thread only.
    var step = Step.head
    var target = ""
    var sink: (any BodySink)?
    var discardLimit = 0
    var lingers = false

    init(
        socket: Int32, worker: Int, address: ClientAddress, limitExceeded: Int?, now: Microseconds
    ) {
        self.socket = socket
        self.worker = worker
        self.address = address
        self.limitExceeded = limitExceeded
        self.since = now
    }
}

/// How long a connection may stay in each phase.
struct Timeouts: Sendable {
    var head: Microseconds
    var body: Microseconds
    var grace: Microseconds
    var idle: Microseconds
    var write: Microseconds
    var bodyBytesPerSecondMin: Int

    init(_ configuration: HTTPServerConfiguration) {
        head = Microseconds(configuration.headerTimeoutMilliseconds) * 1000
        body = Microseconds(configuration.bodyTimeoutMilliseconds) * 1000
        grace = Microseconds(configuration.bodyGraceMilliseconds) * 1000
        idle = Microseconds(configuration.idleTimeoutMilliseconds) * 1000
        write = Microseconds(configuration.writeTimeoutMilliseconds) * 1000
        bodyBytesPerSecondMin = configuration.bodyBytesPerSecondMin
    }

    enum Verdict: Equatable {
        case keep
        case close
        case refuse(HTTPFailure)
    }

    /// What to do with a connection that is in `phase` since `elapsed` microseconds.
    func verdict(_ phase: Connection.Phase, elapsed: Microseconds, bodyCount: Int) -> Verdict {
        switch phase {
        case .waiting: return .keep
        case .fresh: return elapsed > head ? .close : .keep
        case .idle: return elapsed > idle ? .close : .keep
        case .writing: return elapsed > write ? .close : .keep
        case .head:
            return elapsed > head
                ? .refuse(.headTooSlow(limitMilliseconds: Int(head / 1000))) : .keep
        case .body:
            let minimum = Double(bodyBytesPerSecondMin) * Double(elapsed) / 1_000_000
            if elapsed > body || elapsed > grace && Double(bodyCount) < minimum {
                return .refuse(.bodyTooSlow(limitMilliseconds: Int(body / 1000)))
            }
            return .keep
        }
    }

    /// How often connections are looked at: a quarter of the shortest timeout, at most 500 ms.
    var tickMilliseconds: Int {
        Int(max(5, min(500, [head, body, grace, idle, write].min()! / 4000)))
    }
}
