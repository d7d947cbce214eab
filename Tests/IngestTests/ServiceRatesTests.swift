import Testing

@testable import Ingest

@Suite struct ServiceRatesTests {
    @Test func aKeyMaySaveUpOneSecondOfRequests() {
        let rates = ServiceRates(requestsPerSecondMax: 10)
        let key: [UInt8] = [1]
        var taken = 0
        while rates.wait(key, now: 5_000_000) == nil { taken += 1 }
        #expect(taken == 10)
        #expect(rates.wait(key, now: 5_000_000) == 100_000)
        // The place of a refused request is not taken: after the wait there is one.
        #expect(rates.wait(key, now: 5_100_000) == nil)
        #expect(rates.wait(key, now: 5_100_000) == 100_000)
        #expect(rates.wait([2], now: 5_100_000) == nil, "another key has places of its own")
    }

    @Test func anyPeriodHoldsAtMostItsShareAndOneBurst() {
        let rates = ServiceRates(requestsPerSecondMax: 7)
        var taken = 0
        for step in 0..<20_000 where rates.wait([1], now: Int64(step) * 1_000) == nil { taken += 1 }
        #expect(taken >= 20 * 7 && taken <= 21 * 7)
    }

    @Test func withoutALimitNothingWaits() {
        let rates = ServiceRates(requestsPerSecondMax: 0)
        for _ in 0..<10_000 { #expect(rates.wait([1], now: 0) == nil) }
    }

    @Test func overTheLimitIsA429ThatSaysWhenToComeBack() throws {
        let fixture = try ServiceFixture { $0.keyRequestsPerSecondMax = 1 }
        var answer = try fixture.post(ServiceTests.two)
        var accepted = 0
        // More than one a second, on any machine that passes the other tests.
        while answer.status == 200, accepted < 100 {
            accepted += 1
            answer = try fixture.post(ServiceTests.two)
        }
        #expect(answer.status == 429)
        #expect(answer.body.contains("\"code\":\"too_many_requests\""))
        #expect(answer.body.contains("\"limit\":1"))
        try ServiceTests.expectRetry(answer)
        #expect(try fixture.records().count == accepted)
    }
}
