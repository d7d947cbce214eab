import HTTPTestClient
import Platform
import Testing

@testable import HTTPServer

@Suite struct ConnectionRateTests {
    private static let start: Microseconds = 5_000_000

    /// `#expect` takes no mutating call.
    private final class Gate {
        private var rates: ConnectionRates
        init(perSecondMax: Int, burst: Int) {
            rates = ConnectionRates(perSecondMax: perSecondMax, burst: burst)
        }
        func admit(_ address: ClientAddress, now: Microseconds) -> Bool {
            rates.admit(address, now: now)
        }
        var count: Int { rates.count }
    }

    private static func v4(_ number: UInt64) -> ClientAddress {
        ClientAddress(high: 0, low: 0xFFFF_0A00_0000 + number)
    }

    @Test func anAddressMayOpenABurstAndThenItsRate() {
        let rates = Gate(perSecondMax: 10, burst: 4)
        let address = Self.v4(1)
        func admit(_ now: Microseconds) -> Bool { rates.admit(address, now: Self.start + now) }
        for _ in 0..<4 { #expect(admit(0)) }
        #expect(!admit(0))
        // What is refused takes no place: after a tenth of a second there is one, and only one.
        #expect(!admit(99_999))
        #expect(admit(100_000))
        #expect(!admit(100_000))
        #expect(rates.admit(Self.v4(2), now: Self.start), "another address has places of its own")
    }

    @Test(arguments: [1, 3, 500]) func anyPeriodHoldsAtMostItsShareAndOneBurst(burst: Int) {
        let rates = Gate(perSecondMax: 7, burst: burst)
        var taken = 0
        for step in 0..<20_000 where rates.admit(Self.v4(1), now: Int64(step) * 1_000) {
            taken += 1
        }
        #expect(taken >= 20 * 7 && taken <= 20 * 7 + burst, "\(taken)")
    }

    @Test func withoutALimitNoneIsRefused() {
        let rates = Gate(perSecondMax: 0, burst: 1)
        for _ in 0..<10_000 { #expect(rates.admit(Self.v4(1), now: 0)) }
        #expect(rates.count == 0)
    }

    @Test func aNetworkOfIPv6IsOneClientAndAnAddressOfIPv4Another() {
        let rates = Gate(perSecondMax: 1, burst: 1)
        let network: UInt64 = 0x2001_0DB8_0000_0001
        #expect(rates.admit(ClientAddress(high: network, low: 1), now: 0))
        #expect(!rates.admit(ClientAddress(high: network, low: 2), now: 0))
        #expect(rates.admit(ClientAddress(high: network + 1, low: 1), now: 0))
        #expect(rates.admit(Self.v4(1), now: 0))
        #expect(rates.admit(Self.v4(2), now: 0))
    }

    /// A million of addresses that come once each must not be remembered.
    @Test func whoHasNotComeForABurstIsForgotten() {
        let rates = Gate(perSecondMax: 1000, burst: 10)
        var most = 0
        for number in 0..<1_000_000 {
            #expect(rates.admit(Self.v4(UInt64(number)), now: Int64(number) * 10))
            most = max(most, rates.count)
        }
        // A hundred of them come in a millisecond, which one token takes.
        #expect(most <= 1024)
    }

    @Test func refusalsAreSaidOnceAMinuteForEachLimit() {
        var log = RefusalLog()
        let value: (ConnectionLimit) -> Int = { $0 == .rate ? 10 : 20 }
        func take(_ now: Microseconds) -> [RefusedConnections] { log.take(now: now, value: value) }
        #expect(take(0).isEmpty)
        for number in 0..<3 { log.note(.rate, of: Self.v4(UInt64(number))) }
        log.note(.all, of: Self.v4(9))
        let first = take(100)
        #expect(
            first == [
                RefusedConnections(limit: .all, value: 20, address: Self.v4(9), count: 1),
                RefusedConnections(limit: .rate, value: 10, address: Self.v4(2), count: 3),
            ])
        log.note(.rate, of: Self.v4(1))
        #expect(take(60_000_099).isEmpty)
        log.note(.rate, of: Self.v4(1))
        #expect(take(60_000_100).map(\.count) == [2])
    }

    // MARK: The server

    @Test func connectionsOverTheRateAreClosedUnreadAndSaid() throws {
        let server = try TestServer { configuration in
            configuration.connectionsPerAddressMax = 20
            configuration.addressConnectionsPerSecondMax = 1
        }
        let request = "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
        let kept = try server.client()
        var (answered, closed) = (0, 0)
        for _ in 0..<100 {
            let client = try server.client()
            client.send(request)
            if (try? client.answer().status) == 200 { answered += 1 } else { closed += 1 }
        }
        // As many as may be open come at once, less the one that is kept; then one a second.
        #expect(closed > 0 && answered >= 19, "\(answered)")
        #expect(server.server.statistics.connectionsRefused == [.rate: closed])
        #expect(server.server.statistics.requests == answered)
        // Whoever has a connection is served on.
        kept.send(request)
        #expect(try kept.answer().status == 200)
        let said = server.handler.state.wait(until: Clock.deadline(inMilliseconds: 20_000)) {
            $0.refused.isEmpty ? nil : $0.refused
        }
        #expect(said?.map(\.limit) == [.rate] && said?.first?.value == 1)
        #expect(said?.first?.address.description == "127.0.0.1")
        server.server.stop(drainSeconds: 1)
    }
}
