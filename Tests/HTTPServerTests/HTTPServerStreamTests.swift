import HTTPServer
import HTTPTestClient
import Platform
import Testing

/// Answers that are written while the client reads them.
@Suite struct HTTPServerStreamTests {
    static let get = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test func piecesArriveAsTheyAreWritten() throws {
        let server = try TestServer()
        let client = try server.client()
        client.send(Self.get)
        let stream = server.handler.takeStream()
        let answer = try client.answer()
        #expect(answer.status == 200 && answer.headers["transfer-encoding"] == "chunked")
        for index in 0..<50 {
            #expect(stream.tryWrite(Array("piece \(index)".utf8)))
            #expect(try client.chunk() == "piece \(index)")
        }
        stream.finish()
        #expect(try client.chunk() == "")
        #expect(!stream.isOpen && !stream.tryWrite([65]))
        // The connection goes on.
        client.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().status == 200)
        server.server.stop(drainSeconds: 1)
    }

    @Test func whatWasWrittenBeforeTheEndIsSent() throws {
        let server = try TestServer()
        let client = try server.client()
        client.send(Self.get)
        let stream = server.handler.takeStream()
        stream.tryWrite([UInt8](repeating: 65, count: 300_000))
        stream.finish()
        _ = try client.answer()
        var count = 0
        while case let chunk = try client.chunk(), !chunk.isEmpty { count += chunk.utf8.count }
        #expect(count == 300_000)
        server.server.stop(drainSeconds: 1)
    }

    @Test func aClientOfHTTP10ReadsToTheEndOfTheConnection() throws {
        let server = try TestServer()
        let client = try server.client()
        client.send("GET /stream HTTP/1.0\r\n\r\n")
        let stream = server.handler.takeStream()
        stream.tryWrite(Array("plain".utf8))
        stream.finish()
        #expect(try client.readToEnd().hasSuffix("\r\n\r\nplain"))
        server.server.stop(drainSeconds: 1)
    }

    @Test func aHeadRequestEndsTheStreamAtOnce() throws {
        let server = try TestServer()
        let client = try server.client()
        client.send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        let stream = server.handler.takeStream()
        #expect(try client.answer(toHead: true).status == 200)
        #expect(server.wait { $0.requestsInFlight == 0 })
        #expect(!stream.isOpen)
        server.server.stop(drainSeconds: 1)
    }

    @Test func aClientThatHasGoneClosesTheStream() throws {
        let server = try TestServer()
        for isReset in [false, true] {
            let client = try server.client()
            client.send(Self.get)
            let stream = server.handler.takeStream()
            _ = try client.answer()
            if isReset { client.reset() } else { client.close() }
            while stream.isOpen {
                stream.tryWrite(Array("anybody there?".utf8))
                Thread.pause(milliseconds: 5)
            }
            #expect(server.wait { $0.connections == 0 })
        }
        server.server.stop(drainSeconds: 1)
    }

    @Test func aSlowClientBoundsWhatIsKeptAndIsCutOff() throws {
        let server = try TestServer { $0.writeTimeoutMilliseconds = 200 }
        let client = try RawClient(port: server.server.port, receiveBufferBytes: 4096)
        client.send(Self.get)
        let stream = server.handler.takeStream()
        let piece = [UInt8](repeating: 65, count: 100_000)
        // The kernel takes some megabytes; then pieces are refused, and at last the client is.
        while stream.tryWrite(piece) { Thread.pause(milliseconds: 1) }
        while stream.isOpen { Thread.pause(milliseconds: 5) }
        #expect(server.server.statistics.connectionsCut == 1)
        server.server.stop(drainSeconds: 1)
    }

    @Test func aStreamWithNothingToSayIsNotCutOff() throws {
        let server = try TestServer { configuration in
            configuration.writeTimeoutMilliseconds = 40
            configuration.idleTimeoutMilliseconds = 40
        }
        let client = try server.client()
        client.send(Self.get)
        let stream = server.handler.takeStream()
        _ = try client.answer()
        for index in 0..<3 {
            Thread.pause(milliseconds: 150)
            #expect(stream.tryWrite(Array("\(index)".utf8)))
            #expect(try client.chunk() == "\(index)")
        }
        server.server.stop(drainSeconds: 1)
    }

    @Test func stopEndsOpenStreams() throws {
        let server = try TestServer()
        let clients = try (0..<20).map { _ in try server.client() }
        for client in clients { client.send(Self.get) }
        let streams = clients.map { _ in server.handler.takeStream() }
        for client in clients { _ = try client.answer() }
        // One does not read, and is not waited for.
        let stalled = try RawClient(port: server.server.port, receiveBufferBytes: 4096)
        stalled.send(Self.get)
        let full = server.handler.takeStream()
        let piece = [UInt8](repeating: 65, count: 100_000)
        while full.tryWrite(piece) { Thread.pause(milliseconds: 1) }
        let started = Clock.monotonic()
        server.server.stop(drainSeconds: 60)
        #expect(Clock.monotonic() - started < 20_000_000)
        for client in clients { #expect(try client.chunk() == "") }
        for stream in streams + [full] { #expect(!stream.isOpen && !stream.tryWrite([65])) }
    }

    @Test func manyThreadsMayWriteWhileClientsComeAndGo() throws {
        let server = try TestServer()
        let isDone = Sync.Monitor(false)
        let writers = (0..<3).map { _ in
            Thread.start(name: "writer") { [handler = server.handler] in
                while !isDone.withLock({ $0 }) {
                    for stream in handler.state.withLock({ $0.streams }) {
                        stream.tryWrite(Array("x".utf8))
                    }
                    Thread.pause(milliseconds: 1)
                }
            }
        }
        for round in 0..<100 {
            let client = try server.client()
            client.send(Self.get)
            _ = try client.answer()
            for _ in 0..<3 { #expect(try !client.chunk().isEmpty) }
            if round % 2 == 0 { client.reset() }
        }
        server.server.stop(drainSeconds: 5)
        isDone.withLock { $0 = true }
        for writer in writers { writer.join() }
    }
}
