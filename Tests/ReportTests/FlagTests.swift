import Event
import Postgres
import Report
import Testing

@Suite struct FlagTests {
    /// Units of a version, some of them clicked.
    static func units(_ version: String?, _ count: Int, clicked: Int) -> [Seed] {
        (0..<count).flatMap { number in
            let message = "\(version ?? "none")-\(number)"
            let seed = Seed(.received, message).with { $0.version = version }
            return number < clicked ? [seed, Seed(.clicked, message, at: 1)] : [seed]
        }
    }

    @Test func aVersionIsComparedWithTheOneBeforeItThatHasEnoughUnits() throws {
        let base = try ReportBase()
        try base.add(
            Self.units(nil, 40, clicked: 39) + Self.units("5.9", 40, clicked: 18)
                + Self.units("5.10", 30, clicked: 0) + Self.units("5.11", 40, clicked: 5)
                + Self.units("5.12", 40, clicked: 4))
        let report = try base.report { try $0.set("by", "app_version") }
        let flagged = report.rows.filter { !$0.flags.isEmpty }
        #expect(flagged.map(\.dimensions) == [["5.11"]])
        #expect(flagged.map(\.flags) == [["ctr_drop"]])
    }

    /// Half is no drop, nor is what may be chance or is of few units, by hand: clicked and delivered of the
    /// version and of the one before.
    @Test func aDropIsLessThanHalfAndNoChance() throws {
        let connection = try PostgresConnection(conninfo: try ReportBase().conninfo)
        for (now, before, isDrop) in [
            ((10, 100), (20, 100), false), ((9, 100), (20, 100), true),
            // p 0.078
            ((4, 40), (10, 40), false),
            ((4, 31), (20, 31), true), ((4, 31), (20, 30), false), ((4, 30), (20, 31), false),
            // 4.5 and 5 clicks expected of each.
            ((0, 31), (9, 31), false), ((0, 31), (10, 31), true),
            ((0, 0), (20, 31), false),
        ] {
            let found = try connection.query(
                "SELECT tapline.is_drop(\(now.0), \(now.1), \(before.0), \(before.1))")
            #expect(found.bool(0, 0) == isDrop, "\(now) after \(before)")
        }
    }

    /// Each flag where it is due and one short of it, a campaign each.
    @Test func eachFlagIsRaisedWhereItIsDueAndNotBefore() throws {
        var seeds: [Seed] = []
        var expected: [String: Set<String>] = [:]
        func campaign(_ name: String, _ flags: Set<String>, _ events: [Seed]) {
            expected[name] = flags
            // Campaigns share neither messages nor devices.
            seeds += events.map { event in
                event.with {
                    $0.message = event.message.map { "\(name) \($0)" }
                    $0.device = event.device.map { "\(name) \($0)" }
                    if event.message != nil, event.campaign == nil { $0.campaign = name }
                }
            }
        }
        func many(_ type: EventType, _ count: Int, at: Double = 0) -> [Seed] {
            (0..<count).map { Seed(type, "m\($0)", on: "d\($0)", at: at) }
        }
        func launch(_ number: Int, at: Double) -> Seed {
            Seed(.launch, nil, on: "d\(number)", at: at)
        }

        campaign("one name", [], [Seed(.sent), Seed(.clicked, at: 1)])
        campaign(
            "two names", ["campaign_mismatch"],
            [Seed(.sent), Seed(.clicked, campaign: "another", at: 1)])

        campaign("30 of 30", [], many(.clicked, 30))
        campaign("31 of 31", ["ctr_100_percent"], many(.clicked, 31))
        campaign("31 of 32", [], many(.clicked, 31) + [Seed(.received, "m")])
        let silent = Seed(.received, "m").with { $0.isSilent = true }
        campaign("31 of 31 and a silent one", ["ctr_100_percent"], many(.clicked, 31) + [silent])
        campaign(
            "30 of 30 and a silent one", [], many(.clicked, 30) + [silent, Seed(.clicked, "m")])

        campaign("one device", [], [Seed(.sent, on: nil), Seed(.received)])
        campaign(
            "two devices", ["sent_without_device"],
            [Seed(.sent, on: nil), Seed(.received), Seed(.received, on: "d2")])
        campaign(
            "two devices that are named", [],
            [
                Seed(.sent), Seed(.sent, on: "d2"), Seed(.received), Seed(.received, on: "d2"),
            ])

        for (platform, isBiased) in [("ios", true), ("iOS", true), ("android", false)] {
            campaign(
                "push_receive \(platform)", isBiased ? ["receipt_biased"] : [],
                [Seed(.received).with { $0.platform = platform }])
        }
        campaign("received ios", [], [Seed(.received).with { $0.platform = "ios" }])

        campaign("clicked with its receipt", [], [Seed(.received, at: 5), Seed(.clicked, at: 5)])
        campaign(
            "clicked before its receipt", ["clicks_before_receipts"],
            [Seed(.received, at: 5), Seed(.clicked, at: 4.99)])

        let untapped: Set = ["taps_not_forwarded"]
        campaign("30, all launched", [], many(.received, 30) + (0..<30).map { launch($0, at: 9) })
        campaign("31, one launched", untapped, many(.received, 31) + [launch(0, at: 9)])
        campaign("50, one launched", untapped, many(.received, 50) + [launch(0, at: 60)])
        campaign("50, one launched later", [], many(.received, 50) + [launch(0, at: 60.01)])
        campaign("51, one launched", [], many(.received, 51) + [launch(0, at: 60)])
        campaign(
            "50, one launched and one tapped", [],
            many(.received, 50) + [launch(0, at: 60), Seed(.clicked, "m1", on: "d1", at: 999)])

        let base = try ReportBase()
        try base.store(seeds)
        try base.connection.execute(
            "UPDATE tapline.event SET type_raw = 'push_receive' WHERE campaign_id LIKE 'push_receive%'"
        )
        try base.rebuild()
        let ofJourneys: Set = ["clicks_before_receipts", "taps_not_forwarded"]
        for (journeys, isFromEvents) in [
            ("always", false), ("always", true), ("never", false), ("never", true),
        ] {
            let report = try base.report {
                try $0.set("journeys", journeys)
                $0.isFromEvents = isFromEvents
            }
            #expect(Set(report.rows.map(\.campaign)) == Set(expected.keys))
            for row in report.rows {
                let flags = try #require(expected[row.campaign ?? ""])
                #expect(
                    Set(row.flags) == (journeys == "never" ? flags.subtracting(ofJourneys) : flags),
                    "\(row.campaign ?? "") with journeys \(journeys), \(isFromEvents)")
            }
        }
    }
}
