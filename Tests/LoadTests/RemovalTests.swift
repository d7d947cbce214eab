import Event
import Ingest
import Postgres
import PostgresTesting
import Report
import Spool
import Testing

@testable import Load

/// Removing the content of events changes no report, and none of them can be stored again.
@Suite struct RemovalTests {
    typealias Dice = CellTests.Dice

    /// A line of ``CellTests/World`` with all that an event can say of a person.
    static func wordy(_ line: String) -> String {
        line.dropLast() + #","person_id":"secret-person","sdk_version":"secret-1","#
            + #""collapse_key":"secret","sent_at":1788300000,"properties":{"note":"secret"}}"#
    }

    /// The content that is left in a table: events that have any.
    static func contents(_ fixture: Fixture, _ which: String = "true") throws -> Int64 {
        try fixture.int(
            """
            SELECT count(*) FROM tapline.event e
            WHERE (\(which)) AND (message_uid <> '' OR device_id <> '' OR num_nonnulls(
                    event_uid, inbox_message_uid, collapse_key, person_id,
                    sdk_version, occurred_raw, sent_at, properties) > 0)
            """)
    }

    static func report(
        _ connection: borrowing PostgresConnection, by: String, fromEvents: Bool
    ) throws -> CampaignReport {
        var options = ReportOptions()
        options.journeys = fromEvents ? .always : .never
        try options.set("by", by)
        options.isFromEvents = fromEvents
        return try CampaignReport.load(options, on: connection)
    }

    @Test(arguments: Seeds.few(8)) func removingContentChangesNoReportAndNoVerdict(seed: UInt64)
        throws
    {
        var dice = Dice(source: KeySource(state: seed))
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = dice.pick([6, 20, 100_000])
        settings.heavyUnitEvents = dice.pick([4, 1000])
        settings.alwaysWritesNews = dice.chance(0.6)
        var first = try CellTests.session(fixture, settings)
        var second = try CellTests.session(fixture, settings)
        var world = CellTests.World(&dice)
        var erased: Set<String> = []
        for step in 0..<UInt64(12) {
            let lines = (0..<Int.random(in: 1..<14, using: &dice)).map { _ in
                Self.wordy(world.line(&dice))
            }
            let batch = try CellTests.batch(lines, mark: step + 1)
            if dice.chance(0.1) { first = try CellTests.session(fixture, settings) }
            if dice.chance(0.6) {
                _ = try first.load(batch)
                try first.closeSegmentIfFull()
            } else {
                _ = try second.load(batch)
                try second.closeSegmentIfFull()
            }
            if dice.chance(0.3) { try Segments.sealClosing(connection) }
            if dice.chance(0.1) {
                // Marked after it was erased, or before.
                try fixture.run(
                    "INSERT INTO tapline.test_device VALUES ('shop', 'd0') ON CONFLICT DO NOTHING")
                try second.applyMarks()
            }
            let by = dice.pick(CellTests.everyBy)
            let before = try Self.report(connection, by: by, fromEvents: true)
            if dice.chance(0.3) {
                let device = "d\(dice.pick([0, 1, 2]))"
                erased.insert(device)
                _ = try Erasure.run(
                    connection, .init(devices: [device], persons: [], app: nil))
            }
            if dice.chance(0.15) {
                _ = try Retention.run(connection, receivedBefore: 1_788_400_000_000_001)
                #expect(try Self.contents(fixture) == 0)
            }
            let after = try Self.report(connection, by: by, fromEvents: true)
            #expect(before.totals == after.totals && before.rows == after.rows)
            let cells = try Self.report(connection, by: by, fromEvents: false)
            var options = ReportOptions()
            options.journeys = .never
            try options.set("by", by)
            options.isFromEvents = true
            let events = try CampaignReport.load(options, on: connection)
            #expect(
                cells.totals == events.totals && cells.rows == events.rows,
                "seed \(seed), step \(step), by \(by)")
            // Lines that came before the erasure and are loaded after it have nothing either.
            for device in erased {
                #expect(
                    try Self.contents(
                        fixture,
                        "tapline.unit_device(unit) = tapline.hash64('shop', '\(device)')") == 0)
            }
        }
        let again = try CellTests.batch(world.made.map(Self.wordy), mark: 100)
        #expect(try first.load(again).allSatisfy { $0 == .duplicate })
        let stored = try fixture.int("SELECT count(*) FROM tapline.event")
        #expect(stored == Int64(Set(world.made).count))
    }

    @Test func aReportUnderWayGoesOnWithWhatItBeganWith() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.segmentRowsMax = 6
        var session = try CellTests.session(fixture, settings)
        for mark in 1..<4 {
            let lines = (0..<6).map { Self.wordy(CellTests.World.line(mark * 10 + $0)) }
            _ = try session.load(CellTests.batch(lines, mark: UInt64(mark)))
            if mark < 3 { try session.closeSegmentIfFull() }
        }
        let reader = try PostgresConnection(conninfo: fixture.conninfo)
        let remover = try PostgresConnection(conninfo: fixture.conninfo)
        /// Every column of every event, and the report by campaign and day of the same snapshot.
        func seen() throws -> (events: [String], report: [String], named: Int64?) {
            func rows(_ sql: String) throws -> [String] {
                let answer = try reader.query(sql)
                return (0..<answer.rows).map { answer.string($0, 0) ?? "" }
            }
            return (
                try rows("SELECT e::text FROM tapline.event e ORDER BY key"),
                try rows("SELECT r::text FROM tapline.report('campaign,day') r ORDER BY 1"),
                try reader.query("SELECT count(*) FROM tapline.event WHERE device_id = 'd'")
                    .int64(0, 0)
            )
        }
        try reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        let first = try seen()
        #expect(first.named == 18 && first.events.count == 18 && first.report.count > 1)
        let erased = try Erasure.run(remover, .init(devices: ["d"], persons: [], app: nil))
        #expect(erased.events == 18)
        // What it holds cannot be made smaller now; nothing else waits for it.
        let held = try Retention.run(remover, receivedBefore: 1_788_400_000_000_001)
        #expect(held.compacted == 0 && held.busy == [1, 2])
        let again = try seen()
        #expect(again.events == first.events && again.report == first.report)
        try reader.execute("COMMIT")
        let after = try seen()
        #expect(after.named == 0 && after.events != first.events)
        #expect(after.events.count == 18 && after.report == first.report)
        let free = try Retention.run(remover, receivedBefore: 1_788_400_000_000_001)
        #expect(free.compacted == 2 && free.busy.isEmpty && free.events == 0)
        #expect(try seen().report == first.report)
    }

    @Test func retentionTakesOnlyWhatIsOldAndOnlyOnce() throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = 6
        var session = try CellTests.session(fixture, settings)
        let times: [Int64] = [100, 200, 300, 400]
        for (place, time) in times.enumerated() {
            let lines = (0..<3).map { Self.wordy(CellTests.World.line(place * 10 + $0)) }
            let batch = try CellTests.batch(
                lines, mark: UInt64(place + 1), receivedAt: (1_788_400_000 + time) * 1_000_000)
            _ = try session.load(batch)
            try session.closeSegmentIfFull()
        }
        func files() throws -> Int64 {
            try fixture.int(
                "SELECT sum(relfilenode::bigint) FROM pg_class WHERE relname IN ('event_1', 'event_2')"
            )
        }
        func rows() throws -> Int64 {
            try fixture.int("SELECT sum(xmin::text::bigint) FROM tapline.event")
        }
        // Two segments of two batches each, and an open one without rows.
        for (after, events, compacted) in [
            (100, 0, 0), (101, 3, 0), (201, 3, 1), (301, 3, 0), (900, 3, 1),
        ] as [(Int64, Int64, Int)] {
            let horizon = (1_788_400_000 + after) * 1_000_000
            let outcome = try Retention.run(connection, receivedBefore: horizon)
            #expect(outcome.events == events && outcome.compacted == compacted, "\(after)")
            let isOld = "received_at < to_timestamp(\(1_788_400_000 + after))"
            #expect(try Self.contents(fixture, isOld) == 0)
            let kept = Int64(times.count { $0 >= after } * 3)
            #expect(try Self.contents(fixture, "NOT \(isOld)") == kept)
            let was = (try files(), try rows())
            let again = try Retention.run(connection, receivedBefore: horizon)
            #expect(again == Retention.Outcome())
            #expect(try (files(), rows()) == was, "nothing is written")
        }
        // What is loaded later with an old time, as from a spool that was away, is found all the same.
        let late = try CellTests.batch(
            (0..<3).map { Self.wordy(CellTests.World.line(900 + $0)) }, mark: 9,
            receivedAt: 1_788_400_050_000_000)
        _ = try session.load(late)
        let outcome = try Retention.run(connection, receivedBefore: 1_788_400_900_000_000)
        #expect(outcome.events == 3)
    }

    @Test func oneRemovalAtATime() throws {
        let fixture = try Fixture()
        let first = try PostgresConnection(conninfo: fixture.conninfo)
        let second = try PostgresConnection(conninfo: fixture.conninfo)
        _ = try Erasure.run(first, .init(devices: ["d"], persons: [], app: nil))
        #expect(throws: LoadError.removalIsRunning) {
            _ = try Retention.run(second, receivedBefore: 0)
        }
    }

    /// What an event said is gone from the file too, also if its segment was open when it was erased. Segments
    /// without such events are not even looked at.
    @Test(arguments: [false, true])
    func aSegmentIsVacuumedWhenItIsClosedIfEventsWereChangedInIt(isByRetention: Bool) throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = 6
        var session = try CellTests.session(fixture, settings)
        for mark in 1..<4 {
            let lines = (0..<6).map { Self.wordy(CellTests.World.line(mark * 10 + $0)) }
            _ = try session.load(CellTests.batch(lines, mark: UInt64(mark)))
            if mark == 2 {
                let events =
                    isByRetention
                    ? try Retention.run(connection, receivedBefore: 1_788_400_000_000_001).events
                    : try Erasure.run(
                        connection, .init(devices: ["d"], persons: [], app: nil)
                    ).events
                #expect(events == 12)
            }
            try session.closeSegmentIfFull()
            if mark != 1 { try Segments.sealClosing(connection) }
        }
        func vacuumed(_ segment: Int) throws -> Int64 {
            try fixture.int(
                "SELECT vacuum_count FROM pg_stat_all_tables WHERE relname = 'event_\(segment)'")
        }
        #expect(try vacuumed(2) == 1)
        // What came before an erasure and is loaded after it is changed as it is loaded.
        #expect(try vacuumed(3) == (isByRetention ? 0 : 1))
    }
}
