import HTTPServer
import Spool

/// The answers to what other modules refuse.
extension IngestService {
    static func refusal(_ error: SpoolError) -> ServiceRefusal {
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
        case .failed, .locked, .notThisSpool, .unsupportedVersion, .unreadable:
            // The cause is in the log; paths of this machine are nobody's business.
            ServiceRefusal(
                503, "spool_failed", "could not append to spool",
                retryAfter: ServiceRefusal.jittered(2))
        }
    }

    static func refusal(
        _ failure: HTTPFailure, _ settings: ServiceSettings
    ) -> ServiceRefusal {
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

    private static func closing(
        _ status: Int, _ code: String, _ message: String, _ details: [(name: String, value: Int)]
    ) -> ServiceRefusal {
        var refusal = ServiceRefusal(status, code, message, details: details)
        refusal.closesConnection = true
        return refusal
    }
}
