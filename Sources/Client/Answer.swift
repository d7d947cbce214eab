/// One complaint of the server about a line.
package struct LineError: Equatable, Sendable {
    /// The physical line of the body, from 1.
    package let line: Int
    /// Why, in one word.
    package let code: String
    /// The field, where it is one.
    package let field: String?
    /// Why, in a sentence.
    package let message: String
}

/// What an answer means for its body.
package enum Outcome: Equatable, Sendable {
    /// The body was read; its good lines are durable.
    case verdicts(received: Int, accepted: Int, rejected: Int, errors: [LineError])
    /// Send it again, not before so many seconds where the server says.
    case retry(reason: String, afterSeconds: Double?)
    /// Too large: send it in halves.
    case tooLarge(reason: String)
    /// Never; `stops` when no other body will fare better.
    case refused(reason: String, stops: Bool)
}

/// Reads an answer.
///
/// - Parameters:
///   - status: The HTTP status, or 0 when no whole answer came.
///   - retryAfterSeconds: The header's seconds, 0 for none.
///   - bytes: The answer's body.
///   - transportError: Why there was no answer.
package func outcome(
    status: Int, retryAfterSeconds: Int, bytes: [UInt8], transportError: String
) -> Outcome {
    if status == 0 { return .retry(reason: transportError, afterSeconds: nil) }
    let json = JSONValue.parse(bytes)
    if status == 200 {
        guard let json, let received = json["received"]?.int, let accepted = json["accepted"]?.int,
            let rejected = json["rejected"]?.int
        else {
            return .refused(
                reason: "answered 200, but not in the words of tapline", stops: true)
        }
        let errors = (json["errors"]?.array ?? []).compactMap { error in
            error["line"]?.int.map { line in
                LineError(
                    line: line, code: error["code"]?.string ?? "rejected",
                    field: error["field"]?.string, message: error["message"]?.string ?? "")
            }
        }
        return .verdicts(
            received: received, accepted: accepted, rejected: rejected, errors: errors)
    }
    let reason = "\(status) \(message(in: json) ?? "without a reason")"
    switch status {
    case 408, 429, 500...599:
        // Some servers set only one of the two; the longer one is safe for both.
        let seconds = max(Double(retryAfterSeconds), json?["retry_after"]?.number ?? 0)
        return .retry(reason: reason, afterSeconds: seconds > 0 ? seconds : nil)
    case 413: return .tooLarge(reason: reason)
    case 400: return .refused(reason: reason, stops: false)
    default: return .refused(reason: reason, stops: true)
    }
}

/// The server's words: `message`, `error` or `error.message`.
private func message(in json: JSONValue?) -> String? {
    json?["message"]?.string ?? json?["error"]?["message"]?.string ?? json?["error"]?.string
        ?? json?["detail"]?.string
}

/// The pause before another try.
///
/// Doubles from a quarter of a second to `longestSeconds`, and takes a random part between half and
/// all of it, so that clients cut off together do not come back together. What the server asks
/// for is the least, with up to a tenth more.
///
/// - Parameters:
///   - attempt: Tries so far, from 1.
///   - retryAfterSeconds: What the server asked for.
///   - random: In 0 ..< 1.
///   - longestSeconds: What it grows to; the server may ask for longer.
/// - Returns: Microseconds.
package func backoff(
    attempt: Int, retryAfterSeconds: Double?, random: Double, longestSeconds: Double = 30
) -> Int64 {
    let own = min(0.25 * Double(1 << min(attempt - 1, 10)), longestSeconds) * (0.5 + random / 2)
    guard let asked = retryAfterSeconds else { return Int64(own * 1_000_000) }
    return Int64(min(asked, 1e6) * (1 + random / 10) * 1_000_000)
}
