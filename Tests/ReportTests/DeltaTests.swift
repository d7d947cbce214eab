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

    /// Whatever came in between, the earlier report and the changes make the later one.
    @Test(arguments: ["campaign", "platform", "campaign,day"])
    func earlierReportAndChangesAreTheLaterOne(by: String) throws {
        let base = try ReportBase()
        let world = MergeTests.world(3)
        let half = world.count / 2
        try base.add(Array(world[..<half]))
        let since = try Self.storedAt(base)
        let before = try base.report { try $0.set("by", by) }
        try base.add(Array(world[half...]))
        let now = try base.report { try $0.set("by", by) }
        let delta = try Self.delta(base, since: since, by)
        func key(_ row: ReportRow) -> [String?] { [row.app, row.campaign] + row.dimensions }
        for row in now.rows {
            let old = before.rows.first { key($0) == key(row) }
            let change = delta.changes.first { key($0.row) == key(row) }
            for count in ReportCount.allCases {
                guard let new = row[count], let was = old == nil ? 0 : old?[count] else { continue }
                let difference = change?.counts.first { $0.count == count }?.difference ?? 0
                #expect(was + difference == new, "\(key(row)) \(count.rawValue)")
            }
        }
        #expect(delta.totals.arrivals!.events > 0)
    }
}
