internal import CHTTPShim
internal import CMicrohttpd
import Glibc
import Platform

/// What the callbacks of libmicrohttpd work on, and what each of them does.
final class Engine: Sendable {
    let configuration: HTTPServerConfiguration
    let handler: any HTTPHandler
    let registry: ConnectionRegistry

    init(configuration: HTTPServerConfiguration, handler: any HTTPHandler) {
        self.configuration = configuration
        self.handler = handler
        self.registry = ConnectionRegistry(configuration)
    }

    /// Starts libmicrohttpd with one thread, which serves the connections that it is given.
    ///
    /// - Returns: Nil with `errno` set when it could not start. The engine must outlive it.
    func startWorker() -> OpaquePointer? {
        var options = unsafe tapline_http_options()
        unsafe options.connections = UInt32(registry.hardLimit + 64)
        // The headers and libmicrohttpd's list of them, about 72 bytes each, share a connection's
        // memory. All of it is cleared for each request, so more than needed costs: 9 us at 128 KiB.
        unsafe options.memory = configuration.headerBytesMax + 16 * 1024
        unsafe options.context = Unmanaged.passUnretained(self).toOpaque()
        unsafe options.connection_changed = connectionChanged
        unsafe options.request_line_read = requestLineRead
        unsafe options.request_proceeds = requestProceeds
        unsafe options.request_completed = requestCompleted
        return unsafe Thread.promptly { unsafe tapline_http_start(&options) }
    }

    static func reason(_ status: Int) -> String {
        // SAFETY: a constant string for every number.
        unsafe String(cString: MHD_get_reason_phrase_for(UInt32(status)))
    }

    // MARK: One request

    /// The head of a request, or a part of its body, or its end, or it was resumed.
    ///
    /// - Returns: False to close the connection.
    func proceed(
        _ raw: OpaquePointer, _ connection: Connection, method: UnsafePointer<CChar>,
        version: UnsafePointer<CChar>, body: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        switch connection.step {
        case .head:
            guard registry.move(connection, to: .waiting) else { return false }
            return unsafe receiveHead(raw, connection, method: method, version: version)
        case .headDeferred:
            return unsafe decideAfterHead(raw, connection)
        case .body:
            if !body.isEmpty { return unsafe receiveBody(body, connection) }
            guard registry.move(connection, to: .waiting) else { return false }
            connection.step = .answering
            connection.sink?.finished()
            connection.sink = nil
            return unsafe decideAfterBody(raw, connection)
        case .discarding(let response):
            if body.isEmpty { return unsafe queue(response, raw, connection) }
            guard registry.countBody(connection, body.count) else { return false }
            connection.discardLimit -= body.count
            if connection.discardLimit >= 0 { return true }
            connection.lingers = true
            registry.cut(
                connection, writing: response.serialized(reason: Self.reason(response.status)))
            return false
        case .answering:
            return unsafe decideAfterBody(raw, connection)
        case .answered:
            return true
        }
    }

    private func receiveHead(
        _ raw: OpaquePointer, _ connection: Connection, method: UnsafePointer<CChar>,
        version: UnsafePointer<CChar>
    ) -> Bool {
        if let limit = connection.limitExceeded {
            return unsafe refuse(.tooManyConnections(limit: limit), raw, connection)
        }
        let headerBytes = unsafe Int(tapline_http_header_bytes(raw))
        guard headerBytes <= configuration.headerBytesMax else {
            let limit = configuration.headerBytesMax
            return unsafe refuse(
                .headersTooLarge(bytes: headerBytes, limit: limit), raw, connection)
        }
        var fields = HeaderFields()
        // SAFETY: the callback runs only inside this call, and casts the context back.
        unsafe withUnsafeMutablePointer(to: &fields) { pointer in
            _ = unsafe MHD_get_connection_values_n(raw, .HEADER_KIND, headerFound, pointer)
        }
        let check: HeadCheck
        do {
            let isVersion11 = unsafe strcmp(version, "HTTP/1.1") == 0
            check = try HeadCheck(fields, isVersion11: isVersion11)
        } catch {
            return unsafe refuse(.malformed(reason: error.reason), raw, connection)
        }
        let exchange = Exchange(
            method: unsafe String(cString: method), target: RequestTarget(connection.target),
            headers: fields, check: check, remoteAddress: connection.address,
            receivedAt: Clock.now())
        registry.begin(exchange, on: connection)
        handler.receivedHead(exchange)
        return unsafe decideAfterHead(raw, connection)
    }

    private func decideAfterHead(_ raw: OpaquePointer, _ connection: Connection) -> Bool {
        guard let exchange = connection.exchange else { return false }
        let check = exchange.check
        switch unsafe exchange.stepAfterHead(raw, isStopping: { registry.isStopping }) {
        case .wait:
            connection.step = .headDeferred
            return true
        case .unanswered:
            let failure: HTTPFailure = registry.isStopping ? .stopping : .unanswered
            return unsafe refuse(failure, raw, connection)
        case .respond(let response):
            let length = check.contentLength ?? 0
            if check.expectsContinue && check.hasBody || length > configuration.discardBytesMax {
                // The body was not sent yet, or is not worth reading.
                return unsafe queueAtOnce(response, raw, connection)
            }
            return discard(response, connection, upTo: configuration.discardBytesMax)
        case .accept(let sink):
            if let length = check.contentLength, length > configuration.bodyBytesMax {
                sink.aborted()
                let limit = configuration.bodyBytesMax
                return unsafe refuse(
                    .bodyTooLarge(bytes: length, limit: limit), raw, connection)
            }
            guard registry.move(connection, to: .body) else {
                sink.aborted()
                return false
            }
            connection.step = .body
            connection.sink = sink
            return true
        }
    }

    private func receiveBody(_ body: UnsafeBufferPointer<UInt8>, _ connection: Connection) -> Bool {
        guard registry.countBody(connection, body.count) else { return false }
        guard let exchange = connection.exchange, let sink = connection.sink else { return false }
        let rest = configuration.bodyBytesMax - connection.bodyCount
        if rest < 0 {
            connection.sink = nil
            sink.aborted()
            let failure = HTTPFailure.bodyTooLarge(bytes: nil, limit: configuration.bodyBytesMax)
            return discard(
                handler.response(to: failure, of: exchange), connection,
                upTo: rest + configuration.discardBytesMax)
        }
        // SAFETY: libmicrohttpd keeps the bytes until this callback returns.
        sink.receive(unsafe body.span)
        guard let response = exchange.answer else { return true }
        connection.sink = nil
        return discard(response, connection, upTo: rest + configuration.discardBytesMax)
    }

    /// Reads the rest of a body that nobody wants, at most `limit` bytes, and then answers. Without
    /// a body the answer follows at once.
    private func discard(_ response: Response, _ connection: Connection, upTo limit: Int) -> Bool {
        connection.step = .discarding(response)
        connection.discardLimit = limit
        if connection.phase == .body { return true }
        return registry.move(connection, to: .body)
    }

    private func decideAfterBody(_ raw: OpaquePointer, _ connection: Connection) -> Bool {
        guard let exchange = connection.exchange else { return false }
        switch unsafe exchange.stepAfterBody(raw, isStopping: { registry.isStopping }) {
        case .respond(let response): return unsafe queue(response, raw, connection)
        case .wait: return true
        case .accept, .unanswered:
            return unsafe queue(
                handler.response(to: .stopping, of: exchange), raw, connection)
        }
    }

    /// Refuses a request whose body, if there is one, is not read.
    private func refuse(
        _ failure: HTTPFailure, _ raw: OpaquePointer, _ connection: Connection
    ) -> Bool {
        unsafe queueAtOnce(
            handler.response(to: failure, of: connection.exchange), raw, connection)
    }

    /// Answers before the body, and ends the connection after the answer.
    private func queueAtOnce(
        _ response: Response, _ raw: OpaquePointer, _ connection: Connection
    ) -> Bool {
        var response = response
        response.closesConnection = true
        connection.lingers = true
        return unsafe queue(response, raw, connection)
    }

    private func queue(
        _ response: Response, _ raw: OpaquePointer, _ connection: Connection
    ) -> Bool {
        guard registry.move(connection, to: .writing) else { return false }
        connection.step = .answered
        let answer =
            if let stream = response.stream {
                unsafe answer(from: stream, raw, connection)
            } else {
                unsafe Self.answer(from: response.body)
            }
        guard let answer = unsafe answer else { return false }
        defer { unsafe MHD_destroy_response(answer) }
        for (name, value) in response.headers {
            _ = unsafe MHD_add_response_header(answer, name, value)
        }
        if response.closesConnection || registry.isDraining {
            _ = unsafe MHD_add_response_header(answer, "Connection", "close")
        }
        return unsafe MHD_queue_response(raw, UInt32(response.status), answer) == .YES
    }

    private static func answer(from body: [UInt8]) -> OpaquePointer? {
        // SAFETY: MUST_COPY lets the buffer end with the call; an empty one may be null.
        unsafe body.withUnsafeBytes { bytes in
            unsafe MHD_create_response_from_buffer(
                bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                .RESPMEM_MUST_COPY)
        }
    }

    private func answer(
        from stream: ResponseStream, _ raw: OpaquePointer, _ connection: Connection
    ) -> OpaquePointer? {
        registry.begin(stream, on: connection)
        let reader = unsafe Unmanaged.passRetained(
            StreamReader(stream, raw, connection, registry))
        // SAFETY: the reference goes with the response, which gives it back to `streamReleased`.
        let answer = unsafe MHD_create_response_from_callback(
            UInt64.max, StreamReader.blockBytes, streamRead, reader.toOpaque(), streamReleased)
        if unsafe answer == nil { unsafe reader.release() }
        return unsafe answer
    }

    /// The request is over: answered, or its connection is lost.
    func complete(_ connection: Connection) {
        connection.exchange?.close()
        connection.stream?.close()
        if let sink = connection.sink {
            connection.sink = nil
            sink.aborted()
        }
        connection.step = .head
        _ = registry.move(connection, to: .idle)
    }
}
