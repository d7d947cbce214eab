import HTTPServer
import HTTPTestClient
import Platform
import Testing

@Suite struct HTTPServerFaultTests {
    /// libmicrohttpd does not notice it where the end comes with the last bytes.
    @Test func clientsThatComeAndGoAtOnceAreNoticed() throws {
        let server = try TestServer()
        for _ in 0..<200 {
            let client = try server.client()
            client.send("POST /none HTTP/1.1\r\nHo")
            client.close()
        }
        #expect(server.wait { $0.connectionsAccepted == 200 && $0.connections == 0 })
    }

    /// A client that is refused and goes on sending, or just stays, is waited for a while. That must not
    /// make all the others be looked at more often: it was most of what abuse cost once.
    @Test func aClientThatLingersMakesNoWorkForOthers() throws {
        let server = try TestServer { $0.discardBytesMax = 10 }
        let idle = try (0..<300).map { _ in try server.client() }
        #expect(server.wait { $0.connections == 300 })
        let started = Clock.monotonic()
        let before = server.server.statistics.looks
        let refused = try server.client()
        refused.send("POST /none HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n")
        #expect(try refused.answer().status == 404)
        // Each is looked at seven times in its first second, and at each tick.
        #expect(server.wait { $0.looks >= before + 10 * 301 })
        let ticks = Int((Clock.monotonic() - started) / 500_000) + 2
        #expect(server.server.statistics.looks - before <= (7 + ticks) * 301)
        withExtendedLifetime((idle, refused)) {}
    }

    static let post = "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"

    // MARK: Slow clients; each waits for the server to close, and the test would fail after 20 s.

    @Test func aClientThatSendsNothingIsCutOff() throws {
        let server = try TestServer { $0.headerTimeoutMilliseconds = 50 }
        #expect(try server.client().readToEnd() == "")
        #expect(server.server.statistics.connectionsCut == 1)
        server.server.stop(drainSeconds: 1)
    }

    @Test func aSlowHeadIsAnswered408() throws {
        let server = try TestServer { $0.headerTimeoutMilliseconds = 50 }
        let client = try server.client()
        client.send("GET /now HTTP/1.1\r\nHost: a\r\nX-Slow")
        let text = try client.readToEnd()
        #expect(text.hasPrefix("HTTP/1.1 408 "))
        #expect(text.contains("headTooSlow(limitMilliseconds: 50)"))
        server.server.stop(drainSeconds: 1)
    }

    @Test func aHeadThatDripsIsCutOff() throws {
        let server = try TestServer { $0.headerTimeoutMilliseconds = 100 }
        let client = try server.client()
        client.send("GET /now HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        // Activity must not prolong it. The loop ends when the server has closed.
        while client.send("x") { Thread.pause(milliseconds: 5) }
        #expect(server.server.statistics.connectionsCut == 1)
        server.server.stop(drainSeconds: 1)
    }

    @Test func aBodyOverItsDeadlineIsAnswered408() throws {
        let server = try TestServer { $0.bodyTimeoutMilliseconds = 50 }
        let client = try server.client()
        client.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        #expect(try client.readToEnd().hasPrefix("HTTP/1.1 408 "))
        #expect(server.handler.waitForAborts(1))
        server.server.stop(drainSeconds: 1)
    }

    @Test func aBodyBelowTheMinimumRateIsCutOff() throws {
        let server = try TestServer { configuration in
            configuration.bodyGraceMilliseconds = 50
            configuration.bodyBytesPerSecondMin = 1_000_000
        }
        let client = try server.client()
        client.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        while client.send("x") { Thread.pause(milliseconds: 5) }
        #expect(server.handler.waitForAborts(1))
        server.server.stop(drainSeconds: 1)
    }

    @Test func anIdleKeepAliveIsClosed() throws {
        let server = try TestServer { $0.idleTimeoutMilliseconds = 50 }
        let client = try server.client()
        client.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().status == 200)
        #expect(try client.readToEnd() == "")
        server.server.stop(drainSeconds: 1)
    }

    @Test func aClientThatNeverReadsItsAnswerIsCutOff() throws {
        let server = try TestServer { $0.writeTimeoutMilliseconds = 100 }
        let client = try RawClient(port: server.server.port, receiveBufferBytes: 4096)
        client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(server.wait { $0.connectionsCut == 1 && $0.connections == 0 })
        withExtendedLifetime(client) {}
        server.server.stop(drainSeconds: 1)
    }

    @Test func waitingForTheHandlerHasNoTimeout() throws {
        let server = try TestServer { configuration in
            configuration.headerTimeoutMilliseconds = 20
            configuration.bodyTimeoutMilliseconds = 20
            configuration.idleTimeoutMilliseconds = 20
        }
        let client = try server.client()
        client.send(Self.post)
        let exchange = server.handler.takeWaiting()
        // Another connection that is cut off shows that the timeouts have passed.
        _ = try server.client().readToEnd()
        exchange.respond(.json(status: 200, "{}"))
        #expect(try client.answer().status == 200)
        server.server.stop(drainSeconds: 1)
    }

    // MARK: Clients that go away

    @Test func aClientThatGoesAwayInsideItsBodyIsNoticed() throws {
        let server = try TestServer()
        let client = try server.client()
        client.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        client.close()
        #expect(server.handler.waitForAborts(1))
        let chunked = try server.client()
        chunked.send("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
        #expect(server.wait { $0.requests == 2 })
        chunked.reset()
        #expect(server.handler.waitForAborts(2))
        #expect(server.handler.state.withLock { $0.finished } == 0)
        server.server.stop(drainSeconds: 1)
    }

    @Test func clientsThatGoAwayWhileSuspendedHarmNobody() throws {
        let server = try TestServer()
        for round in 0..<50 {
            let client = try server.client()
            client.send(Self.post)
            let exchange = server.handler.takeWaiting()
            if round % 2 == 0 { client.reset() } else { client.close() }
            exchange.respond(.json(status: 200, "{}"))
            exchange.respond(.json(status: 500, "{}"))
        }
        let client = try server.client()
        client.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().status == 200)
        client.close()
        #expect(server.wait { $0.connections == 0 })
        server.server.stop(drainSeconds: 1)
    }

    // MARK: Limits

    @Test func connectionsOverTheLimitAreAnswered503() throws {
        let server = try TestServer { $0.connectionsMax = 3 }
        let request = "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
        let clients = try (0..<3).map { _ in try server.client() }
        for client in clients {
            client.send(request)
            #expect(try client.answer().status == 200)
        }
        let fourth = try server.client()
        fourth.send(request)
        #expect(try fourth.answer().status == 503)
        #expect(try fourth.readToEnd() == "")
        // Room made is room to use.
        clients[0].close()
        #expect(server.wait { $0.connections == 2 })
        let fifth = try server.client()
        fifth.send(request)
        #expect(try fifth.answer().status == 200)
        server.server.stop(drainSeconds: 1)
    }

    @Test func connectionsFarOverTheLimitAreClosed() throws {
        let server = try TestServer { $0.connectionsMax = 1 }
        let clients = try (0..<17).map { _ in try server.client() }
        #expect(server.wait { $0.connections == 17 })
        let refused = try server.client()
        #expect(throws: (any Error).self) { try refused.answer() }
        withExtendedLifetime(clients) {}
        server.server.stop(drainSeconds: 1)
    }

    @Test func oneAddressHasItsOwnLimit() throws {
        let server = try TestServer { $0.connectionsPerAddressMax = 1 }
        let first = try server.client()
        first.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try first.answer().status == 200)
        let second = try server.client()
        second.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        let answer = try second.answer()
        #expect(answer.status == 503)
        #expect(answer.body.contains("tooManyConnections(limit: 1)"))
        server.server.stop(drainSeconds: 1)
    }

    /// Silent connections beyond an address's limit once took the places of all.
    @Test func whoIsOverTheLimitOfAnAddressTakesNoPlaceOfOthers() throws {
        let server = try TestServer { configuration in
            configuration.connectionsMax = 40
            configuration.connectionsPerAddressMax = 10
        }
        let greedy = try (0..<100).map { _ in try server.client(source: 2) }
        #expect(server.wait { $0.connections == 14 && $0.connectionsRefused[.address] == 90 })
        let other = try server.client()
        other.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try other.answer().status == 200)
        // They are free again when those who had them leave.
        for client in greedy { client.close() }
        #expect(server.wait { $0.connections == 1 })
        let late = try server.client(source: 2)
        late.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try late.answer().status == 200)
        server.server.stop(drainSeconds: 1)
    }

    // MARK: The end

    @Test func stopLetsRequestsUnderWayFinish() throws {
        let server = try TestServer()
        let idle = try server.client()
        idle.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try idle.answer().status == 200)
        let client = try server.client()
        client.send(Self.post)
        let exchange = server.handler.takeWaiting()
        let stopper = Thread.start(name: "stop") { [server = server.server] in
            server.stop(drainSeconds: 20)
        }
        // The idle connection is closed first, which shows that the server drains.
        #expect(try idle.readToEnd() == "")
        exchange.respond(.json(status: 200, "{\"late\":true}"))
        let answer = try client.answer()
        #expect(answer.body == "{\"late\":true}")
        #expect(answer.headers["connection"] == "close")
        stopper.join()
        #expect(throws: RawClient.Failure.self) { try server.client() }
    }

    @Test func stopAnswersWhatTheHandlerDoesNot() throws {
        let server = try TestServer()
        let clients = try (0..<10).map { _ in try server.client() }
        for client in clients { client.send(Self.post) }
        let exchanges = clients.map { _ in server.handler.takeWaiting() }
        let unfinished = try server.client()
        unfinished.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        #expect(server.wait { $0.connections == 11 })
        server.server.stop(drainSeconds: 0)
        for client in clients { #expect(try client.answer().status == 503) }
        #expect(try unfinished.readToEnd() == "")
        for exchange in exchanges {
            #expect(exchange.isClosed)
            exchange.respond(.json(status: 200, "{}"))
        }
        server.server.stop(drainSeconds: 1)
    }

    @Test func aPortInUseIsOneClearError() throws {
        let server = try TestServer()
        let address = "127.0.0.1:\(server.server.port)"
        #expect(throws: HTTPServerError.addressInUse(address)) {
            try TestServer { $0.listen = address }
        }
        #expect(
            "\(HTTPServerError.addressInUse(address))"
                == "could not listen on \"\(address)\": address already in use")
        server.server.stop(drainSeconds: 1)
        // A stopped server has left its port.
        let again = try TestServer { $0.listen = address }
        again.server.stop(drainSeconds: 1)
    }

    @Test(arguments: ["", "8080", "127.0.0.1", "127.0.0.1:", "a:b", "::1:80", "[]:80", "a:65536"])
    func anAddressWithoutAPortIsRefused(address: String) {
        #expect(throws: HTTPServerError.malformedAddress(address)) {
            try TestServer { $0.listen = address }
        }
    }

    @Test(arguments: ["[::]:0", "0.0.0.0:0", ":0", "localhost:0"])
    func otherAddressesAreListenedOn(address: String) throws {
        let server = try TestServer { $0.listen = address }
        if address != "localhost:0" {
            let client = try server.client()
            client.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try client.answer().status == 200)
        }
        server.server.stop(drainSeconds: 1)
    }
}
