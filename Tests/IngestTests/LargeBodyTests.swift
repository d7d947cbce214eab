import Glibc
import Gzip
import HTTPTestClient
import Ingest
import Platform
import Testing

/// Bodies too large for an HTTP thread, on which all other connections of that thread would wait.
@Suite struct LargeBodyTests {
    /// Keeps the threads for large bodies busy until it is opened.
    final class Gate: Sendable {
        private let isOpen = Sync.Monitor(false)

        init(_ fixture: ServiceFixture, threads: Int) throws {
            let inside = Sync.Monitor(0)
            let isOpen = isOpen
            for number in 0..<threads {
                let work: FairWorkers.Work = {
                    inside.withLock { $0 += 1 }
                    inside.signal()
                    _ = isOpen.wait(until: Clock.deadline(inMilliseconds: 60_000)) {
                        $0 ? true : nil
                    }
                }
                let isTaken = fixture.service.largeBodies.give(work, of: [UInt8(number)])
                try #require(isTaken)
            }
            let deadline = Clock.deadline(inMilliseconds: 20_000)
            let isBusy = inside.wait(until: deadline) { $0 == threads ? true : nil }
            try #require(isBusy == true)
        }

        func open() {
            isOpen.withLock { $0 = true }
            isOpen.broadcast()
        }

        deinit { open() }
    }

    static func wait(_ what: String, _ isSo: () -> Bool) throws {
        let deadline = Clock.deadline(inMilliseconds: 20_000)
        while !isSo() {
            if Clock.monotonic() > deadline { throw RawClient.Failure("not in 20 s: \(what)") }
            sched_yield()
        }
    }

    /// `count` good lines, each a kilobyte.
    static func lines(_ count: Int) -> [UInt8] {
        let padding = String(repeating: "x", count: 940)
        let lines = (0..<count).map {
            goodLine($0).dropLast() + ",\"properties\":{\"a\":\"\(padding)\"}}\n"
        }
        return Array(lines.joined().utf8)
    }

    static let gzipHeader = ["Content-Encoding: gzip"]

    @Test func smallBodiesPassLargeOnesAndBombs() throws {
        let fixture = try ServiceFixture { $0.largeBodyThreads = 2 }
        let gate = try Gate(fixture, threads: 2)
        let bomb = try Gzip.compress([UInt8](repeating: 0x20, count: 200 << 20), level: 9)
        let large = Self.lines(2_000)
        // Twice each, so that every HTTP thread has some.
        let clients = try (0..<8).map { _ in try fixture.client() }
        for (number, client) in clients.enumerated() {
            switch number % 4 {
            case 0: client.send(ServiceFixture.request(bomb, headers: Self.gzipHeader))
            case 1: client.send(ServiceFixture.request(large))
            case 2:
                client.send(
                    ServiceFixture.request(try Gzip.compress(large), headers: Self.gzipHeader))
            default:
                // Good to the last byte, which is one of the checksum's.
                var bad = try Gzip.compress(large)
                bad[bad.count - 5] ^= 1
                client.send(ServiceFixture.request(bad, headers: Self.gzipHeader))
            }
        }
        try Self.wait("all of them wait") { fixture.service.largeBodies.waitingCount == 8 }
        #expect(fixture.metric("tapline_bodies_large_total") == "8")
        // An HTTP thread has inflated nothing of them.
        let inflated = try #require(Int(fixture.metric("tapline_body_inflated_bytes_total") ?? ""))
        #expect(inflated == 2 * large.count)
        for _ in 0..<20 { #expect(try fixture.post(goodLine(1)).status == 200) }
        #expect(fixture.service.largeBodies.waitingCount == 8)
        gate.open()
        for (number, client) in clients.enumerated() {
            let answer = try client.answer()
            switch number % 4 {
            case 0: #expect(answer.status == 413 && answer.body.contains("body_too_large"))
            case 1, 2: #expect(answer.body.hasPrefix(#"{"received":2000,"accepted":2000"#))
            default: #expect(answer.status == 400 && answer.body.contains("bad_gzip"))
            }
            // The connection goes on.
            client.send(ServiceFixture.request(Array(goodLine(2).utf8)))
            #expect(try client.answer().status == 200)
        }
        #expect(fixture.metric("tapline_in_flight_bytes") == "0")
        #expect(try fixture.records().reduce(0) { $0 + $1.received } == 4 * 2_000 + 28)
    }

    @Test func aWholeBodyThatSaysItIsLargeIsNotBegunByTheServer() throws {
        let fixture = try ServiceFixture { $0.largeBodyThreads = 1 }
        let gate = try Gate(fixture, threads: 1)
        func inflated() -> Int? { Int(fixture.metric("tapline_body_inflated_bytes_total") ?? "") }
        var bomb = try Gzip.compress([UInt8](repeating: 0x20, count: 64 << 20), level: 9)
        let honest = try fixture.client()
        honest.send(ServiceFixture.request(bomb, headers: Self.gzipHeader))
        try Self.wait("it waits") { fixture.service.largeBodies.waitingCount == 1 }
        #expect(inflated() == 0)
        // One that lies of its length is begun, and no more.
        bomb.replaceSubrange((bomb.count - 4)..., with: [1, 0, 0, 0])
        let liar = try fixture.client()
        liar.send(ServiceFixture.request(bomb, headers: Self.gzipHeader))
        try Self.wait("both wait") { fixture.service.largeBodies.waitingCount == 2 }
        let begun = try #require(inflated())
        #expect(begun > 0 && begun <= 512 << 10)
        gate.open()
        for client in [honest, liar] { #expect(try client.answer().status == 413) }
    }

    @Test(arguments: [false, true])
    func aThreadAtALargeBodyLetsOthersGoFirst(isGzip: Bool) throws {
        let fixture = try ServiceFixture { $0.largeBodyThreads = 1 }
        let large = Self.lines(4_000)
        let body = isGzip ? try Gzip.compress(large) : large
        let client = try fixture.client()
        client.send(ServiceFixture.request(body, headers: isGzip ? Self.gzipHeader : []))
        #expect(try client.answer().status == 200)
        // At each 128 KiB that are decoded, and at each that are inflated.
        let steps = large.count / (128 << 10) * (isGzip ? 2 : 1)
        let count = fixture.service.largeBodies.stoodBackCount
        #expect(count >= steps * 9 / 10 && count <= steps + 2)
    }

    @Test func largeBodiesLeaveRoomForSmallOnes() throws {
        let fixture = try ServiceFixture {
            $0.bodyBytesMax = 2 << 20
            $0.inFlightBytesMax = 4 << 20
        }
        let gate = try Gate(fixture, threads: 1)
        let large = Self.lines(900)
        let clients = try (0..<6).map { _ in try fixture.client() }
        for client in clients.prefix(3) {
            client.send(ServiceFixture.request(large))
        }
        try Self.wait("three wait") { fixture.service.largeBodies.waitingCount == 3 }
        for client in clients.suffix(3) {
            client.send(ServiceFixture.request(large))
            let answer = try client.answer()
            #expect(answer.status == 503 && answer.body.contains("too_much_in_flight"))
        }
        #expect(try fixture.post(goodLine(1)).status == 200)
        gate.open()
        for client in clients.prefix(3) { #expect(try client.answer().status == 200) }
        #expect(fixture.metric("tapline_in_flight_bytes") == "0")
    }

    @Test func whatTheEndOfTheServerHasRefusedIsNotReadAnyMore() throws {
        let fixture = try ServiceFixture()
        let gate = try Gate(fixture, threads: 1)
        let client = try fixture.client()
        client.send(ServiceFixture.request(Self.lines(900)))
        try Self.wait("it waits") { fixture.service.largeBodies.waitingCount == 1 }
        fixture.server.stop(drainSeconds: 0)
        #expect(try client.answer().status == 503)
        gate.open()
        try Self.wait("it is let go") { fixture.metric("tapline_in_flight_bytes") == "0" }
        #expect(try fixture.records().isEmpty)
    }

    @Test func eachOwnerHasATurn() throws {
        let workers = FairWorkers(name: "test", threads: 1, niceness: 0)
        let gate = Sync.Monitor(false)
        let done = Sync.Monitor<[String]>([])
        let end = Clock.deadline(inMilliseconds: 60_000)
        let wait: FairWorkers.Work = { _ = gate.wait(until: end) { $0 ? true : nil } }
        let first = workers.give(wait, of: [0])
        #expect(first)
        for (owner, count) in [("a", 4), ("b", 1), ("c", 2)] {
            for number in 1...count {
                let work: FairWorkers.Work = {
                    done.withLock { $0.append("\(owner)\(number)") }
                    done.signal()
                }
                let isTaken = workers.give(work, of: Array(owner.utf8))
                #expect(isTaken)
            }
        }
        gate.withLock { $0 = true }
        gate.broadcast()
        let deadline = Clock.deadline(inMilliseconds: 20_000)
        let order = done.wait(until: deadline) { $0.count == 7 ? $0 : nil }
        #expect(order == ["a1", "b1", "c1", "a2", "c2", "a3", "a4"])
        workers.close()
        let more = workers.give(wait, of: [0])
        #expect(!more)
    }
}
