import Event
import Explain
import Postgres
import Testing

@testable import Load

/// Segments whose events name no inbox message have no index for it, and are not asked.
@Suite struct InboxSegmentTests {
    private static func line(_ message: String, _ members: String = "") -> String {
        #"{"type":"clicked","event_uid":"\#(message)","message_uid":"\#(message)"\#(members)}"#
    }

    /// Three segments of which the second names an inbox message, and nobody's memory of them.
    private static func fixture() throws -> Fixture {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.segmentRowsMax = 1
        var session = try CellTests.session(fixture, settings)
        let lines = [
            line("a", #","device_id":"d""#),
            line("b", #","device_id":"d","inbox_message_uid":"i""#),
            line("c", #","device_id":"d""#),
        ]
        for (number, line) in lines.enumerated() {
            _ = try session.load(CellTests.batch([line], mark: UInt64(number + 1)))
            #expect(try session.closeSegmentIfFull())
        }
        return fixture
    }

    @Test func onlyTheSegmentsThatNameInboxMessagesAreIndexedForIt() throws {
        let fixture = try Self.fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        let indexes = try connection.execute(
            "SELECT string_agg(indexname, ' ') FROM pg_indexes WHERE indexname LIKE 'event%inbox%'")
        #expect(indexes.string(0, 0) == "event_2_inbox_unit")
        // Of the open one it is not known yet.
        #expect(try Segments.withInbox(connection).sorted() == [2, 4])
    }

    /// The inbox event itself, and one without a device, which may count with any unit of the message.
    @Test(arguments: [#","device_id":"d""#, ""])
    func whoNamesAnInboxMessageIsFoundWhereverItIs(device: String) throws {
        let fixture = try Self.fixture()
        var session = try CellTests.session(fixture, LoadSettings())
        let open = #"{"type":"inbox_open","event_uid":"o","message_uid":"i"\#(device)}"#
        #expect(try session.load(CellTests.batch([open], mark: 4)) == [.stored])
        let units = try fixture.int("SELECT count(DISTINCT unit) FROM tapline.special_unit")
        #expect(units == 2)
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        #expect(try CellTests.areSame(by: "campaign", on: connection))
        let story = try Explainer(uid: "i", app: nil, dataDirectory: "/nowhere").explain(connection)
        #expect(story.events.map { $0.row.text(.messageUID) ?? "" }.sorted() == ["b", "i"])
    }

    /// The daemon that closes a segment knows of it by what another one wrote down, or by reading the segment.
    @Test(arguments: [true, false])
    func whatAnotherDaemonStoredIsIndexedToo(readsAlong: Bool) throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.alwaysWritesNews = true
        settings.segmentRowsMax = readsAlong ? 3 : 2
        var closing = try CellTests.session(fixture, settings)
        var other = try CellTests.session(fixture, settings)
        if readsAlong {
            _ = try closing.load(CellTests.batch([Self.line("a", #","device_id":"d""#)], mark: 1))
        }
        let named = Self.line("b", #","device_id":"d","inbox_message_uid":"i""#)
        _ = try other.load(CellTests.batch([named], mark: 1))
        if !readsAlong { try fixture.run("DELETE FROM tapline.batch_news") }
        _ = try closing.load(CellTests.batch([Self.line("c", #","device_id":"d""#)], mark: 2))
        #expect(try closing.closeSegmentIfFull())
        #expect(
            try fixture.int(
                "SELECT count(*) FROM pg_indexes WHERE indexname = 'event_1_inbox_unit'") == 1)
        #expect(
            try fixture.int("SELECT count(*) FROM tapline.segment WHERE segment = 1 AND has_inbox")
                == 1)
    }
}
