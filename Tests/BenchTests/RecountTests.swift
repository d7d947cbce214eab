import Testing

@testable import Bench

/// What is counted of a run without the database.
@Suite struct RecountTests {
    static let plan = BenchPlan(seed: 1, events: 8000)
    static let events = (0..<8000).map { BenchEvent($0, of: plan) }

    static func sum(_ counts: (Int) -> Bool) -> CampaignCounts {
        recount(plan, where: counts).reduce(into: CampaignCounts()) { $0.add($1) }
    }

    @Test func allOfARunIsCounted() {
        let all = Self.sum { _ in true }
        #expect(all.sent == 1000)
        let clicks = Self.events.filter(\.isClick)
        #expect(all.clicksTotal == clicks.count)
        #expect(all.clicked == Set(clicks.map(\.message)).count)
        let failed = Self.events.filter { $0.kind == .failed }
        #expect(all.delivered <= 1000 && all.delivered >= 1000 - failed.count)
        #expect(all.delivered < 1000 && all.clicked < all.clicksTotal)
        #expect(Self.sum { _ in false } == CampaignCounts())
    }

    @Test func twoTapsOnOneMessageAreOneClick() throws {
        let pair = try #require(
            Self.events.indices.first {
                $0 % 8 == 3 && Self.events[$0].kind == .clicked && Self.events[$0 + 1].isClick
            })
        let all = Self.sum { _ in true }
        let one = Self.sum { $0 != pair }
        #expect(one.clicked == all.clicked && one.clicksTotal == all.clicksTotal - 1)
        let none = Self.sum { $0 != pair && $0 != pair + 1 }
        #expect(none.clicked == all.clicked - 1 && none.clicksTotal == all.clicksTotal - 2)
        #expect(none.delivered == all.delivered)
    }

    @Test func aMessageWithoutItsSentIsDeliveredAllTheSame() {
        let all = Self.sum { _ in true }
        let unsent = Self.sum { Self.events[$0].kind != .sent }
        #expect(unsent.sent == 0)
        #expect(unsent.delivered == all.delivered && unsent.clicked == all.clicked)
    }

    @Test func percentilesAreAThirtySecondFromTheTruth() {
        var latencies = Latencies()
        let random = Permutation(count: 1 << 20, seed: 3)
        #expect(latencies.quantile(perThousand: 500) == 0)
        var values = (0..<5000).map { Int64(random.number(at: $0) >> ($0 % 20)) }
        for value in values { latencies.add(value) }
        values.sort()
        for perThousand in [1, 500, 900, 990, 999, 1000] {
            let truth = values[(values.count * perThousand + 999) / 1000 - 1]
            let found = latencies.quantile(perThousand: perThousand)
            #expect(found >= truth && found <= truth + truth / 32, "\(perThousand)")
        }
        #expect(latencies.max == values.last && latencies.count == 5000)
    }

    @Test func aProcessThatHoldsTooMuchIsFound() {
        let metrics = { (memory: Int, files: Int, threads: Int) in
            Array(
                """
                # TYPE process_open_fds gauge
                process_open_fds \(files)
                process_resident_memory_bytes \(memory)
                tapline_build_info{version="1"} 1
                tapline_threads \(threads)
                """.utf8)
        }
        #expect(DaemonProbe.judge(metrics(1 << 30, 2048, 64)).holds == true)
        #expect(DaemonProbe.judge(metrics(1 << 30 + 1, 2048, 64)).holds == false)
        #expect(DaemonProbe.judge(metrics(1, 2049, 64)).holds == false)
        #expect(DaemonProbe.judge(metrics(1, 1, 65)).breaches == ["65 threads, limit is 64"])
        #expect(
            DaemonProbe.judge(Array("tapline_build_info 1\nprocess_open_fds 3\n".utf8)).breaches
                .count == 2)
        #expect(DaemonProbe.judge(Array("process_open_fds 3\n".utf8)).holds == false)
    }
}
