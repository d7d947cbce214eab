import Event
import Glibc
import Gzip
import HTTPServer
import HTTPTestClient
import Ingest
import Platform
import Spool
import Testing

@Suite struct ServiceLimitTests {
    // MARK: Gzip

    @Test func everyTruncationOfGzipIsA400AndStoresNothing() throws {
        let fixture = try ServiceFixture()
        let body = try Gzip.compress(Array(ServiceTests.two.utf8))
        let client = try fixture.client()
        for count in 0..<body.count {
            client.send(
                ServiceFixture.request(
                    Array(body.prefix(count)), headers: ["Content-Encoding: gzip"]))
            let answer = try client.answer()
            #expect(answer.status == 400)
            #expect(answer.body.hasPrefix("{\"error\":{\"code\":\"bad_gzip\""))
        }
        #expect(try fixture.records().isEmpty)
        client.send(ServiceFixture.request(body, headers: ["Content-Encoding: gzip"]))
        #expect(try client.answer().body == ServiceTests.all(2))
        #expect(try fixture.records().count == 1)
    }

    @Test func everyFlippedByteOfGzipIsRefusedOrHarmless() throws {
        let fixture = try ServiceFixture()
        let body = try Gzip.compress(Array(ServiceTests.two.utf8))
        let client = try fixture.client()
        for index in body.indices {
            var damaged = body
            damaged[index] ^= 0xFF
            client.send(ServiceFixture.request(damaged, headers: ["Content-Encoding: gzip"]))
            let answer = try client.answer()
            #expect(
                answer.status == 400 || answer.body == ServiceTests.all(2), "byte \(index)")
        }
    }

    @Test func membersMayMeetInsideALine() throws {
        let fixture = try ServiceFixture()
        let text = Array(ServiceTests.two.utf8)
        let client = try fixture.client()
        for cut in 0...text.count {
            let body =
                try Gzip.compress(Array(text.prefix(cut)))
                + Gzip.compress(Array(text.dropFirst(cut)))
            client.send(ServiceFixture.request(body, headers: ["Content-Encoding: gzip"]))
            #expect(try client.answer().body == ServiceTests.all(2), "cut \(cut)")
        }
    }

    @Test func gzipIsNamedInAnyCaseAndMustBeGzip() throws {
        let fixture = try ServiceFixture()
        let body = try Gzip.compress(Array(ServiceTests.two.utf8))
        for name in ["GZIP", "x-gzip", "X-GZip"] {
            let answer = try fixture.post(body, headers: ["Content-Encoding: \(name)"])
            #expect(answer.body == ServiceTests.all(2))
        }
        let unnamed = try fixture.post(body)
        #expect(unnamed.status == 400)
        #expect(unnamed.body.contains("\"code\":\"missing_content_encoding\""))
        let plain = try fixture.postGzip(Array(ServiceTests.two.utf8))
        #expect(plain.status == 400)
        #expect(plain.body.contains("\"code\":\"bad_gzip\""))
        let garbage = try fixture.postGzip(body + [1])
        #expect(garbage.status == 400)
        #expect(try fixture.postGzip(body + [0, 0, 0]).body == ServiceTests.all(2))
        #expect(try fixture.records().count == 4)
    }

    @Test func aBombIsA413AndTheConnectionStays() throws {
        let fixture = try ServiceFixture()
        let bomb = try Gzip.compress([UInt8](repeating: 0x20, count: 200 << 20), level: 9)
        let client = try fixture.client()
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(Array((String(bomb.count, radix: 16) + "\r\n").utf8) + bomb)
        client.send("\r\n0\r\n\r\n")
        let answer = try client.answer()
        #expect(answer.status == 413)
        #expect(answer.body.contains("\"max_bytes\":10485760"))
        client.send("GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(try client.answer().status == 200)
        #expect(fixture.metric("tapline_in_flight_bytes") == "0")
    }

    // MARK: Sizes

    @Test func theLimitOfBytesItselfFits() throws {
        let lines = String(repeating: goodLine(1) + "\n", count: 20)
        let fixture = try ServiceFixture { $0.bodyBytesMax = lines.utf8.count }
        #expect(try fixture.post(lines).body == ServiceTests.all(20))
        #expect(try fixture.postGzip(Gzip.compress(Array(lines.utf8))).status == 200)
        #expect(try fixture.post(lines + "\n").status == 413)
        #expect(try fixture.postGzip(Gzip.compress(Array((lines + "\n").utf8))).status == 413)
    }

    @Test func theLimitOfLinesItselfFits() throws {
        let fixture = try ServiceFixture { $0.linesMax = 5 }
        let lines = (0..<5).map { goodLine($0) + "\n\n" }.joined()
        #expect(try fixture.post(lines).body == ServiceTests.all(5))
        let refused = try fixture.post(lines + "x")
        #expect(refused.status == 413)
        #expect(refused.body.contains("\"code\":\"too_many_lines\""))
        #expect(refused.body.contains("\"max_lines\":5"))
        let array = "[" + (0..<6).map(goodLine).joined(separator: ",") + "]"
        #expect(
            try fixture.post(array, headers: ["Content-Type: application/json"]).status == 413)
        #expect(try fixture.records().count == 1)
    }

    @Test func aLongLineIsRejectedAlone() throws {
        let fixture = try ServiceFixture { $0.lineBytesMax = 200 }
        func line(_ count: Int) -> String {
            let start = "{\"type\":\"clicked\",\"message_uid\":\"long\",\"x\":\""
            return start + String(repeating: "y", count: count - start.utf8.count - 2) + "\"}"
        }
        let answer = try fixture.post([goodLine(1), line(200), line(201)].joined(separator: "\n"))
        #expect(
            answer.body
                == "{\"received\":3,\"accepted\":2,\"rejected\":1,\"errors\":["
                + ServiceTests.error(
                    3, "line_too_long", nil, "line is 201 bytes, limit is 200") + "]}")
    }

    @Test func errorsAreListedUpToTheLimit() throws {
        let fixture = try ServiceFixture()
        let hundred = try fixture.post(String(repeating: "x\n", count: 100))
        #expect(!hundred.body.contains("errors_truncated"))
        let more = try fixture.post(String(repeating: "x\n", count: 101))
        #expect(more.body.hasPrefix("{\"received\":101,\"accepted\":0,\"rejected\":101,"))
        #expect(more.body.hasSuffix("],\"errors_truncated\":true}"))
        #expect(more.body.contains("{\"line\":100,") && !more.body.contains("{\"line\":101,"))
    }

    @Test func bytesInFlightAreLimitedOverAllBodies() throws {
        let fixture = try ServiceFixture { $0.inFlightBytesMax = 1000 }
        let first = try fixture.client()
        let half = String(repeating: " ", count: 600)
        first.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                + "Content-Length: 700\r\n\r\n\(half)")
        while fixture.metric("tapline_in_flight_bytes") != "600" { sched_yield() }
        let second = try fixture.post(half)
        #expect(second.status == 503)
        #expect(second.body.contains("\"code\":\"too_much_in_flight\""))
        try ServiceTests.expectRetry(second)
        first.send(String(repeating: " ", count: 100))
        #expect(try first.answer().body == ServiceTests.all(0))
        #expect(try fixture.post(half).status == 200)
        #expect(fixture.metric("tapline_in_flight_bytes") == "0")
    }

    @Test func aClientThatLeavesGivesItsBytesBack() throws {
        let fixture = try ServiceFixture()
        let client = try fixture.client()
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                + "Content-Length: 700\r\n\r\nxxx")
        while fixture.metric("tapline_in_flight_bytes") != "3" { sched_yield() }
        client.close()
        while fixture.metric("tapline_in_flight_bytes") != "0" { sched_yield() }
    }

    @Test func aSlowBodyIsA408() throws {
        let fixture = try ServiceFixture(http: { $0.bodyTimeoutMilliseconds = 50 })
        let client = try fixture.client()
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                + "Content-Length: 700\r\n\r\nxxx")
        let text = try client.readToEnd()
        #expect(text.hasPrefix("HTTP/1.1 408 "))
        #expect(text.contains("\"code\":\"body_too_slow\""))
    }

    // MARK: The spool

    @Test func aFullSpoolIsA503UntilThereIsRoom() throws {
        var options = SpoolOptions()
        options.bytesMax = 2000
        let fixture = try ServiceFixture(options: options)
        var accepted = 0
        var answer = try fixture.post(ServiceTests.two)
        while answer.status == 200 {
            accepted += 1
            answer = try fixture.post(ServiceTests.two)
        }
        #expect(answer.status == 503)
        #expect(answer.body.contains("\"code\":\"spool_full\""))
        try ServiceTests.expectRetry(answer)
        #expect(try fixture.records().count == accepted)
        #expect(try fixture.get("/readyz").status == 503)
        #expect(try fixture.get("/healthz").status == 200)
        #expect(fixture.metric("tapline_lines_accepted_total") == "\(2 * accepted)")
    }

    @Test(arguments: [(ENOSPC, 507, "disk_full"), (EIO, 503, "spool_failed")])
    func aFailingDiskIsNeverA200(code: Int32, status: Int, word: String) throws {
        let isBroken = Sync.Monitor(true)
        var options = SpoolOptions()
        options.storage.sync = { (file) throws(SystemError) in
            if isBroken.withLock({ $0 }) {
                throw SystemError(code: code, action: "sync segment", path: "x")
            }
            try file.sync()
        }
        let fixture = try ServiceFixture(options: options)
        let answer = try fixture.post(ServiceTests.two)
        #expect(answer.status == status)
        #expect(answer.body.contains("\"code\":\"\(word)\""))
        try ServiceTests.expectRetry(answer)
        #expect(try fixture.get("/readyz").status == 503)
        #expect(fixture.metric("tapline_lines_accepted_total") == "0")
        isBroken.withLock { $0 = false }
        #expect(try fixture.post(ServiceTests.two).body == ServiceTests.all(2))
        #expect(try fixture.get("/readyz").status == 200)
        #expect(try fixture.records().count == 1)
    }

    @Test func noAnswerComesBeforeTheSync() throws {
        let state = Sync.Monitor((isOpen: false, syncs: 0))
        var options = SpoolOptions()
        options.storage.sync = { (file) throws(SystemError) in
            state.withLock { $0.syncs += 1 }
            state.broadcast()
            _ = state.wait(until: Clock.deadline(inMilliseconds: 20_000)) {
                $0.isOpen ? true : nil
            }
            try file.sync()
        }
        let fixture = try ServiceFixture(options: options)
        let client = try fixture.client()
        client.send(ServiceFixture.request(Array(ServiceTests.two.utf8)))
        _ = state.wait(until: Clock.deadline(inMilliseconds: 20_000)) { $0.syncs > 0 ? true : nil }
        // The server is at work all the while.
        #expect(try fixture.get("/healthz").status == 200)
        var byte: UInt8 = 0
        let early = unsafe recv(client.socket, &byte, 1, Int32(MSG_DONTWAIT | MSG_PEEK))
        #expect(early == -1)
        state.withLock { $0.isOpen = true }
        state.broadcast()
        #expect(try client.answer().body == ServiceTests.all(2))
    }

    // MARK: ?ack=stored

    @Test func storedCountsComeFromTheDatabase() throws {
        let waiter = FakeWaiter(
            StoredCounts(accepted: 1, duplicates: 2, conflicts: 3, deadLettered: 4))
        let fixture = try ServiceFixture(waiter: waiter)
        let answer = try fixture.post(ServiceTests.two + "x", target: "/v1/events?ack=stored")
        #expect(
            answer.body
                == "{\"received\":3,\"accepted\":1,\"duplicates\":2,\"conflicts\":3,"
                + "\"dead_lettered\":4,\"rejected\":1,\"errors\":["
                + ServiceTests.error(3, "bad_json", nil, "line is not valid JSON at byte 0")
                + "]}")
        #expect(waiter.marks.withLock { $0.count } == 1)
        #expect(
            try fixture.post("", target: "/v1/events?ack=stored").body
                == "{\"received\":0,\"accepted\":0,\"duplicates\":0,\"conflicts\":0,"
                + "\"dead_lettered\":0,\"rejected\":0,\"errors\":[]}")
        #expect(try fixture.post(ServiceTests.two).body == ServiceTests.all(2))
        #expect(waiter.marks.withLock { $0.count } == 1)
        #expect(waiter.announced.withLock { $0 } == 0)
    }

    @Test func aDatabaseThatDoesNotAnswerIsA503AndTheEventsAreDurable() throws {
        let fixture = try ServiceFixture(waiter: FakeWaiter(nil))
        let answer = try fixture.post(ServiceTests.two, target: "/v1/events?ack=stored")
        #expect(answer.status == 503)
        #expect(answer.body.contains("\"code\":\"not_stored_yet\""))
        try ServiceTests.expectRetry(answer)
        #expect(try fixture.records().count == 1)
    }

    // MARK: The end

    @Test func aDrainingServiceTakesNoBody() throws {
        let fixture = try ServiceFixture()
        fixture.service.startDraining()
        let answer = try fixture.post(ServiceTests.two)
        #expect(answer.status == 503)
        #expect(answer.headers["connection"] == "close")
        #expect(answer.body.contains("\"code\":\"stopping\""))
        try ServiceTests.expectRetry(answer)
        #expect(try fixture.get("/readyz").status == 503)
        #expect(try fixture.get("/healthz").status == 200)
    }

    @Test func manyClientsAtOnceAreAllStored() throws {
        let fixture = try ServiceFixture()
        let clients = try (0..<50).map { _ in try fixture.client() }
        for round in 0..<10 {
            for (index, client) in clients.enumerated() {
                let line = goodLine(round * 50 + index)
                client.send(
                    ServiceFixture.request(
                        try Gzip.compress(Array(line.utf8)), headers: ["Content-Encoding: gzip"]))
            }
            for client in clients { #expect(try client.answer().body == ServiceTests.all(1)) }
        }
        let records = try fixture.records()
        #expect(records.count == 500)
        #expect(Set(try records.flatMap { try $0.rows().map(\.key) }).count == 500)
    }
}
