import Report
import Testing

@Suite struct OptionTests {
    @Test(
        arguments: [
            ("2026-02-28", .date(year: 2026, month: 2, day: 28)), ("7d", .daysAgo(7)),
            ("24h", .hoursAgo(24)), ("1788220800", .instant(1_788_220_800_000_000)),
            ("2026-09-01T02:00:00.25+02:00", .instant(1_788_220_800_250_000)),
        ] as [(String, ReportTime)])
    func timeIsRead(text: String, time: ReportTime) {
        #expect(ReportTime(text) == time)
    }

    @Test(arguments: [
        "", "now", "infinity", "2026-02-29", "2026-13-01", "0000-01-01", "2026-1-1", "d", "-7d",
        "7w",
        "999999d", "1.5h", "2026-09-01T00:00:00", "2026-09-01 ", "1e400",
    ])
    func otherTextIsNoTime(text: String) {
        #expect(ReportTime(text) == nil)
        #expect(throws: ReportError.self) {
            var options = ReportOptions()
            try options.set("from", text)
        }
    }

    @Test func oneOrTwoDifferentDimensionsAreTaken() throws {
        var options = ReportOptions()
        try options.set("by", "platform,app_version")
        #expect(options.by == [.platform, .appVersion])
        for bad in ["", "platform,", "planet", "day,day", "day,hour,platform", "Platform"] {
            #expect(throws: ReportError.self) { try options.set("by", bad) }
        }
        #expect(options.by == [.platform, .appVersion])
    }

    @Test func optionsWithoutMeaningAreRefused() {
        var options = ReportOptions()
        for (name, value) in [
            ("top", "0"), ("top", "x"), ("sort", "bytes"), ("include-test", "maybe"), ("fro", "7d"),
        ] {
            #expect(throws: ReportError.self) { try options.set(name, value) }
        }
    }

    @Test func rowsAreSortedAndCutButTotalsAreNot() throws {
        let base = try ReportBase()
        for (name, count) in ["a": 1, "b": 3, "c": 2] {
            try base.add((0..<count).map { Seed(.received, "\(name)\($0)", campaign: name) })
        }
        try base.add([Seed(.clicked, "a0"), Seed(.clicked, "c0")])
        func campaigns(_ sort: String?, _ top: String? = nil) throws -> [String?] {
            let report = try base.report {
                if let sort { try $0.set("sort", sort) }
                if let top { try $0.set("top", top) }
            }
            #expect(report.totals[.delivered] == 6)
            return report.rows.map(\.campaign)
        }
        #expect(try campaigns(nil) == ["b", "c", "a"])
        #expect(try campaigns("campaign") == ["a", "b", "c"])
        #expect(try campaigns("ctr_delivered", "2") == ["a", "c"])
        #expect(try campaigns("clicked", "1") == ["a"])
        // No row has it, but it sorts.
        #expect(try campaigns("ctr_sent") == ["a", "b", "c"])
        #expect(try campaigns("platform") == ["a", "b", "c"])
        #expect(try campaigns("app") == ["a", "b", "c"])
    }

    @Test func appAndCampaignNarrowRowsAndTotals() throws {
        let base = try ReportBase()
        try base.add([
            Seed(.clicked, "m1", campaign: "a"), Seed(.clicked, "m2"),
            Seed(.clicked, "m3", campaign: "a").with { $0.app = "other" },
        ])
        for _ in 0..<2 {
            let shop = try base.report { $0.app = "shop" }
            #expect(shop.totals[.clicked] == 2 && shop.totals.app == "shop")
            let campaign = try base.report { $0.campaign = "a" }
            #expect(campaign.totals[.clicked] == 2 && campaign.rows.count == 2)
            let none = try base.report { $0.campaign = "(unattributed)" }
            #expect(none.totals[.clicked] == 1)
            try base.rebuild()
        }
    }

    @Test func journeysAreLookedAtWhereThatIsSoonDone() throws {
        let base = try ReportBase()
        try base.add([Seed(.received, campaign: "a"), Seed(.clicked, campaign: "a", at: 5)])
        for (stored, ofAll, ofOne) in [
            (300_000, true, true), (300_001, false, true), (3_000_000, false, true),
            (3_000_001, false, false),
        ] {
            try base.connection.execute("UPDATE tapline.turn SET segment_rows = \(stored)")
            for (campaign, isLookedAt) in [(nil, ofAll), ("a", ofOne)] {
                let report = try base.report {
                    $0.journeys = .auto
                    $0.campaign = campaign
                }
                #expect(report.hasJourneys == isLookedAt)
                #expect(report.totals.timeToOpen?.p50 == (isLookedAt ? 5 : nil))
            }
        }
    }
}
