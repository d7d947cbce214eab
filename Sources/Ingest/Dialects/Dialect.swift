import HTTPServer

/// One request of a source that does not send our NDJSON, from its path to its answer.
///
/// A source is one file with one of these, listed in ``Dialects/call(_:_:)``. It turns a body into lines
/// of ours, and what became of them into what its client understands. All else is the path that every
/// body takes: limits, key, memory in flight, decoder, spool, verdicts.
protocol DialectCall: Sendable {
    /// The methods that the path takes.
    var methods: [String] { get }
    /// Why the path is not served; nil for one that is.
    var unserved: ServiceRefusal? { get }
    /// The vendor's id of the app, where the path has it.
    var vendorApp: String? { get }
    /// Whether a request without a key is let in by a vendor's id that is known, in the body or the path.
    var isOpen: Bool { get }
    /// The device that calls, where a token that was issued to it is good enough.
    var device: String? { get }
    /// The device that the answer issues a token to.
    var deviceOfToken: String? { get }

    /// Writes what a body says into lines.
    ///
    /// - Throws: ``ServiceRefusal`` for a body that is refused as a whole. A bad event is none: it is
    ///   written as it is, or by ``DialectLines/reject(_:)``, so that it is judged and counted alone.
    func read(_ body: SourceJSON, into lines: inout DialectLines) throws(ServiceRefusal)

    /// The answer to a body that was read, when what is accepted is durable.
    func answer(_ outcome: DialectOutcome) -> Response

    /// The answer to a request that is refused, or may be tried again.
    func answer(refused refusal: ServiceRefusal) -> Response
}

extension DialectCall {
    var methods: [String] { ["POST"] }
    var unserved: ServiceRefusal? { nil }
    var vendorApp: String? { nil }
    var isOpen: Bool { false }
    var device: String? { nil }
    var deviceOfToken: String? { nil }
    func answer(refused refusal: ServiceRefusal) -> Response { refusal.response }
}

/// The head of a request, for a dialect.
struct DialectHead: Sendable {
    let method: String
    let path: String
    /// The parts of the path, as sent.
    let parts: [Substring]
    let headers: HeaderFields
    /// Microseconds since 1970 UTC.
    let receivedAt: Int64
    let settings: ServiceSettings

    init(_ exchange: Exchange, _ settings: ServiceSettings) {
        self.init(
            method: exchange.method, path: exchange.target.path, headers: exchange.headers,
            receivedAt: exchange.receivedAt, settings: settings)
    }

    init(
        method: String, path: String, headers: HeaderFields, receivedAt: Int64,
        settings: ServiceSettings
    ) {
        self.method = method
        self.path = path
        parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { $0 }
        self.headers = headers
        self.receivedAt = receivedAt
        self.settings = settings
    }

    /// The text of a header.
    func header(_ name: StaticString) -> String? {
        headers.first(name).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The sources that speak another dialect than ours.
enum Dialects {
    /// What a request asks of one of them; nil for a path that none has.
    static func call(_ head: DialectHead) -> (any DialectCall)? {
        if let call = VibesCall(head) { return call }
        if let call = MappCall(head) { return call }
        if let call = SAPCall(head) { return call }
        if let call = PushwooshCall(head) { return call }
        return NotiPilotCall(head)
    }
}

/// What became of the events of a body.
struct DialectOutcome: Sendable {
    let body: ParsedBody
    /// What the dialect said of the first event that it rejected.
    let complaint: String?
    /// The token for ``DialectCall/deviceOfToken``.
    let token: String?
    /// The app's categories of interactive notifications: see ``KeyStore/categories(app:)``.
    let categories: String

    /// What is wrong with the first event that was rejected; nil when none was.
    var message: String? { complaint ?? body.errors.first?.rejection.message }
}
