import HTTPServer
import Metrics
import Platform

/// What the service counts.
package final class ServiceMetrics: Sendable {
    private static let statuses = [
        200, 304, 400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 500, 501, 503,
        507,
    ]
    private let responses: [Int: Counter]
    private let otherResponses: Counter
    private let rejections: [RejectionCode: Counter]
    private let rateLimited: [ServiceRates.Limit: Counter]

    /// Lines with an event in bodies that are durable, good or bad.
    package let received: Counter
    /// Of these, the accepted ones.
    package let accepted: Counter
    /// Of these, the lines in which a NUL or half a surrogate pair was replaced.
    package let sanitized: Counter
    /// Bodies that are durable.
    package let bodies: Counter
    /// Bytes of bodies after inflating, also of those that were refused then.
    package let inflatedBytes: Counter
    /// Bodies that the threads for large ones were given.
    let largeBodies: Counter
    /// Seconds from the head of a request to its answer of 200.
    package let acknowledgeSeconds: Histogram
    /// Inflated bytes of bodies that are not answered yet, and came with a key.
    let inFlight = ByteBudget()
    /// Of these, the bytes of large bodies.
    let inFlightLarge = ByteBudget()
    /// The same of those without a key.
    let inFlightWithoutKey = ByteBudget()

    /// Makes the instruments.
    package init(_ registry: Registry) {
        var responses: [Int: Counter] = [:]
        let help = "HTTP answers by status."
        for status in Self.statuses {
            responses[status] = registry.counter(
                "tapline_http_responses_total", help, ["status": "\(status)"])
        }
        self.responses = responses
        otherResponses = registry.counter(
            "tapline_http_responses_total", help, ["status": "other"])
        received = registry.counter(
            "tapline_lines_received_total",
            "Lines with an event in durable bodies since the start, good or bad.")
        accepted = registry.counter(
            "tapline_lines_accepted_total", "Of these, the accepted ones.")
        var rejections: [RejectionCode: Counter] = [:]
        for code in RejectionCode.allCases {
            rejections[code] = registry.counter(
                "tapline_lines_rejected_total", "Of these, the rejected ones, by reason.",
                ["code": code.rawValue])
        }
        self.rejections = rejections
        var rateLimited: [ServiceRates.Limit: Counter] = [:]
        for limit in ServiceRates.Limit.allCases {
            rateLimited[limit] = registry.counter(
                "tapline_http_rate_limited_total",
                "Requests refused as their key, or without one their alias, was over its limit.",
                ["limit": limit.rawValue])
        }
        self.rateLimited = rateLimited
        sanitized = registry.counter(
            "tapline_lines_sanitized_total",
            "Accepted events with a NUL or half a surrogate pair replaced in their properties.")
        bodies = registry.counter("tapline_bodies_total", "Bodies made durable.")
        inflatedBytes = registry.counter(
            "tapline_body_inflated_bytes_total", "Bytes of bodies after inflating.")
        largeBodies = registry.counter(
            "tapline_bodies_large_total",
            "Bodies too large for an HTTP thread, good or bad, given to threads for large ones.")
        acknowledgeSeconds = registry.histogram(
            "tapline_acknowledge_seconds", "From the head of a request to its answer of 200.")
        let budgets = [inFlight, inFlightWithoutKey]
        registry.gauge(
            "tapline_in_flight_bytes", "Inflated bytes of bodies that are not answered yet."
        ) { Double(budgets.reduce(0) { $0 + $1.used }) }
    }

    /// Adds what the HTTP server counts.
    package func register(_ server: HTTPServer, in registry: Registry) {
        registry.gauge("tapline_http_connections", "Open connections.") { [weak server] in
            Double(server?.statistics.connections ?? 0)
        }
        registry.gauge("tapline_http_requests_in_flight", "Requests under way.") {
            [weak server] in
            Double(server?.statistics.requestsInFlight ?? 0)
        }
        registry.counter("tapline_http_connections_total", "Connections taken.") {
            [weak server] in
            Double(server?.statistics.connectionsAccepted ?? 0)
        }
        for limit in ConnectionLimit.allCases {
            registry.counter(
                "tapline_http_connections_refused_total",
                "Connections over a limit: open in all, open from an address, new from an address.",
                ["limit": limit.rawValue]
            ) { [weak server] in Double(server?.statistics.connectionsRefused[limit] ?? 0) }
        }
        registry.counter(
            "tapline_http_connections_cut_total", "Connections cut off as too slow."
        ) { [weak server] in Double(server?.statistics.connectionsCut ?? 0) }
        registry.counter("tapline_http_body_bytes_total", "Bytes of bodies as sent.") {
            [weak server] in
            Double(server?.statistics.bodyBytes ?? 0)
        }
    }

    func count(_ refusal: ServiceRates.Refusal) { rateLimited[refusal.limit]?.add() }

    func count(_ response: Response) {
        (responses[response.status] ?? otherResponses).add()
    }

    /// Counts a body that has just become durable.
    func count(_ body: ParsedBody) {
        bodies.add()
        received.add(body.received)
        accepted.add(body.accepted)
        sanitized.add(body.sanitized)
        for (code, count) in body.rejectedByCode { rejections[code]?.add(count) }
    }
}
