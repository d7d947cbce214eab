import HTTPServer
import Platform

/// The answer to a body whose lines were judged.
enum ServiceAnswer {
    /// Writes the answer.
    ///
    /// - Parameters:
    ///   - body: What was judged, and is durable.
    ///   - stored: What the database made of it, under `?ack=stored`.
    ///   - isStrict: Whether rejected lines make it a 400; the rest is durable all the same.
    static func response(to body: ParsedBody, stored: StoredCounts?, isStrict: Bool) -> Response {
        let isRefused = isStrict && body.rejected > 0
        var json = "{"
        if isRefused {
            let refusal = ServiceRefusal(
                400, "rejected_lines",
                "\(body.rejected) of \(body.received) lines rejected; the others are stored")
            json += refusal.errorMember + ","
        }
        json += "\"received\":\(body.received)"
        json += ",\"accepted\":\(stored?.accepted ?? body.accepted)"
        if let stored {
            json += ",\"duplicates\":\(stored.duplicates),\"conflicts\":\(stored.conflicts)"
            json += ",\"dead_lettered\":\(stored.deadLettered)"
        }
        json += ",\"rejected\":\(body.rejected),\"errors\":["
        for (index, error) in body.errors.enumerated() {
            if index > 0 { json += "," }
            json += member(error)
        }
        json += "]"
        if body.rejected > body.errors.count { json += ",\"errors_truncated\":true" }
        json += "}"
        return .json(status: isRefused ? 400 : 200, json)
    }

    private static func member(_ error: ParsedBody.LineError) -> String {
        let field = error.rejection.fieldName.map { "\"\($0)\"" } ?? "null"
        return "{\"line\":\(error.line),\"code\":\"\(error.rejection.code.rawValue)\","
            + "\"field\":\(field),\"message\":\(JSONString.quoted(error.rejection.message))}"
    }
}
