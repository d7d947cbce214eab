import Event
import HTTPServer
import Ingest
import Load
import Metrics
import Platform
import Postgres
import Report

/// Reports over HTTP, the live page and live events: `/v1/reports/…`, `/v1/live`, `/` and `/v1/tail`.
///
/// Nothing here waits on an HTTP thread: reports are made by threads of their own.
package final class Web: Sendable {
    private let version: String
    private let runner: ReportRunner
    private let live: LiveHub
    private let tail: TailHub
    private let dataThrough: @Sendable (borrowing PostgresConnection) -> Microseconds?

    /// Creates the paths; ``start()`` brings them to life.
    ///
    /// - Parameters:
    ///   - version: Of the program, as another one may count otherwise.
    ///   - reportTimeoutMilliseconds: How long a report may keep the database busy.
    ///   - registry: Receives the metrics.
    ///   - database: Where to connect; may block while the database starts.
    ///   - keys: Those of viewers, who are looked at again while they look.
    ///   - dataThrough: The oldest time of receipt that is still spooled.
    ///   - counters: What the daemon has counted; must not block.
    package init(
        version: String, reportTimeoutMilliseconds: Int, registry: Registry,
        database: @escaping @Sendable () throws(PostgresError) -> String, keys: any KeyStore,
        dataThrough: @escaping @Sendable (borrowing PostgresConnection) -> Microseconds?,
        counters: @escaping @Sendable () -> LiveCounters
    ) {
        self.version = version
        self.dataThrough = dataThrough
        runner = ReportRunner(
            database: database, timeoutMilliseconds: reportTimeoutMilliseconds, registry: registry)
        live = LiveHub(
            runner: runner, keys: keys, dataThrough: dataThrough, counters: counters,
            registry: registry)
        tail = TailHub(keys: keys, registry: registry)
    }

    /// Takes the events that are followed.
    package var tap: any EventTap { tail }

    /// Starts the threads.
    package func start() {
        runner.start()
        live.start()
        tail.start()
    }

    /// Ends the threads; a report that is being made is given up.
    package func stop() {
        tail.stop()
        live.stop()
        runner.stop()
    }

    private static let readers: [KeyRole] = [.read, .admin]
    private static let campaigns = "/v1/reports/campaigns"

    /// The route of a path; nil when it is none of these.
    package func route(_ path: String) -> ServiceRoute? {
        switch path {
        case "/":
            return ServiceRoute(methods: ["GET", "HEAD"], roles: []) { service, exchange, _ in
                service.answer(exchange, LivePage.response())
            }
        case "/v1/live":
            return ServiceRoute(methods: ["GET"], roles: Self.readers) {
                [live] service, exchange, app in
                live.add(exchange, app: String(decoding: app, as: UTF8.self), through: service)
            }
        case "/v1/tail":
            return ServiceRoute(methods: ["GET"], roles: [.admin]) {
                [tail] service, exchange, app in
                tail.add(exchange, app: app, through: service)
            }
        case Self.campaigns: return reports(.campaigns)
        case "/v1/reports/compare": return reports(.comparison)
        default:
            guard path.hasPrefix(Self.campaigns + "/") else { return nil }
            let id = path.dropFirst(Self.campaigns.count + 1)
            guard !id.isEmpty, let id = RequestTarget.decodedPath(id), !id.contains("\0") else {
                return nil
            }
            return reports(.campaign(id))
        }
    }

    private func reports(_ kind: ReportKind) -> ServiceRoute {
        ServiceRoute(methods: ["GET", "HEAD"], roles: Self.readers) {
            [self] service, exchange, app in
            let app = String(decoding: app, as: UTF8.self)
            do throws(ServiceRefusal) {
                let request = try ReportRequest(kind, exchange.target.queryItems, app: app)
                runner.submit(
                    ReportRunner.Job(app: app, isMoot: { exchange.isClosed }) {
                        connection, plans throws(ReportError) in
                        let response = try self.answer(
                            request, exchange, on: connection, plans)
                        service.answer(exchange, response)
                    } fail: { refusal in
                        service.answer(exchange, refusal.response)
                    })
            } catch {
                service.answer(exchange, error.response)
            }
        }
    }

    // MARK: On a thread of the runner

    private func answer(
        _ request: ReportRequest, _ exchange: Exchange, on connection: borrowing PostgresConnection,
        _ plans: ReportPlans
    ) throws(ReportError) -> Response {
        var request = request
        request.options.dataThrough = dataThrough(connection)
        let known = EntityTag.list(exchange.headers)
        if !known.isEmpty {
            let stamp = try CampaignReport.stamp(
                of: request.options, on: connection, plans: plans)
            let tag = tag(stamp, request, exchange)
            if known.contains(tag) {
                return Response(status: 304, headers: Self.headers(tag))
            }
        }
        if request.kind == .comparison {
            let comparison = try Comparison.load(
                request.campaigns, by: request.rate, request.options, on: connection,
                plans: plans)
            return .json(
                status: 200, comparison.json(),
                headers: Self.headers(tag(comparison.report.stamp, request, exchange)))
        }
        if let since = request.since {
            request.options.top = min(
                request.options.top ?? ReportRequest.limitMax, ReportRequest.limitMax)
            let delta = try ReportDelta.load(
                request.options, since: since, on: connection, plans: plans)
            return .json(
                status: 200, delta.json(),
                headers: Self.headers(tag(delta.report.stamp, request, exchange)))
        }
        if request.isPage {
            let page = try HTMLReport.load(request.options, on: connection)
            return Response(
                status: 200,
                headers: [
                    ("Content-Type", request.mediaType), ("Cache-Control", "private, no-cache"),
                    ("Vary", "Authorization"),
                ], body: page.render())
        }
        return try page(request, exchange, on: connection, plans)
    }

    private func page(
        _ request: ReportRequest, _ exchange: Exchange, on connection: borrowing PostgresConnection,
        _ plans: ReportPlans
    ) throws(ReportError) -> Response {
        var options = request.options
        // One more than the page tells whether there is a next one.
        let isLast = options.top.map { $0 <= options.offset + request.limit } ?? false
        options.top = max(1, isLast ? request.rowsMax : request.rowsMax + 1)
        var report = try CampaignReport.load(options, on: connection, plans: plans)
        if case .campaign(let id) = request.kind, report.rows.isEmpty,
            try !isKnown(options, report, on: connection, plans)
        {
            return ServiceRefusal.noCampaign(id, app: options.app ?? "").response
        }
        let hasNext = !isLast && report.rows.count > request.rowsMax
        if report.rows.count > request.rowsMax {
            report.rows.removeLast(report.rows.count - request.rowsMax)
        }
        var headers = Self.headers(tag(report.stamp, request, exchange))
        let next = hasNext ? request.next(after: report, path: exchange.target.path) : nil
        if let next { headers.append(("Link", "<\(next)>; rel=\"next\"")) }
        headers.append(("Content-Type", request.mediaType))
        let body =
            request.format == .json
            ? Array(report.json(next: next).utf8) : report.render(request.format)
        return Response(status: 200, headers: headers, body: body)
    }

    /// Whether a campaign without rows here has some in another period, or on an earlier page.
    private func isKnown(
        _ options: ReportOptions, _ report: CampaignReport,
        on connection: borrowing PostgresConnection, _ plans: ReportPlans
    ) throws(ReportError) -> Bool {
        guard options.offset > 0 || report.from != nil || report.to != nil || report.isHistoric
        else { return false }
        var whole = ReportOptions()
        whole.app = options.app
        whole.campaign = options.campaign
        whole.includesTest = options.includesTest
        whole.journeys = .never
        return try !CampaignReport.load(whole, on: connection, plans: plans).rows.isEmpty
    }

    private static func headers(_ tag: String) -> [(name: String, value: String)] {
        [("ETag", tag), ("Cache-Control", "private, no-cache"), ("Vary", "Authorization")]
    }

    /// Weak, as the same counts may come with a later `data_through`.
    private func tag(_ stamp: String, _ request: ReportRequest, _ exchange: Exchange) -> String {
        let items = exchange.target.queryItems.map { "\($0.name)\u{0}\($0.value)" }.sorted()
        let fixed = [version, stamp, request.options.app ?? "", exchange.target.path]
        let text = (fixed + items).joined(separator: "\n")
        return "W/\"\(Hex.encode(sha256(Array(text.utf8)).prefix(16)))\""
    }
}

/// `If-None-Match`.
enum EntityTag {
    /// The tags that a client has, as `W/"…"` whether weak or not.
    static func list(_ headers: HeaderFields) -> [String] {
        guard let value = headers.first("If-None-Match") else { return [] }
        return String(decoding: value, as: UTF8.self).split(separator: ",").map { item in
            let item = item.drop { $0 == " " || $0 == "\t" }
            let tag = item.prefix { $0 != " " && $0 != "\t" }
            return tag.hasPrefix("W/") ? String(tag) : "W/" + tag
        }
    }
}
