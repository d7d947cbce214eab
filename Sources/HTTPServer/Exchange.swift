internal import CMicrohttpd
import Platform

/// One request and its answer.
///
/// Everything but the answer is fixed. The answer may come from any thread, once; after the client
/// has gone it goes nowhere, which is no error.
@safe
package final class Exchange: Sendable {
    /// The method as sent, as `POST`.
    package let method: String
    /// The path and the query.
    package let target: RequestTarget
    /// The headers.
    package let headers: HeaderFields
    /// The client's address, without its port.
    package let remoteAddress: ClientAddress
    /// When the head was complete, on the wall clock.
    package let receivedAt: Microseconds
    /// What the headers say of the body.
    let check: HeadCheck

    @safe private struct State {
        var answer: Response?
        var sink: (any BodySink)?
        var isAnswered = false
        var isDeferred = false
        var isClosed = false
        // SAFETY: not nil only while libmicrohttpd has the connection suspended, and it keeps
        // suspended connections. So whoever takes it here may resume it, once, under the lock.
        var suspended: OpaquePointer?
    }
    private let state = Sync.Monitor(State())

    init(
        method: String, target: RequestTarget, headers: HeaderFields, check: HeadCheck,
        remoteAddress: ClientAddress, receivedAt: Microseconds
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.check = check
        self.remoteAddress = remoteAddress
        self.receivedAt = receivedAt
    }

    /// Answers the request. Only the first answer counts.
    package func respond(_ response: Response) {
        state.withLock { state in
            guard !state.isAnswered, !state.isClosed else { return }
            state.isAnswered = true
            state.answer = response
            Self.resume(&state)
        }
    }

    /// Takes the body, which then goes to `sink`.
    ///
    /// A body whose announced length is over the limit is refused in the handler's place.
    package func accept(body sink: any BodySink) {
        state.withLock { state in
            guard !state.isAnswered, !state.isClosed, state.sink == nil else { return }
            state.sink = sink
            Self.resume(&state)
        }
    }

    /// Leaves the decision for later: ``respond(_:)`` or ``accept(body:)`` follows, from any thread.
    package func deferHead() {
        state.withLock { $0.isDeferred = true }
    }

    /// Whether the client has gone, so that work on the answer may be saved.
    package var isClosed: Bool { state.withLock { $0.isClosed } }

    // What follows is for the server's threads.

    /// What comes next on the connection.
    enum Step {
        case respond(Response)
        case accept(any BodySink)
        case wait
        case unanswered
    }

    /// Decides what follows the head.
    ///
    /// - Parameters:
    ///   - connection: Is suspended when the handler deferred its decision.
    ///   - isStopping: Nothing is suspended any more.
    func stepAfterHead(_ connection: OpaquePointer, isStopping: () -> Bool) -> Step {
        state.withLock { state in
            if let answer = state.answer { return .respond(answer) }
            if let sink = state.sink {
                state.sink = nil
                return .accept(sink)
            }
            guard state.isDeferred, !isStopping() else { return .unanswered }
            unsafe Self.suspend(connection, &state)
            return .wait
        }
    }

    /// Decides what follows the end of the body.
    func stepAfterBody(_ connection: OpaquePointer, isStopping: () -> Bool) -> Step {
        state.withLock { state in
            if let answer = state.answer { return .respond(answer) }
            guard !isStopping() else { return .unanswered }
            unsafe Self.suspend(connection, &state)
            return .wait
        }
    }

    /// The answer, if there is one before the body's end.
    var answer: Response? { state.withLock { $0.answer } }

    /// Marks the exchange as over; no answer is taken any more.
    func close() {
        state.withLock { state in
            state.isClosed = true
            state.answer = nil
            state.sink = nil
        }
    }

    private static func suspend(_ connection: OpaquePointer, _ state: inout State) {
        unsafe state.suspended = connection
        unsafe MHD_suspend_connection(connection)
    }

    private static func resume(_ state: inout State) {
        guard let connection = unsafe state.suspended else { return }
        unsafe state.suspended = nil
        unsafe MHD_resume_connection(connection)
    }
}
