import Report
import Testing

/// Hand-computed tables for the rules of product §2 and docs/reports.md.
@Suite struct UnitRuleTests {
    @Test func twoClicksOfOneDeviceAreOneClickInEveryRate() throws {
        let row = try ReportBase.report(of: [
            Seed(.received, campaign: "a"), Seed(.clicked, at: 1), Seed(.clicked, at: 2),
        ]).totals
        #expect(row[.delivered] == 1 && row[.clicked] == 1 && row[.clicksTotal] == 2)
        #expect(row[.ctrDelivered].isOf(1, 1) && row[.ctrDelivered].value == 1)
    }

    @Test func clickWithoutReceiptImpliesDelivery() throws {
        let row = try ReportBase.report(of: [Seed(.clicked)]).totals
        #expect(row[.observed] == 0 && row[.implied] == 1 && row[.delivered] == 1)
        #expect(row[.ctrDelivered].isOf(1, 1))
    }

    @Test func noMessagesGiveNoRates() throws {
        let report = try ReportBase.report(of: [])
        #expect(report.rows.isEmpty && report.totals[.delivered] == 0)
        #expect(report.totals[.sent] == nil)
        #expect(report.totals.rates.allSatisfy { $0.value == nil && $0.low == nil })
    }

    @Test func appThatSendsNoneHasNoSentNorHaveTotalsOverIt() throws {
        let report = try ReportBase.report(of: [
            Seed(.sent, campaign: "a"), Seed(.clicked, "m2", campaign: "a"),
            Seed(.received, campaign: "b").with { $0.app = "other" },
        ])
        #expect(report.row("a")?[.sent] == 1 && report.row("a")?[.clicksWithoutSend] == 1)
        #expect(report.row("b")?[.sent] == nil && report.row("b")?[.accepted] == nil)
        #expect(report.totals[.sent] == nil && report.totals[.ctrSent].isOf(nil, nil))
    }

    @Test func failedThenClickedIsAccepted() throws {
        let row = try ReportBase.report(of: [
            Seed(.sent), Seed(.failed), Seed(.clicked, at: 1),
            Seed(.sent, "m2"), Seed(.failed, "m2"),
        ]).totals
        #expect(row[.sent] == 2 && row[.failed] == 2 && row[.accepted] == 1)
        #expect(row[.failedButClicked] == 1 && row[.ctrAccepted].isOf(1, 1))
        #expect(row[.ctrSent].isOf(1, 2) && row[.deliveryRate].isOf(1, 2))
    }

    @Test func onlyAButtonThatOpensTheAppIsAClick() throws {
        let row = try ReportBase.report(of: [
            Seed(.action).with { $0.opensApp = true },
            Seed(.action, "m2").with { $0.opensApp = false },
            Seed(.action, "m3"), Seed(.dismissed, "m4"),
            Seed(.dismissed, "m5"), Seed(.clicked, "m5"),
        ]).totals
        #expect(row[.actions] == 3 && row[.clicked] == 2 && row[.engaged] == 4)
        #expect(row[.dismissed] == 2 && row[.dismissRate].isOf(1, 5))
    }

    @Test func confirmedAndInboxOpenEngageAndConsumedDoesNot() throws {
        let row = try ReportBase.report(of: [
            Seed(.confirmed), Seed(.inboxOpen, "m2"), Seed(.consumed, "m3"), Seed(.inboxRead, "m4"),
        ]).totals
        #expect(row[.observed] == 2 && row[.delivered] == 3 && row[.inboxOpened] == 1)
        #expect(row[.engagementRate].isOf(2, 3))
    }

    @Test func silentPushIsOnlyInTheDeliveryRate() throws {
        let row = try ReportBase.report(of: [
            Seed(.sent).with { $0.isSilent = true }, Seed(.received), Seed(.clicked),
            Seed(.sent, "m2"), Seed(.received, "m2"),
        ]).totals
        #expect(row[.deliveryRate].isOf(2, 2) && row[.ctrDelivered].isOf(0, 1))
        #expect(row[.ctrSent].isOf(0, 1) && row[.engagementRate].isOf(0, 1))
    }

    // Events without a device.

    @Test(arguments: [0.0, 9.0]) func sentWithoutDeviceBelongsToTheOnlyDevice(at: Double) throws {
        let report = try ReportBase.report(of: [
            Seed(.sent, on: nil, campaign: "a", at: at), Seed(.received, at: 5),
        ])
        #expect(report.totals[.sent] == 1 && report.totals[.deliveryRate].isOf(1, 1))
        #expect(report.row("a")?[.delivered] == 1 && report.rows.count == 1)
    }

    @Test func eventsWithoutAnyDeviceAreOneUnit() throws {
        let row = try ReportBase.report(of: [Seed(.sent, on: nil), Seed(.clicked, on: nil)]).totals
        #expect(row[.sent] == 1 && row[.ctrSent].isOf(1, 1))
    }

    @Test func sentWithoutDeviceIsUnknownBetweenSeveral() throws {
        let report = try ReportBase.report(of: [
            Seed(.sent, on: nil, campaign: "a"), Seed(.received, on: "d1"),
            Seed(.received, on: "d2"), Seed(.clicked, on: nil), Seed(.displayed, on: nil),
        ])
        let row = try #require(report.row("a"))
        #expect(row[.sent] == nil && row.flags == ["sent_without_device"])
        #expect(row[.delivered] == 3 && row[.clicked] == 1 && row[.failed] == 0)
    }

    // The inbox.

    @Test(arguments: [("m1", nil), ("i1", nil), ("i1", "x"), ("x", "i1")] as [(String, String?)])
    func inboxEventJoinsThePushThatNamesIt(message: String, inbox: String?) throws {
        let report = try ReportBase.report(of: [
            Seed(.received, campaign: "a").with { $0.inbox = "i1" },
            Seed(.inboxOpen, message, at: 9).with { $0.inbox = inbox },
        ])
        #expect(report.rows.count == 1 && report.totals[.delivered] == 1)
        #expect(report.totals[.engagementRate].isOf(1, 1))
    }

    @Test func pushMayNameItselfAsItsInboxMessage() throws {
        let report = try ReportBase.report(of: [
            Seed(.received, campaign: "a").with { $0.inbox = "m1" },
            Seed(.inboxOpen, "x", at: 9).with { $0.inbox = "m1" },
        ])
        #expect(report.rows.count == 1 && report.totals[.engagementRate].isOf(1, 1))
    }

    @Test func inboxEventOfAnotherDeviceIsAUnitOfItsOwn() throws {
        let report = try ReportBase.report(of: [
            Seed(.received, campaign: "a").with { $0.inbox = "i1" },
            Seed(.inboxOpen, "i1", on: "d2", at: 9),
        ])
        #expect(report.row("a")?[.delivered] == 1)
        #expect(report.row("(unattributed)")?[.inboxOpened] == 1)
    }

    @Test func pushWithoutDeviceIsJoinedOverItsOnlyDevice() throws {
        let report = try ReportBase.report(of: [
            Seed(.sent, on: nil, campaign: "a").with { $0.inbox = "i1" }, Seed(.received),
            Seed(.inboxOpen, "i1", at: 9),
        ])
        #expect(report.rows.count == 1 && report.totals[.engagementRate].isOf(1, 1))
    }

    // Campaigns and dimensions.

    @Test func campaignIsOfTheEarliestSentThatNamesOne() throws {
        let report = try ReportBase.report(of: [
            Seed(.received, campaign: "early", at: 0), Seed(.sent, at: 1),
            Seed(.sent, campaign: "right", at: 2), Seed(.sent, campaign: "late", at: 3),
        ])
        #expect(report.rows.map(\.campaign) == ["right"])
        #expect(report.rows[0].flags == ["campaign_mismatch"])
    }

    @Test func tiesGoToTheSmallestIdentity() throws {
        let report = try ReportBase.report(of: [
            Seed(.received, campaign: "b").with { $0.key = ReportBase.key(9) },
            Seed(.displayed, campaign: "a").with { $0.key = ReportBase.key(8) },
        ])
        #expect(report.rows.map(\.campaign) == ["a"])
    }

    @Test func campaignComesFromASentToAnotherDeviceOfTheMessage() throws {
        let report = try ReportBase.report(of: [
            Seed(.clicked, on: "d2", at: 0), Seed(.sent, on: "d1", campaign: "a", at: 5),
        ])
        #expect(report.rows.map(\.campaign) == ["a"] && report.totals.flags.isEmpty)
    }

    @Test func dimensionIsOfTheEarliestEventThatSays() throws {
        let report = try ReportBase.report(of: [
            Seed(.sent, at: 0), Seed(.received, at: 1).with { $0.platform = "ios" },
            Seed(.clicked, at: 2).with { $0.platform = "android" },
        ]) { try $0.set("by", "platform") }
        #expect(report.rows.map(\.dimensions) == [["ios"]] && report.rows[0].campaign == nil)
    }

    @Test func sameCampaignOfTwoAppsIsTwoRows() throws {
        let report = try ReportBase.report(of: [
            Seed(.clicked, campaign: "a"), Seed(.clicked, campaign: "a").with { $0.app = "other" },
        ])
        #expect(report.rows.map(\.app) == ["other", "shop"])
    }

    // Test devices and late events.

    @Test func testUnitsAreLeftOutAndCounted() throws {
        let base = try ReportBase()
        try base.add([
            Seed(.received, campaign: "a").with { $0.isTest = true }, Seed(.clicked),
            Seed(.received, on: "d2", campaign: "a"), Seed(.received, on: "d3", campaign: "a"),
        ])
        try base.connection.execute("INSERT INTO tapline.test_device VALUES ('shop', 'd3')")
        for _ in 0..<2 {
            let row = try base.report().totals
            #expect(row[.delivered] == 1 && row[.clicked] == 0 && row[.testExcluded] == 2)
            let with = try base.report { try $0.set("include-test", "") }.totals
            #expect(with[.delivered] == 3 && with[.testExcluded] == 0)
            try base.rebuild()
        }
    }

    @Test func eventsOverADayLateAreCounted() throws {
        let row = try ReportBase.report(of: [
            Seed(.received).with { $0.delay = 86_401 }, Seed(.clicked).with { $0.delay = 86_400 },
        ]).totals
        #expect(row[.late] == 1)
    }

    @Test func allOfManyClickingIsFlagged() throws {
        for count in [30, 31] {
            let report = try ReportBase.report(
                of: (0..<count).map { Seed(.clicked, "m\($0)", campaign: "a") })
            #expect(report.rows[0].flags == (count > 30 ? ["ctr_100_percent"] : []))
        }
    }
}
