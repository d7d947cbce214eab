import HTTPServer
import Platform

/// A request that is not done as asked: one case, one status, one code.
package struct ServiceRefusal: Error, Sendable {
    /// The status of the answer.
    package var status: Int
    /// A word for programs.
    package var code: String
    /// A line for people: what, actual and limit.
    package var message: String
    /// Further members of the error object, as actual sizes and limits.
    package var details: [(name: String, value: Int)]
    /// Further members that are text.
    package var words: [(name: String, value: String)] = []
    /// Seconds after which to try again; nil when that is of no use as it is.
    package var retryAfter: Int?
    /// Further headers.
    package var headers: [(name: String, value: String)] = []
    /// Whether the connection ends.
    package var closesConnection = false

    /// Creates a refusal.
    package init(
        _ status: Int, _ code: String, _ message: String,
        details: [(name: String, value: Int)] = [], retryAfter: Int? = nil
    ) {
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.retryAfter = retryAfter
    }

    /// The answer. Whoever may try again reads when in the header or in the body.
    package var response: Response {
        var json = "{"
        json += errorMember
        if let retryAfter { json += ",\"retry_after\":\(retryAfter)" }
        json += "}"
        var all = headers
        if let retryAfter { all.append(("Retry-After", "\(retryAfter)")) }
        var response = Response.json(status: status, json, headers: all)
        response.closesConnection = closesConnection
        return response
    }

    /// `"error":{…}`.
    var errorMember: String {
        var json = "\"error\":{\"code\":\"\(code)\",\"message\":\(JSONString.quoted(message))"
        for (name, value) in details { json += ",\"\(name)\":\(value)" }
        for (name, value) in words { json += ",\"\(name)\":\(JSONString.quoted(value))" }
        return json + "}"
    }

    /// Seconds from `base` to three times as many, so that clients do not come back together.
    package static func jittered(_ base: Int) -> Int {
        base + Int(Double(2 * base + 1) * Random.uniform())
    }
}

extension ServiceRefusal {
    static func notFound(_ path: String) -> ServiceRefusal {
        ServiceRefusal(404, "not_found", "there is no path \(shown(path.utf8))")
    }

    /// A value of the client's in a message: quoted, and at most its first 64 bytes.
    package static func shown(_ value: some Collection<UInt8>) -> String {
        let text = String(decoding: value.prefix(64), as: UTF8.self)
        return "\"\(text)\(value.count > 64 ? "…" : "")\""
    }

    static func methodNotAllowed(_ method: String, _ allowed: [String]) -> ServiceRefusal {
        let list = allowed.joined(separator: ", ")
        var refusal = ServiceRefusal(
            405, "method_not_allowed", "method is \(shown(method.utf8)), this path takes \(list)")
        refusal.headers = [("Allow", list)]
        return refusal
    }

    static func contentType(_ value: some Collection<UInt8>) -> ServiceRefusal {
        ServiceRefusal(
            415, "unsupported_content_type",
            "Content-Type is \(shown(value)), not application/x-ndjson, application/ndjson, "
                + "application/jsonl, text/plain or application/json")
    }
    static func contentEncoding(_ value: some Collection<UInt8>) -> ServiceRefusal {
        ServiceRefusal(
            415, "unsupported_content_encoding",
            "Content-Encoding is \(shown(value)), not gzip, x-gzip or identity")
    }
    static func tooManyRequests(
        _ refusal: ServiceRates.Refusal, of whose: String = "this key"
    ) -> ServiceRefusal {
        let seconds = Int((refusal.waitMicroseconds + 999_999) / 1_000_000)
        return ServiceRefusal(
            429, "too_many_requests",
            "\(refusal.limit.rawValue) of \(whose) are over the limit of \(refusal.perSecondMax)/s",
            details: [("limit", refusal.perSecondMax)], retryAfter: jittered(max(1, seconds)))
    }

    static var missingKey: ServiceRefusal {
        var refusal = ServiceRefusal(
            401, "missing_key", "no key: send \"Authorization: Bearer KEY\"")
        refusal.headers = [("WWW-Authenticate", "Bearer")]
        return refusal
    }
    static var unknownKey: ServiceRefusal {
        var refusal = ServiceRefusal(401, "unknown_key", "the key is not known")
        refusal.headers = [("WWW-Authenticate", "Bearer error=\"invalid_token\"")]
        return refusal
    }
    static let revokedKey = ServiceRefusal(403, "revoked_key", "the key is revoked")
    static func wrongKey(_ role: KeyRole, needed: [KeyRole]) -> ServiceRefusal {
        ServiceRefusal(
            403, "wrong_key",
            "the key is for \(role.rawValue), this needs one for "
                + needed.map(\.rawValue).joined(separator: " or "))
    }
    static let wrongDevice = ServiceRefusal(
        403, "wrong_key",
        "the token was issued to a device, and is good for what that device calls alone")
    static func unknownVendorApp(_ id: String) -> ServiceRefusal {
        ServiceRefusal(
            404, "unknown_app",
            "the app id \(shown(id.utf8)) is neither the key's app nor an alias of it: make it one "
                + "with \"tapline app alias\"")
    }
    static func wrongVendorApp(_ id: String) -> ServiceRefusal {
        ServiceRefusal(
            403, "wrong_app", "the app id \(shown(id.utf8)) is another app's than the key")
    }
    static var noKeyAndNoApp: ServiceRefusal {
        var refusal = missingKey
        refusal.message = "no key, and no app id in the body that would do instead"
        return refusal
    }
    static func unknownAlias(_ id: String) -> ServiceRefusal {
        ServiceRefusal(
            403, "unknown_app",
            "no key, and the app id \(shown(id.utf8)) is no alias: make it one with "
                + "\"tapline app alias --without-key\"")
    }
    static func aliasNeedsKey(_ id: String) -> ServiceRefusal {
        var refusal = missingKey
        refusal.message =
            "no key, and the app id \(shown(id.utf8)) does not do instead: let it with "
            + "\"tapline app alias --without-key\""
        return refusal
    }
    static func aliasesUnavailable(_ id: String) -> ServiceRefusal {
        ServiceRefusal(
            503, "keys_unavailable",
            "the app id \(shown(id.utf8)) is new here and could not be looked up",
            retryAfter: jittered(2))
    }
    static func tooLargeWithoutKey(limit: Int) -> ServiceRefusal {
        ServiceRefusal(
            413, "body_too_large", "body is more than \(limit) bytes, the limit without a key",
            details: [("limit", limit)])
    }
    static var keysUnavailable: ServiceRefusal {
        ServiceRefusal(
            503, "keys_unavailable", "the key is new here and could not be looked up",
            retryAfter: jittered(2))
    }
    package static var draining: ServiceRefusal {
        var refusal = ServiceRefusal(
            503, "stopping", "the daemon is stopping", retryAfter: jittered(2))
        refusal.closesConnection = true
        return refusal
    }

    static let gzipWithoutHeader = ServiceRefusal(
        400, "missing_content_encoding",
        "the body is gzip, but there is no header \"Content-Encoding: gzip\"")
    static func badGzip(_ reason: String) -> ServiceRefusal {
        ServiceRefusal(400, "bad_gzip", reason)
    }

    static func bodyTooLarge(_ settings: ServiceSettings, bytes: Int?) -> ServiceRefusal {
        let actual = bytes.map { "\($0)" } ?? "more than \(settings.bodyBytesMax)"
        return tooLarge(
            settings, "body_too_large",
            "body is \(actual) bytes, limit is \(settings.bodyBytesMax)",
            actual: bytes, limit: settings.bodyBytesMax)
    }
    static func inflatedTooLarge(_ settings: ServiceSettings) -> ServiceRefusal {
        tooLarge(
            settings, "body_too_large",
            "body inflates to more than the limit of \(settings.bodyBytesMax) bytes",
            actual: nil, limit: settings.bodyBytesMax)
    }
    static func tooManyLines(_ settings: ServiceSettings, lines: Int?) -> ServiceRefusal {
        let actual = lines.map { "\($0)" } ?? "more than \(settings.linesMax)"
        return tooLarge(
            settings, "too_many_lines", "body has \(actual) lines, limit is \(settings.linesMax)",
            actual: lines, limit: settings.linesMax)
    }
    private static func tooLarge(
        _ settings: ServiceSettings, _ code: String, _ message: String, actual: Int?, limit: Int
    ) -> ServiceRefusal {
        ServiceRefusal(
            413, code, message,
            details: (actual.map { [("actual", $0)] } ?? []) + [
                ("limit", limit), ("max_bytes", settings.bodyBytesMax),
                ("max_lines", settings.linesMax), ("max_line_bytes", settings.lineBytesMax),
            ])
    }

    static func tooMuchInFlight(bytes: Int, limit: Int) -> ServiceRefusal {
        ServiceRefusal(
            503, "too_much_in_flight", "bodies of \(bytes) bytes are being read, limit is \(limit)",
            details: [("actual", bytes), ("limit", limit)], retryAfter: jittered(1))
    }
}
