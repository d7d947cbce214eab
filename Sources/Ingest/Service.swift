import HTTPServer
import Metrics
import Platform
import Spool
import Synchronization

/// A path of another module, served under the same checks of method and key.
package struct ServiceRoute: Sendable {
    /// The methods it takes.
    package var methods: [String]
    /// The kinds of key it takes; none for everybody.
    package var roles: [KeyRole]
    /// Answers the request through the service (``IngestService/answer(_:_:)``), at once or later from
    /// any thread; the body is not read.
    package var respond: @Sendable (IngestService, _ exchange: Exchange, _ app: [UInt8]) -> Void

    /// Creates a route.
    package init(
        methods: [String], roles: [KeyRole],
        respond:
            @escaping @Sendable (
                IngestService, _ exchange: Exchange, _ app: [UInt8]
            ) -> Void
    ) {
        self.methods = methods
        self.roles = roles
        self.respond = respond
    }
}

/// Serves `POST /v1/events`, `GET /healthz`, `/readyz` and `/metrics`.
///
/// A request is judged in this order, all of it before the body is read: path 404, method 405,
/// media type and encoding 415, key 401 and 403, announced length 413. A 200 is sent only after the
/// accepted lines are synced to the spool.
package final class IngestService: HTTPHandler {
    let settings: ServiceSettings
    let spool: Spool
    let keys: any KeyStore
    let storedWaiter: (any StoredWaiter)?
    let parser: BodyParser
    let buffers = BodyBuffers()
    let rates: ServiceRates
    /// What the service counts.
    package let metrics: ServiceMetrics
    private let registry: Registry
    let onDurable: @Sendable (_ received: Int, _ rejected: Int) -> Void
    private let routes: @Sendable (_ path: String) -> ServiceRoute?
    private let readiness: @Sendable () -> String?
    private let draining = Atomic(false)
    /// The last failure of the spool, and until when (monotonic) it counts against readiness. It
    /// must pass by itself: a balancer that sends nothing would never let it show that it works.
    private let trouble = Sync.Monitor<(reason: String, until: Microseconds)?>(nil)
    private static let troubleTime: Microseconds = 5_000_000

    /// Creates the service.
    ///
    /// - Parameters:
    ///   - settings: Its limits.
    ///   - spool: Makes events durable.
    ///   - keys: Knows the keys.
    ///   - registry: Receives the service's metrics, and is what `/metrics` shows.
    ///   - storedWaiter: For `?ack=stored`, which without it is as if it were not given.
    ///   - onDurable: Told of each body that has become durable, on the committer's thread.
    ///   - readiness: A reason why events cannot be made durable now, beside those of the spool.
    ///   - routes: Further paths.
    package init(
        settings: ServiceSettings = ServiceSettings(), spool: Spool, keys: any KeyStore,
        registry: Registry, storedWaiter: (any StoredWaiter)? = nil,
        onDurable: @escaping @Sendable (_ received: Int, _ rejected: Int) -> Void = { _, _ in },
        readiness: @escaping @Sendable () -> String? = { nil },
        routes: @escaping @Sendable (_ path: String) -> ServiceRoute? = { _ in nil }
    ) {
        self.settings = settings
        self.spool = spool
        self.keys = keys
        self.registry = registry
        self.storedWaiter = storedWaiter
        self.onDurable = onDurable
        self.readiness = readiness
        self.routes = routes
        parser = BodyParser(settings)
        rates = ServiceRates(
            requestsPerSecondMax: settings.keyRequestsPerSecondMax,
            eventsPerSecondMax: settings.keyEventsPerSecondMax,
            burstMilliseconds: settings.keyBurstMilliseconds)
        metrics = ServiceMetrics(registry)
    }

    /// Refuses new bodies from now on, for the end of the daemon; the rest is served on.
    package func startDraining() { draining.store(true, ordering: .relaxed) }

    /// Answers a request and counts the answer. For routes, too.
    package func answer(_ exchange: Exchange, _ response: Response) {
        metrics.count(response)
        exchange.respond(response)
    }

    // MARK: HTTPHandler

    package func receivedHead(_ exchange: Exchange) {
        do throws(ServiceRefusal) {
            switch exchange.target.path {
            case "/v1/events": try events(exchange)
            case "/healthz":
                try check(exchange, ["GET", "HEAD"])
                answer(exchange, .json(status: 200, "{\"status\":\"ok\"}"))
            case "/readyz":
                try check(exchange, ["GET", "HEAD"])
                try checkReadiness()
                answer(exchange, .json(status: 200, "{\"status\":\"ready\"}"))
            case "/metrics":
                try check(exchange, ["GET", "HEAD"])
                answer(
                    exchange,
                    Response(
                        status: 200, headers: [("Content-Type", Registry.contentType)],
                        body: registry.render()))
            case let path:
                guard let route = routes(path) else { throw .notFound(path) }
                try serve(route, exchange)
            }
        } catch {
            answer(exchange, error.response)
        }
    }

    package func response(to failure: HTTPFailure) -> Response {
        let refusal = refusal(failure)
        metrics.count(refusal.response)
        return refusal.response
    }

    // MARK: Paths

    private func events(_ exchange: Exchange) throws(ServiceRefusal) {
        try check(exchange, ["POST"])
        if draining.load(ordering: .relaxed) { throw .draining }
        let head = try EventsHead(exchange)
        try withKey(exchange, roles: [.ingest]) { service, app, key throws(ServiceRefusal) in
            let body = try ServiceBody(service, exchange, app: app, key: key, head: head)
            exchange.accept(body: body)
        }
    }

    private func serve(_ route: ServiceRoute, _ exchange: Exchange) throws(ServiceRefusal) {
        try check(exchange, route.methods)
        guard !route.roles.isEmpty else {
            // A route may answer later.
            exchange.deferHead()
            route.respond(self, exchange, [])
            return
        }
        try withKey(exchange, roles: route.roles) { service, app, _ throws(ServiceRefusal) in
            exchange.deferHead()
            route.respond(service, exchange, app)
        }
    }

    private func check(_ exchange: Exchange, _ methods: [String]) throws(ServiceRefusal) {
        guard methods.contains(exchange.method) else {
            throw .methodNotAllowed(exchange.method, methods)
        }
    }

    private func checkReadiness() throws(ServiceRefusal) {
        let now = Clock.monotonic()
        var reason =
            readiness() ?? trouble.withLock { $0.flatMap { now < $0.until ? $0.reason : nil } }
        if draining.load(ordering: .relaxed) { reason = "the daemon is stopping" }
        guard let reason else { return }
        throw ServiceRefusal(
            503, "not_ready", reason, retryAfter: ServiceRefusal.jittered(2))
    }

    // MARK: Keys

    /// Goes on with the app of the request's key and the key, at once or after a look-up.
    private func withKey(
        _ exchange: Exchange, roles: [KeyRole],
        _ proceed:
            @escaping @Sendable (IngestService, _ app: [UInt8], _ key: [UInt8])
            throws(ServiceRefusal) -> Void
    ) throws(ServiceRefusal) {
        guard let key = ServiceKeys.key(in: exchange.headers) else { throw .missingKey }
        let verdict = keys.lookup(key)
        guard verdict == .ask else {
            try proceed(self, try app(verdict, roles: roles, of: key), key)
            return
        }
        exchange.deferHead()
        keys.ask(key) { [self] verdict in
            do throws(ServiceRefusal) {
                try proceed(self, try app(verdict, roles: roles, of: key), key)
            } catch {
                answer(exchange, error.response)
            }
        }
    }

    /// The app of a key that may do this, now.
    private func app(
        _ verdict: KeyVerdict, roles: [KeyRole], of key: [UInt8]
    ) throws(ServiceRefusal) -> [UInt8] {
        switch verdict {
        case .known(let app, let found):
            guard roles.contains(found) else { throw .wrongKey(found, needed: roles) }
            try checkRate(of: key, app)
            return app
        case .revoked: throw .revokedKey
        case .unknown: throw .unknownKey
        case .ask, .unavailable: throw .keysUnavailable
        }
    }

    /// Refuses a request whose key is over its limit; its body is not read then.
    private func checkRate(of key: [UInt8], _ app: [UInt8]) throws(ServiceRefusal) {
        guard let refusal = rates.admit(key) else { return }
        metrics.count(refusal)
        if let count = refusal.unreported {
            let limit = refusal.limit.rawValue
            Log.warn(
                "a key sends more \(limit) than the limit of \(refusal.perSecondMax)/s, refusing "
                    + "with 429",
                hint: "Raise http.key_\(limit)_per_second_max if that is not a storm of retries.",
                ["app": String(decoding: app, as: UTF8.self), "refused": "\(count)"])
        }
        throw .tooManyRequests(refusal)
    }

    // MARK: Refusals of other modules

    /// The answer to a failure of the spool, which is remembered for `/readyz`.
    func refusal(_ error: SpoolError) -> ServiceRefusal {
        let refusal = Self.refusal(error)
        let until = Clock.monotonic() + Self.troubleTime
        trouble.withLock { $0 = (refusal.message, until) }
        return refusal
    }

    /// Notes that the spool works.
    func spoolWorks() {
        trouble.withLock { if $0 != nil { $0 = nil } }
    }

    private static func refusal(_ error: SpoolError) -> ServiceRefusal {
        switch error {
        case .full(let bytes, let limit):
            ServiceRefusal(
                503, "spool_full", "\(error)", details: [("actual", bytes), ("limit", limit)],
                retryAfter: ServiceRefusal.jittered(10))
        case .noSpace:
            ServiceRefusal(
                507, "disk_full", "could not append to spool: no space left on device",
                retryAfter: ServiceRefusal.jittered(10))
        case .closing: .draining
        case .tooLarge(let bytes, let limit):
            ServiceRefusal(
                413, "body_too_large", "\(error)", details: [("actual", bytes), ("limit", limit)])
        case .failed, .locked, .notThisSpool, .unsupportedVersion:
            // The cause is in the log; paths of this machine are nobody's business.
            ServiceRefusal(
                503, "spool_failed", "could not append to spool",
                retryAfter: ServiceRefusal.jittered(2))
        }
    }

    private func refusal(_ failure: HTTPFailure) -> ServiceRefusal {
        switch failure {
        case .malformed(let reason):
            ServiceRefusal(400, "malformed_request", "request is malformed: \(reason)")
        case .headTooSlow(let limit):
            closing(
                408, "head_too_slow", "headers were not complete in \(limit) ms",
                [("limit_milliseconds", limit)])
        case .bodyTooSlow(let limit):
            closing(
                408, "body_too_slow", "body came too slowly, or not in \(limit) ms",
                [("limit_milliseconds", limit)])
        case .bodyTooLarge(let bytes, _): .bodyTooLarge(settings, bytes: bytes)
        case .headersTooLarge(let bytes, let limit):
            ServiceRefusal(
                431, "headers_too_large", "headers are \(bytes) bytes, limit is \(limit)",
                details: [("actual", bytes), ("limit", limit)])
        case .unanswered: ServiceRefusal(500, "internal", "the request was not answered")
        case .tooManyConnections(let limit):
            ServiceRefusal(
                503, "too_many_connections", "too many connections, limit is \(limit)",
                details: [("limit", limit)], retryAfter: ServiceRefusal.jittered(2))
        case .stopping: .draining
        }
    }

    private func closing(
        _ status: Int, _ code: String, _ message: String, _ details: [(name: String, value: Int)]
    ) -> ServiceRefusal {
        var refusal = ServiceRefusal(status, code, message, details: details)
        refusal.closesConnection = true
        return refusal
    }
}
