import Event
import Platform
import Postgres
import PostgresTesting
import Testing

@testable import Load

/// What is kept of units that a report computes from their events.
@Suite struct SpecialUnitTests {
    /// A report of one campaign leaves out the special units of others, those of the open segment, too.
    @Test func whatCampaignASpecialUnitIsOfIsKnownWhileTheSegmentIsOpen() throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = 7
        var first = try CellTests.session(fixture, settings)
        var second = try CellTests.session(fixture, settings)
        func line(_ number: Int, _ message: String, _ members: String) -> String {
            #"{"type":"received","event_uid":"e\#(number)","message_uid":"\#(message)","device_id":"d"\#(members)}"#
        }
        func expectSpecial(
            _ expected: [[String?]], _ location: SourceLocation = #_sourceLocation
        ) throws {
            let answer = try connection.query(
                "SELECT segment::text, campaigns::text FROM tapline.special_unit ORDER BY 1, 2")
            let found = (0..<answer.rows).map { [answer.string($0, 0), answer.string($0, 1)] }
            #expect(found == expected, sourceLocation: location)
        }
        let inbox = #","inbox_message_uid":"other""#
        // Two units name one inbox message, so that both are special; the one names a campaign.
        _ = try first.load(CellTests.batch([line(1, "a", inbox + #","campaign_id":"c""#)], mark: 1))
        try expectSpecial([])
        _ = try second.load(CellTests.batch([line(2, "b", inbox)], mark: 1))
        try expectSpecial([["1", "{c}"], ["1", "{}"]])
        // It names the same again, and then the other one names its first, from another daemon.
        _ = try first.load(CellTests.batch([line(3, "a", #","campaign_id":"c""#)], mark: 2))
        _ = try second.load(CellTests.batch([line(4, "a", "")], mark: 2))
        try expectSpecial([["1", "{c}"], ["1", "{}"]])
        _ = try first.load(CellTests.batch([line(5, "b", #","campaign_id":"d""#)], mark: 3))
        try expectSpecial([["1", "{c}"], ["1", "{d}"]])
        // A second campaign.
        _ = try second.load(CellTests.batch([line(6, "a", #","campaign_id":"d""#)], mark: 3))
        try expectSpecial([["1", "{d}"], ["1", nil]])
        _ = try first.load(CellTests.batch([line(7, "c", "")], mark: 4))
        try first.closeSegmentIfFull()
        try Segments.sealClosing(connection)
        try expectSpecial([["1", "{c,d}"], ["1", "{d}"]])
        // Of the next segment they are special from the start, by what is known of both.
        _ = try second.load(CellTests.batch([line(8, "a", ""), line(9, "b", "")], mark: 4))
        try expectSpecial([["1", "{c,d}"], ["1", "{d}"], ["2", "{d}"], ["2", nil]])
    }

    /// What may count with another unit says nothing of its own, and what is left may be of any campaign, unless
    /// an event that stays names it.
    @Test(arguments: [false, true])
    func whatMayMoveToAnotherUnitNamesNoCampaign(isNamedByOther: Bool) throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = 4
        var session = try CellTests.session(fixture, settings)
        func line(_ type: String, _ message: String, _ members: String) -> String {
            #"{"type":"\#(type)","event_uid":"\#(type)","message_uid":"\#(message)"\#(members)}"#
        }
        let (device, campaign) = (#","device_id":"d""#, #","campaign_id":"c""#)
        _ = try session.load(
            CellTests.batch(
                [
                    line("received", "a", device), line("inbox_open", "a", device + campaign),
                    line("clicked", "b", device + #","inbox_message_uid":"a""#),
                    line("sent", "b", campaign),
                ], mark: 1))
        func expectNamed(
            _ expected: Int64, units: Int64 = 3, _ location: SourceLocation = #_sourceLocation
        ) throws {
            let found = try fixture.int("SELECT count(*) FROM tapline.special_unit")
            let named = try fixture.int(
                "SELECT count(*) FROM tapline.special_unit WHERE campaigns <> '{}'")
            #expect(found == units && named == expected, sourceLocation: location)
        }
        try expectNamed(0)
        if isNamedByOther {
            let staying = [line("dismissed", "a", device + campaign)]
            _ = try session.load(CellTests.batch(staying, mark: 2))
            try expectNamed(1)
        }
        try session.closeSegmentIfFull()
        try Segments.sealClosing(connection)
        try expectNamed(isNamedByOther ? 1 : 0)
        // Of another segment it is known by what the first one says.
        let more = (0..<4).map { CellTests.World.line($0) }
        _ = try session.load(
            CellTests.batch([line("inbox_read", "a", device + campaign)] + more, mark: 3))
        try session.closeSegmentIfFull()
        try Segments.sealClosing(connection)
        try expectNamed(isNamedByOther ? 2 : 0, units: 4)
    }

    /// A unit with very many events stays heavy when cells are made anew, and its repeats are still found.
    @Test func whatIsHeavyStaysSoWhenCellsAreMadeAnew() throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = 5
        settings.heavyUnitEvents = 4
        var session = try CellTests.session(fixture, settings)
        func press(_ number: Int) -> String {
            #"{"type":"clicked","event_uid":"p\#(number)","message_uid":"m","device_id":"d"}"#
        }
        _ = try session.load(
            CellTests.batch((0..<5).map(press) + [CellTests.World.line(1)], mark: 1))
        #expect(try session.closeSegmentIfFull())
        func heavy() throws -> [String?] {
            let answer = try connection.query(
                """
                SELECT unit || ' in ' || segment FROM tapline.special_unit WHERE is_heavy ORDER BY 1
                """)
            return (0..<answer.rows).map { answer.string($0, 0) }
        }
        let before = try heavy()
        #expect(before.count == 1)
        _ = try Rebuild.run(connection)
        let after = try heavy()
        #expect(after == before)
        let verdicts = try session.load(
            CellTests.batch([press(3), press(7), CellTests.World.line(1)], mark: 2))
        #expect(verdicts == [.duplicate, .stored, .duplicate])
        #expect(try CellTests.areSame(by: "campaign", on: connection))
        let counted = try fixture.int("SELECT count(*) FROM tapline.event")
        #expect(counted == 7)
    }
}
