import Foundation
import Postgres
import Report
import Testing

@Suite struct ComparisonTests {
    /// Units of a campaign, the first of them clicked.
    static func units(_ campaign: String, _ count: Int, clicked: Int, app: String = "shop")
        -> [Seed]
    {
        (0..<count).map { index in
            Seed(index < clicked ? .clicked : .received, "\(campaign)\(index)", campaign: campaign)
                .with { $0.app = app }
        }
    }

    static let conninfo = Result {
        let base = try ReportBase()
        try base.add(
            units("a", 400, clicked: 80) + units("b", 400, clicked: 20)
                + units("c", 20, clicked: 2) + units("d", 400, clicked: 22)
                + units("e", 400, clicked: 40) + units("f", 400, clicked: 60)
                + units("g", 400, clicked: 64)
                + units("twice", 3, clicked: 1) + units("twice", 3, clicked: 1, app: "other"))
        return base.conninfo
    }

    static func compare(_ names: [String], by rate: String? = nil) throws -> Comparison {
        try Comparison.load(
            names, by: rate, ReportOptions(),
            on: try PostgresConnection(conninfo: try conninfo.get()))
    }

    @Test func aRealDifferenceIsSaidInPlainWords() throws {
        let found = try Self.compare(["a", "b"])
        #expect(found.rate == .ctrDelivered && found.pairs.count == 1)
        #expect(found.pairs[0].verdict == .firstHigher)
        let table = found.table()
        #expect(
            table.replacing("\n", with: " ").contains(
                "A's click-through is higher than B's by 10.5 to 19.5"))
        #expect(table.contains("not corrected for looking repeatedly"))
        #expect(table.split(separator: "\n").allSatisfy { $0.count <= 80 })
        let turned = try Self.compare(["b", "a"])
        #expect(turned.pairs[0].verdict == .secondHigher)
        #expect(
            turned.table().replacing("\n", with: " ").contains(
                "B's click-through is higher than A's by 10.5 to 19.5"))
    }

    @Test func chanceAndTooFewAreToldApart() throws {
        let chance = try Self.compare(["b", "d"])
        #expect(chance.pairs[0].verdict == .noDifference)
        let needed = try #require(chance.pairs[0].unitsNeeded)
        #expect(chance.moreUnits(chance.pairs[0], of: 0) == needed - 400)
        #expect(chance.table().contains("may be chance"))
        let few = try Self.compare(["c", "b"])
        #expect(few.pairs[0].verdict == .notEnoughData && few.pairs[0].adjustedP == nil)
        #expect(few.table().contains("not enough data yet"))
    }

    /// By hand, from z of 60 and 64 clicks of 400 against 40: what is unlikely by itself may be chance
    /// among three pairs.
    @Test func severalPairsAreAdjusted() throws {
        let found = try Self.compare(["e", "f", "g"])
        #expect(found.pairs.map { [$0.first, $0.second] } == [[0, 1], [0, 2], [1, 2]])
        let plain = [0.0325094446457, 0.0116324389594, 0.6959675316056]
        // 3 x the smallest, 2 x the next, 1 x the last.
        let adjusted = [0.0650188892914, 0.0348973168782, 0.6959675316056]
        for (place, pair) in found.pairs.enumerated() {
            let p = try #require(pair.difference?.p)
            let after = try #require(pair.adjustedP)
            #expect(abs(p - plain[place]) < 1e-9 && abs(after - adjusted[place]) < 1e-9)
        }
        #expect(found.pairs.map(\.verdict) == [.noDifference, .secondHigher, .noDifference])
        #expect(found.table().contains("adjusted for 3 pairs (Holm)"))
        // Alone, the first pair is no chance.
        let alone = try Self.compare(["e", "f"]).pairs[0]
        #expect(alone.verdict == .secondHigher && alone.adjustedP == alone.difference?.p)
    }

    @Test func anUnknownCampaignHasNoRate() throws {
        let found = try Self.compare(["a", "nowhere"])
        #expect(found.pairs[0].verdict == .notEnoughData && found.pairs[0].difference == nil)
        #expect(found.table().contains("B  n/a  n/a of n/a  nowhere"))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(found.json().utf8)) as? [String: Any])
        let pairs = try #require(object["pairs"] as? [[String: Any]])
        #expect(pairs[0]["verdict"] as? String == "not_enough_data" && pairs[0]["p"] is NSNull)
        #expect((object["campaigns"] as? [Any])?.count == 2)
    }

    @Test func namesAreCheckedBeforeAnythingIsRead() throws {
        for (names, rate) in [(["a"], nil), (["a", "a"], nil), (["a", "b"], "ctr")] {
            #expect(throws: ReportError.self) { try Self.compare(names, by: rate) }
        }
        let error = try #require(
            #expect(throws: ReportError.self) { try Self.compare(["a", "twice"]) })
        #expect("\(error)".contains("of several apps (other, shop)"))
    }
}
