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

/// Serves `POST /v1/events`, the sources' own paths, `GET /healthz`, `/readyz` and `/metrics`.
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
    /// Read large bodies, in turn by key, and stand back behind the HTTP threads.
    package let largeBodies: FairWorkers
    let rates: ServiceRates
    /// Of requests without a key, by the alias that lets them in.
    let aliasRates: ServiceRates
    /// What the service counts.
    package let metrics: ServiceMetrics
    private let registry: Registry
    let onDurable: @Sendable (_ received: Int, _ rejected: Int) -> Void
    let tap: (any EventTap)?
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
    ///   - tap: Takes each such body, if anyone follows.
    ///   - readiness: A reason why events cannot be made durable now, beside those of the spool.
    ///   - routes: Further paths.
    package init(
        settings: ServiceSettings = ServiceSettings(), spool: Spool, keys: any KeyStore,
        registry: Registry, storedWaiter: (any StoredWaiter)? = nil,
        onDurable: @escaping @Sendable (_ received: Int, _ rejected: Int) -> Void = { _, _ in },
        tap: (any EventTap)? = nil, readiness: @escaping @Sendable () -> String? = { nil },
        routes: @escaping @Sendable (_ path: String) -> ServiceRoute? = { _ in nil }
    ) {
        self.settings = settings
        self.spool = spool
        self.keys = keys
        self.registry = registry
        self.storedWaiter = storedWaiter
        self.onDurable = onDurable
        self.tap = tap
        self.readiness = readiness
        self.routes = routes
        parser = BodyParser(settings)
        largeBodies = FairWorkers(
            name: "large-bodies", threads: settings.largeBodyThreads,
            niceness: Thread.behindAnswers)
        rates = ServiceRates(
            requestsPerSecondMax: settings.keyRequestsPerSecondMax,
            eventsPerSecondMax: settings.keyEventsPerSecondMax,
            burstMilliseconds: settings.keyBurstMilliseconds)
        aliasRates = ServiceRates(requestsPerSecondMax: settings.aliasRequestsPerSecondMax)
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
                if let call = Dialects.call(DialectHead(exchange, settings)) {
                    return serve(call, exchange)
                }
                guard let route = routes(path) else { throw .notFound(path) }
                try serve(route, exchange)
            }
        } catch {
            answer(exchange, error.response)
        }
    }

    package func response(to failure: HTTPFailure, of exchange: Exchange?) -> Response {
        let call = exchange.flatMap { Dialects.call(DialectHead($0, settings)) }
        let response = Self.response(to: Self.refusal(failure, settings), call)
        metrics.count(response)
        return response
    }

    // MARK: Paths

    private func events(_ exchange: Exchange) throws(ServiceRefusal) {
        try check(exchange, ["POST"])
        try checkIsTaking()
        let head = try EventsHead(exchange)
        try withKey(exchange, roles: [.ingest]) { service, app, key throws(ServiceRefusal) in
            let body = ServiceBody(service, exchange, app: app, key: key, head: head)
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

    /// Refuses what would be spooled once the daemon is stopping.
    func checkIsTaking() throws(ServiceRefusal) {
        if draining.load(ordering: .relaxed) { throw .draining }
    }

    func check(_ exchange: Exchange, _ methods: [String]) throws(ServiceRefusal) {
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
    ///
    /// - Parameter call: Of a source, to refuse in its words.
    func withKey(
        _ exchange: Exchange, roles: [KeyRole], for call: (any DialectCall)? = nil,
        _ proceed:
            @escaping @Sendable (IngestService, _ app: [UInt8], _ key: [UInt8])
            throws(ServiceRefusal) -> Void
    ) throws(ServiceRefusal) {
        guard let key = ServiceKeys.key(in: exchange.headers) else { throw .missingKey }
        let verdict = keys.lookup(key)
        guard verdict == .ask else {
            let (app, payer) = try app(verdict, roles: roles, of: key, for: call)
            try proceed(self, app, payer)
            return
        }
        exchange.deferHead()
        keys.ask(key) { [self] verdict in
            do throws(ServiceRefusal) {
                let (app, payer) = try app(verdict, roles: roles, of: key, for: call)
                try proceed(self, app, payer)
            } catch {
                refuse(exchange, error, call)
            }
        }
    }

    /// The app of a key that may do this, now, and whose limits it is held to.
    private func app(
        _ verdict: KeyVerdict, roles: [KeyRole], of key: [UInt8], for call: (any DialectCall)?
    ) throws(ServiceRefusal) -> (app: [UInt8], payer: [UInt8]) {
        switch verdict {
        case .known(let app, let found):
            guard roles.contains(found) else { throw .wrongKey(found, needed: roles) }
            try checkRate(of: key, app)
            return (app, key)
        case .device(let app, let device):
            guard let asked = call?.device, asked == device else { throw .wrongDevice }
            // All devices of an app are held to what one key may do, or they would have no limit.
            let payer = Array("device ".utf8) + app
            try checkRate(of: payer, app)
            return (app, payer)
        case .revoked: throw .revokedKey
        case .unknown: throw .unknownKey
        case .ask, .unavailable: throw .keysUnavailable
        }
    }

    /// Refuses a request whose key is over its limit; its body is not read then.
    private func checkRate(of key: [UInt8], _ app: [UInt8]) throws(ServiceRefusal) {
        guard let refusal = rates.admit(key) else { return }
        note(refusal, of: "key", app)
        throw .tooManyRequests(refusal)
    }

    /// Counts who is refused, and logs it once in a while.
    ///
    /// - Parameter whose: `key` or `alias`, as in the names of the settings.
    func note(_ refusal: ServiceRates.Refusal, of whose: String, _ app: [UInt8]) {
        metrics.count(refusal)
        guard let count = refusal.unreported else { return }
        let limit = refusal.limit.rawValue
        Log.warn(
            "one \(whose) sends more \(limit) than the limit of \(refusal.perSecondMax)/s, "
                + "refusing with 429",
            hint: "Raise http.\(whose)_\(limit)_per_second_max if that is not a storm of retries.",
            ["app": String(decoding: app, as: UTF8.self), "refused": "\(count)"])
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
}
