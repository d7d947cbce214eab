import Gzip
import Platform
import Testing

@testable import Ingest

@Suite struct ServiceRatesTests {
    private static let second: Microseconds = 1_000_000

    @Test func aKeyMaySaveUpOneSecondOfRequests() {
        let rates = ServiceRates(requestsPerSecondMax: 10)
        let key: [UInt8] = [1]
        var taken = 0
        while rates.admit(key, now: 5_000_000) == nil { taken += 1 }
        #expect(taken == 10)
        // The place of a refused request is not taken: after the wait there is one.
        #expect(rates.admit(key, now: 5_099_999) != nil)
        #expect(rates.admit(key, now: 5_100_000) == nil)
        #expect(rates.admit(key, now: 5_100_000) != nil)
        #expect(rates.admit([2], now: 5_100_000) == nil, "another key has places of its own")
    }

    @Test(arguments: [1, 500, 3_000]) func anyPeriodHoldsAtMostItsShareAndOneBurst(burst: Int) {
        let rates = ServiceRates(requestsPerSecondMax: 7, burstMilliseconds: burst)
        var taken = 0
        for step in 0..<20_000 where rates.admit([1], now: Int64(step) * 1_000) == nil {
            taken += 1
        }
        let most = 20 * 7 + max(1, 7 * burst / 1_000)
        #expect(taken >= 20 * 7 && taken <= most, "\(taken), at most \(most)")
    }

    @Test func withoutALimitNothingWaits() {
        let rates = ServiceRates(requestsPerSecondMax: 0)
        for _ in 0..<10_000 {
            #expect(rates.admit([1], now: 0) == nil)
            rates.charge([1], events: 10_000, now: 0)
        }
    }

    @Test func eventsThatOverdrewArePaidBackFirst() throws {
        let rates = ServiceRates(requestsPerSecondMax: 0, eventsPerSecondMax: 100)
        #expect(rates.admit([1], now: 0) == nil)
        rates.charge([1], events: 1_000, now: 0)
        let refusal = try #require(rates.admit([1], now: 0))
        #expect(refusal.limit == .events && refusal.perSecondMax == 100)
        // Ten seconds' worth; of the last second all but one event may be saved up.
        #expect(refusal.waitMicroseconds == 9_010_000)
        #expect(rates.admit([1], now: 9_009_999) != nil)
        #expect(rates.admit([1], now: 9_010_000) == nil)
    }

    @Test func aKeyWithinItsLimitsIsNeverRefusedWhateverTheOthersDo() {
        let rates = ServiceRates(
            requestsPerSecondMax: 20, eventsPerSecondMax: 400, burstMilliseconds: 1_000)
        var now: Microseconds = 0
        var refused = 0
        for round in 0..<2_000 {
            // Its events at their rate, and its requests, with now and then a rest and then a burst.
            let events = 1 + round * 7 % 20
            now += max(Self.second / 20, Self.second * Int64(events) / 400)
            let bodies = round % 50 == 49 ? 10 : 1
            if bodies > 1 { now += Self.second }
            for _ in 0..<bodies {
                if rates.admit([1], now: now) != nil { refused += 1 }
                rates.charge([1], events: events, now: now)
            }
            for _ in 0..<50 where rates.admit([2], now: now) == nil {
                rates.charge([2], events: 500, now: now)
            }
        }
        #expect(refused == 0)
        #expect(rates.admit([2], now: now) != nil)
    }

    @Test func whoIsRefusedIsSentAwayForLongerThanTheOneBefore() throws {
        let rates = ServiceRates(requestsPerSecondMax: 10)
        while rates.admit([1], now: 0) == nil {}
        var last: Microseconds = 0
        for _ in 0..<200 {
            let wait = try #require(rates.admit([1], now: 0)).waitMicroseconds
            #expect(wait > last)
            last = wait
        }
        for _ in 0..<200 { _ = rates.admit([1], now: 0) }
        let longest = try #require(rates.admit([1], now: 0)).waitMicroseconds
        #expect(longest == ServiceRates.waitMicrosecondsMax)
        // The queue is gone with the time.
        let later = ServiceRates.waitMicrosecondsMax
        while rates.admit([1], now: later) == nil {}
        let first = try #require(rates.admit([1], now: later)).waitMicroseconds
        #expect(first <= 200_000)
    }

    @Test func aStormIsReportedOnceAMinuteWithAllItsRefusals() {
        let rates = ServiceRates(requestsPerSecondMax: 10)
        var reports: [Int] = []
        var refused = 0
        for step in 0..<12_100 {
            guard let refusal = rates.admit([1], now: Int64(step) * 10_000) else { continue }
            refused += 1
            if let count = refusal.unreported { reports.append(count) }
        }
        #expect(reports.count == 3, "in 121 s: \(reports)")
        #expect(reports.first == 1 && reports.reduce(0, +) <= refused)
        #expect(reports.dropFirst().allSatisfy { $0 > 5_000 })
    }

    /// Ten thousand clients that all come at once; half of them obey, the others try again twice a
    /// second.
    @Test func aStormConvergesAndThoseWhoObeyTryAFewTimes() {
        let perSecondMax = 500
        let rates = ServiceRates(requestsPerSecondMax: perSecondMax)
        let clients = 10_000
        var tries = [Int](repeating: 0, count: clients)
        // By tenths of a second.
        var agenda: [Int: [Int]] = [0: Array(0..<clients)]
        var tenth = 0
        while !agenda.isEmpty, tenth < 10_000 {
            for client in agenda.removeValue(forKey: tenth) ?? [] {
                tries[client] += 1
                guard let refusal = rates.admit([1], now: Int64(tenth) * 100_000) else { continue }
                let seconds = ServiceRefusal.tooManyRequests(refusal).retryAfter ?? 0
                let pause = client % 2 == 0 ? seconds * 10 : 5
                agenda[tenth + max(1, pause), default: []].append(client)
            }
            tenth += 1
        }
        #expect(agenda.isEmpty, "all have had their turn")
        let obeying = stride(from: 0, to: clients, by: 2).map { tries[$0] }
        let mean = Double(obeying.reduce(0, +)) / Double(obeying.count)
        #expect(mean < 4, "tries of one that obeys: \(mean)")
        #expect(tenth < 10 * (clients / perSecondMax + 3 * 30 * 3), "\(tenth / 10) s")
    }
}

/// The limit over HTTP.
@Suite struct ServiceStormTests {
    @Test func aStormIsRefusedUnreadAndThePoliteKeyIsNot() throws {
        let fixture = try ServiceFixture {
            $0.keyRequestsPerSecondMax = 5
            $0.keyBurstMilliseconds = 2_000
        }
        let body = try Gzip.compress(Array(ServiceTests.two.utf8))
        let inflated = ServiceTests.two.utf8.count
        var accepted = 0
        var seconds: Set<Int> = []
        for round in 0..<200 {
            let answer = try fixture.postGzip(body)
            if answer.status == 200 {
                accepted += 1
            } else {
                #expect(answer.status == 429)
                #expect(answer.body.contains("\"code\":\"too_many_requests\""))
                #expect(answer.body.contains("requests of this key") && answer.body.contains("5/s"))
                try ServiceTests.expectRetry(answer)
                seconds.insert(answer.headers["retry-after"].flatMap { Int($0) } ?? 0)
            }
            guard round % 25 == 24 else { continue }
            let polite = try fixture.post(
                body, headers: ["Content-Encoding: gzip", "Authorization: Bearer polite"])
            #expect(polite.status == 200)
            accepted += 1
        }
        #expect(seconds.count > 5, "jittered: \(seconds.sorted())")
        #expect(try fixture.records().count == accepted)
        let bytes = "\(accepted * inflated)"
        #expect(fixture.metric("tapline_body_inflated_bytes_total") == bytes)
        let counted = fixture.metric("tapline_http_rate_limited_total{limit=\"requests\"}")
        #expect(counted == "\(208 - accepted)")
    }

    @Test func eventsAreLimitedByTheBodiesBefore() throws {
        let fixture = try ServiceFixture { $0.keyEventsPerSecondMax = 2 }
        let lines = (0..<100).map { goodLine($0) + "\n" }.joined()
        #expect(try fixture.post(lines).status == 200)
        let refused = try fixture.post(lines)
        #expect(refused.status == 429 && refused.body.contains("events of this key"))
        try ServiceTests.expectRetry(refused)
        #expect(fixture.metric("tapline_http_rate_limited_total{limit=\"events\"}") == "1")
        #expect(try fixture.post(lines, headers: ["Authorization: Bearer polite"]).status == 200)
    }

    @Test func aClientThatAsksFirstIsToldBeforeItSends() throws {
        let fixture = try ServiceFixture { $0.keyRequestsPerSecondMax = 1 }
        while try fixture.post(ServiceTests.two).status == 200 {}
        let client = try fixture.client()
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                + "Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
        #expect(try client.answer().status == 429)
    }
}
