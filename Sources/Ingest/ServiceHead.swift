import Event
import HTTPServer
import JSONLines

/// What the head of `POST /v1/events` asks for.
struct EventsHead: Sendable {
    var format = BodyFormat.lines
    var isGzip = false
    /// The client's clock when it sent the request.
    var sentAt: Int64?
    /// `?strict=1`.
    var isStrict = false
    /// `?ack=stored`.
    var waitsForStored = false

    /// Reads the head but for the key.
    ///
    /// - Parameter isDialect: Whether it is of a source, whose path says what the body is.
    /// - Throws: ``ServiceRefusal``.
    init(_ exchange: Exchange, isDialect: Bool = false) throws(ServiceRefusal) {
        let headers = exchange.headers
        if !isDialect { format = try Self.format(headers) }
        isGzip = try Self.isGzip(headers)
        if let value = headers.first("X-Sent-At") {
            sentAt = EventTime.parse(Array(value).rawSpan)
        }
        let strict = exchange.target.queryItem("strict")
        isStrict = strict == "1" || strict == "true"
        waitsForStored = exchange.target.queryItem("ack") == "stored"
    }

    /// Types that mean NDJSON. The last is what curl says when it is told nothing.
    private static let lineTypes: [StaticString] = [
        "application/x-ndjson", "application/ndjson", "application/jsonl", "text/plain",
        "application/x-www-form-urlencoded",
    ]

    private static func format(_ headers: HeaderFields) throws(ServiceRefusal) -> BodyFormat {
        guard headers.count(of: "Content-Type") <= 1 else {
            throw .contentType("sent twice".utf8)
        }
        guard let value = headers.first("Content-Type") else { return .lines }
        // Parameters as `; charset=utf-8` change nothing: a line is UTF-8 or is rejected.
        var type = value.prefix { $0 != 0x3B }
        while let last = type.last, last == 0x20 || last == 0x09 { type.removeLast() }
        if type.isEmpty || lineTypes.contains(where: { equalsIgnoringCase(type, $0) }) {
            return .lines
        }
        guard equalsIgnoringCase(type, "application/json") else { throw .contentType(value) }
        return .json
    }

    private static func isGzip(_ headers: HeaderFields) throws(ServiceRefusal) -> Bool {
        guard headers.count(of: "Content-Encoding") <= 1 else {
            throw .contentEncoding("sent twice".utf8)
        }
        guard let value = headers.first("Content-Encoding") else { return false }
        if equalsIgnoringCase(value, "gzip") || equalsIgnoringCase(value, "x-gzip") { return true }
        guard value.isEmpty || equalsIgnoringCase(value, "identity") else {
            throw .contentEncoding(value)
        }
        return false
    }
}
