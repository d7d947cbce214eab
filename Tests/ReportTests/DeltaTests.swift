import Foundation
import Report
import Testing

@Suite struct DeltaTests {
    static func delta(_ base: ReportBase, since: Int64, _ by: String = "campaign") throws
        -> ReportDelta
    {
        var options = ReportOptions()
        try options.set("by", by)
        return try ReportDelta.load(options, since: .instant(since), on: base.connection)
    }

    static func storedAt(_ base: ReportBase) throws -> Int64 {
        try base.connection.query(
            "SELECT (extract(epoch FROM stored_at) * 1000000)::bigint FROM tapline.turn"
        ).int64(0, 0)!
    }

    @Test func lateClicksAreSaidWithTheirCampaign() throws {
        let base = try ReportBase()
        let sent = (0..<20).map { Seed(.sent, "m\($0)", campaign: "spring") }
        try base.add(sent + [Seed(.received, "x", campaign: "other")])
        let since = try Self.storedAt(base)
        let day = 86_400.0
        // Clicks that do not name their campaign, up to three days late.
        try base.add(
            (0..<14).map { index in
                Seed(.clicked, "m\(index)").with { $0.delay = index == 5 ? 3 * day : 60 }
            })
        let delta = try Self.delta(base, since: since)
        #expect(delta.changes.count == 1)
        let change = delta.changes[0]
        #expect(change.row.campaign == "spring")
        #expect(change.counts.first { $0.count == .clicked }?.difference == 14)
        #expect(change.counts.first { $0.count == .delivered }?.difference == 14)
        #expect(!change.counts.contains { $0.count == .sent })
        #expect(change.arrivals?.events == 14 && change.arrivals?.latestSeconds == 3 * day)
        let table = String(decoding: try delta.render(.table), as: UTF8.self)
            .replacing("\n", with: " ")
        #expect(table.contains("+14 clicked") && table.contains("from 14 events up to 3 days late"))
        #expect(!table.contains("other:"))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(try delta.render(.json)))
                as? [String: Any])
        let rows = try #require(object["campaigns"] as? [[String: Any]])
        #expect((rows[0]["changes"] as? [String: Int])?["clicked"] == 14)
        #expect(throws: ReportError.self) { try delta.render(.csv) }
    }

    @Test func nothingNewIsNoChange() throws {
        let base = try ReportBase()
        try base.add([Seed(.clicked, campaign: "a")])
        let delta = try Self.delta(base, since: try Self.storedAt(base))
        #expect(delta.changes.isEmpty && delta.totals.counts.isEmpty)
        #expect(delta.totals.arrivals?.events == 0)
        #expect(
            String(decoding: try delta.render(.table), as: UTF8.self).contains("no row has changed")
        )
    }

    /// Whatever came in between, the changes are what tells the earlier report from the later one: all
    /// of it, and nothing else.
    @Test(arguments: ["campaign", "platform", "campaign,day"])
    func earlierReportAndChangesAreTheLaterOne(by: String) throws {
        let base = try ReportBase()
        let world = (1...8).flatMap(MergeTests.world)
        let half = world.count / 2
        try base.add(Array(world[..<half]))
        let since = try Self.storedAt(base)
        let before = try base.report { try $0.set("by", by) }
        try base.add(Array(world[half...]))
        let now = try base.report { try $0.set("by", by) }
        let delta = try Self.delta(base, since: since, by)
        func byKey(_ rows: [ReportRow]) -> [[String?]: ReportRow] {
            Dictionary(
                uniqueKeysWithValues: rows.map { ([$0.app, $0.campaign] + $0.dimensions, $0) })
        }
        /// Counts known in both that differ; a row that is not there has none of anything.
        func differences(_ old: ReportRow?, _ new: ReportRow?) -> [String: Int64] {
            var found: [String: Int64] = [:]
            for count in ReportCount.allCases {
                let (was, becomes) = (old == nil ? 0 : old?[count], new == nil ? 0 : new?[count])
                if let was, let becomes, was != becomes { found[count.rawValue] = becomes - was }
            }
            return found
        }
        func said(_ change: ReportDelta.Change) -> [String: Int64] {
            Dictionary(
                uniqueKeysWithValues: change.counts.map { ($0.count.rawValue, $0.difference) })
        }
        let (old, new) = (byKey(before.rows), byKey(now.rows))
        var expected: [[String?]: [String: Int64]] = [:]
        for key in Set(old.keys).union(new.keys) {
            let found = differences(old[key], new[key])
            if !found.isEmpty { expected[key] = found }
        }
        let found = byKey(delta.changes.map(\.row)).keys
        #expect(Set(found) == Set(expected.keys) && found.count == delta.changes.count)
        for change in delta.changes {
            let key = [change.row.app, change.row.campaign] + change.row.dimensions
            #expect(said(change) == expected[key], "\(key)")
        }
        #expect(said(delta.totals) == differences(before.totals, now.totals))
        let arrived = world[half...].filter { $0.message != nil }
        #expect(delta.totals.arrivals?.events == Int64(arrived.count))
        #expect(delta.totals.arrivals?.latestSeconds == arrived.map(\.delay).max())
        #expect(!expected.isEmpty)
        #expect(delta.changes.allSatisfy { $0.arrivals == nil } == (by == "platform"))
    }

    /// A send that comes late takes its messages out of `(unattributed)`, and the row with them.
    @Test func aRowThatIsGoneIsTakenAway() throws {
        let base = try ReportBase()
        try base.add([
            Seed(.received), Seed(.clicked, at: 1), Seed(.received, "m2", campaign: "other"),
        ])
        let since = try Self.storedAt(base)
        try base.add([
            Seed(.sent, campaign: "spring"), Seed(.received, "m3", campaign: "other"),
            Seed(.received, "m4", campaign: "other"), Seed(.received, "m5", campaign: "third"),
        ])
        let delta = try Self.delta(base, since: since)
        // Most clicks first, then most of all.
        #expect(
            delta.changes.map(\.row.campaign) == ["spring", "(unattributed)", "other", "third"])
        func changed(_ place: Int, _ count: ReportCount) -> Int64? {
            delta.changes[place].counts.first { $0.count == count }?.difference
        }
        #expect(changed(0, .clicked) == 1 && changed(1, .clicked) == -1)
        #expect(changed(1, .delivered) == -1 && changed(1, .engaged) == -1)
        #expect(changed(2, .delivered) == 2 && changed(2, .clicked) == nil)
        #expect(delta.changes.map { $0.arrivals?.events } == [1, nil, 2, 1])
        let table = String(decoding: try delta.render(.table), as: UTF8.self)
        #expect(table.contains("−1 clicked"))
        var options = ReportOptions()
        options.top = 1
        let first = try ReportDelta.load(
            options, since: .instant(since), on: base.connection)
        #expect(first.changes.map(\.row.campaign) == ["spring"])
        #expect(first.totals.arrivals == delta.totals.arrivals)
        #expect(first.totals.counts.count == delta.totals.counts.count)
    }
}
