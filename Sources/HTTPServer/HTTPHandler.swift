/// What answers requests. Its calls come on the server's threads and must not block.
package protocol HTTPHandler: AnyObject, Sendable {
    /// A request's head is complete and well-formed.
    ///
    /// Exactly one of three follows, at once: ``Exchange/respond(_:)``, and the body is not read;
    /// ``Exchange/accept(body:)``; or ``Exchange/deferHead()``, and one of the other two later.
    func receivedHead(_ exchange: Exchange)

    /// The answer to a request that the server itself refuses; may be called on any thread.
    ///
    /// - Parameter exchange: Nil when the head was not read, or the connection is cut off.
    func response(to failure: HTTPFailure, of exchange: Exchange?) -> Response

    /// Connections were refused; called once a minute at most for each limit, on a thread of the server.
    func refused(_ connections: RefusedConnections)
}

/// Takes the body of one request, on one server thread, after it was handed over.
package protocol BodySink: AnyObject, Sendable {
    /// The next bytes of the body, without their transfer encoding.
    ///
    /// An answer may be given already; then no more bytes and no `finished()` follow.
    func receive(_ bytes: Span<UInt8>)

    /// The body is complete. ``Exchange/respond(_:)`` follows, now or later, on any thread.
    func finished()

    /// The body will never be complete: the client went away or was cut off. Nothing can be
    /// answered any more.
    func aborted()
}

/// A request that the server refuses before or instead of its handler.
package enum HTTPFailure: Equatable, Sendable {
    /// 400: the head is malformed, or could be read in two ways.
    case malformed(reason: String)
    /// 408: the head was not complete in time.
    case headTooSlow(limitMilliseconds: Int)
    /// 408: the body was not complete in time, or came too slowly.
    case bodyTooSlow(limitMilliseconds: Int)
    /// 413: the body as sent is over the limit; `bytes` is nil when its length was not announced.
    case bodyTooLarge(bytes: Int?, limit: Int)
    /// 431: request line and headers are over the limit.
    case headersTooLarge(bytes: Int, limit: Int)
    /// 500: the handler did not answer, which is a fault of the program.
    case unanswered
    /// 503: too many connections, in all or from this address.
    case tooManyConnections(limit: Int)
    /// 503: the server ends before the request was answered.
    case stopping

    /// The status code that belongs to the failure.
    package var status: Int {
        switch self {
        case .malformed: 400
        case .headTooSlow, .bodyTooSlow: 408
        case .bodyTooLarge: 413
        case .headersTooLarge: 431
        case .unanswered: 500
        case .tooManyConnections, .stopping: 503
        }
    }
}
