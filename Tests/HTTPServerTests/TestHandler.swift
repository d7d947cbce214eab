import Glibc
import HTTPServer
import HTTPTestClient
import Platform

/// Behaves as the path says.
final class TestHandler: HTTPHandler {
    struct State {
        var waiting: [Exchange] = []
        var streams: [ResponseStream] = []
        var aborted = 0
        var finished = 0
        var refused: [RefusedConnections] = []
    }
    let state = Sync.Monitor(State())

    func receivedHead(_ exchange: Exchange) {
        switch exchange.target.path {
        case "/now": exchange.respond(.json(status: 200, "{}"))
        case "/refuse": exchange.respond(.json(status: 401, "{\"refused\":true}"))
        case "/count": exchange.accept(body: Counter(exchange, self, .count))
        case "/cap": exchange.accept(body: Counter(exchange, self, .cap))
        case "/later": exchange.accept(body: Counter(exchange, self, .later))
        case "/large":
            exchange.respond(Response(status: 200, body: [UInt8](repeating: 65, count: 64 << 20)))
        case "/query":
            let text = exchange.target.queryItems.map { "\($0.name)=\($0.value)" }
            exchange.respond(Response(status: 200, body: Array(text.joined(separator: ";").utf8)))
        case "/header":
            let value = exchange.headers.first("x-test").map { Array($0) } ?? []
            exchange.respond(Response(status: 200, body: value))
        case "/stream":
            let stream = ResponseStream(bytesMax: 1 << 20)
            state.withLock { $0.streams.append(stream) }
            state.broadcast()
            exchange.respond(.stream(stream, headers: [("Content-Type", "text/plain")]))
        case "/deferred-refuse":
            exchange.deferHead()
            Thread.start(name: "defer") { exchange.respond(.json(status: 403, "{}")) }
        case "/deferred":
            exchange.deferHead()
            Thread.start(name: "defer") {
                exchange.accept(body: Counter(exchange, self, .count))
            }
        case "/thread": exchange.respond(.json(status: 200, "\(pthread_self())"))
        case "/silent": break
        default: exchange.respond(.json(status: 404, "{\"path\":\"\(exchange.target.path)\"}"))
        }
    }

    func response(to failure: HTTPFailure, of exchange: Exchange?) -> Response {
        .json(status: failure.status, "{\"failure\":\"\(failure)\"}")
    }

    func refused(_ connections: RefusedConnections) {
        state.withLock { $0.refused.append(connections) }
        state.broadcast()
    }

    /// Takes the oldest request that waits for its answer, once there is one.
    func takeWaiting() -> Exchange {
        state.wait(until: Clock.deadline(inMilliseconds: 60_000)) {
            $0.waiting.isEmpty ? nil : $0.waiting.removeFirst()
        }!
    }

    /// Takes the oldest stream, once there is one.
    func takeStream() -> ResponseStream {
        state.wait(until: Clock.deadline(inMilliseconds: 60_000)) {
            $0.streams.isEmpty ? nil : $0.streams.removeFirst()
        }!
    }

    func waitForAborts(_ count: Int) -> Bool {
        state.wait(until: Clock.deadline(inMilliseconds: 20_000)) {
            $0.aborted >= count ? true : nil
        } ?? false
    }
}

/// Counts a body and answers as it is told.
final class Counter: BodySink, @unchecked Sendable {
    enum Mode { case count, cap, later }
    let exchange: Exchange
    let handler: TestHandler
    let mode: Mode
    var count = 0

    init(_ exchange: Exchange, _ handler: TestHandler, _ mode: Mode) {
        self.exchange = exchange
        self.handler = handler
        self.mode = mode
    }

    func receive(_ bytes: Span<UInt8>) {
        count += bytes.count
        if mode == .cap, count > 10 { exchange.respond(.json(status: 413, "{\"cap\":10}")) }
    }

    func finished() {
        handler.state.withLock { state in
            state.finished += 1
            if mode == .later { state.waiting.append(exchange) }
        }
        handler.state.broadcast()
        if mode != .later { exchange.respond(.json(status: 200, "{\"bytes\":\(count)}")) }
    }

    func aborted() {
        handler.state.withLock { $0.aborted += 1 }
        handler.state.broadcast()
    }
}

/// A server on a free port, with a handler.
struct TestServer {
    let handler = TestHandler()
    let server: HTTPServer

    init(_ change: (inout HTTPServerConfiguration) -> Void = { _ in }) throws {
        var configuration = HTTPServerConfiguration()
        configuration.listen = "127.0.0.1:0"
        change(&configuration)
        server = try HTTPServer(configuration: configuration, handler: handler)
    }

    func client(source: UInt8 = 1) throws -> RawClient {
        try RawClient(port: server.port, source: source)
    }

    /// Waits until the server's counts are as wanted, for 20 s.
    func wait(until isReached: (HTTPStatistics) -> Bool) -> Bool {
        let deadline = Clock.deadline(inMilliseconds: 20_000)
        while !isReached(server.statistics) {
            if Clock.monotonic() > deadline { return false }
            Thread.pause(milliseconds: 1)
        }
        return true
    }

    /// One request on a connection of its own.
    func answer(to request: String) throws -> RawClient.Answer {
        let client = try client()
        client.send(request)
        return try client.answer()
    }
}

extension Thread {
    /// Lets the other threads run, inside a loop that waits for what cannot be subscribed to.
    static func pause(milliseconds: Int) {
        usleep(UInt32(milliseconds * 1000))
    }
}
