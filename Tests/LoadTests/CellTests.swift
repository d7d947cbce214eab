import Event
import Ingest
import Platform
import Postgres
import PostgresTesting
import Report
import Spool
import Testing

@testable import Load

/// What the loader keeps in cells and special units only saves time: whatever comes in whatever way,
/// each report is that of the events alone.
@Suite struct CellTests {
    struct Dice: RandomNumberGenerator {
        var source: KeySource

        mutating func next() -> UInt64 { source.next() }
        mutating func chance(_ part: Double) -> Bool {
            Double.random(in: 0..<1, using: &self) < part
        }
        mutating func pick<T>(_ values: [T]) -> T { values.randomElement(using: &self)! }
    }

    /// Lines over few messages, devices, inbox ids, campaigns and times, so that all of it meets.
    struct World {
        let messages: Int
        let devices: Int
        let noDevice: Double
        let inbox: Double
        let campaign: Double
        let oneCampaign: Bool
        let sends: Bool
        let types: [String]
        /// How often events name a category, and that of another message; a push group or a topic.
        let category: Double
        let group: Double
        /// Whether there are events that cells cannot tell the pieces of: custom ones of a message, and
        /// others than actions that name a button.
        let hasStrays: Bool
        var made: [String] = []
        /// Of their own, so that a seed makes the same events but for these.
        var details: Dice

        init(_ dice: inout Dice) {
            messages = dice.pick([2, 5, 20, 60])
            devices = dice.pick([1, 2, 4])
            noDevice = dice.pick([0, 0, 0.05, 0.5])
            inbox = dice.pick([0, 0, 0.1, 0.6])
            campaign = dice.pick([0.2, 0.7, 1])
            oneCampaign = dice.chance(0.6)
            sends = dice.chance(0.7)
            types = [
                "received", "push_receive", "clicked", "action", "dismissed", "inbox_open",
                "inbox_read",
                "failed", "confirmed", "launch", "wave", "sent",
            ]
            details = Dice(source: KeySource(state: dice.source.state ^ 7))
            category = details.pick([0, 0.5, 1])
            group = details.pick([0, 0.05, 0.5])
            hasStrays = details.chance(0.3)
        }

        /// What the event of a type and a message shows, and what was pressed.
        private mutating func details(_ type: String, _ message: String) -> [String] {
            var members: [String] = []
            if details.chance(category) {
                let other = details.chance(0.05) ? "other" : "of-\(message)"
                members.append("\"category_id\":\"\(other)\"")
            }
            let named = type == "action" ? 0.9 : hasStrays ? 0.02 : 0
            if details.chance(named) {
                members.append("\"action_id\":\"\(details.pick(["left", "left", "right"]))\"")
            }
            guard details.chance(group) else { return members }
            let member = details.pick([
                #""push_group":"beta""#, #""topic":"n\u0065ws""#,
                #""topic":"news","push_group":"beta""#, #""topic":"old","topic":"sport""#,
                #""topic":7"#, #""topic":"""#, #""in":{"topic":"deep"},"push_group":null"#,
                #""t\u006fpic":"news","a":"topic""#,
            ])
            members.append("\"properties\":{\(member)}")
            return members
        }

        /// A line that is like no other.
        static func line(_ number: Int) -> String {
            """
            {"type":"received","event_uid":"e\(number)","message_uid":"m\(number)","device_id":"d"}
            """
        }

        mutating func line(_ dice: inout Dice) -> String {
            if !made.isEmpty, dice.chance(0.1) { return dice.pick(made) }
            var type = dice.pick(types)
            if type == "sent", !sends { type = "received" }
            let isTracking = type == "launch" || type == "wave"
            let message = "m\(Int.random(in: 0..<messages, using: &dice))"
            var members = ["\"type\":\"\(type)\"", "\"event_uid\":\"e\(made.count)\""]
            if !isTracking || dice.chance(0.5) && (type != "wave" || hasStrays) {
                members.append("\"message_uid\":\"\(message)\"")
            }
            if !dice.chance(noDevice) {
                members.append("\"device_id\":\"d\(Int.random(in: 0..<devices, using: &dice))\"")
            }
            if dice.chance(inbox) {
                let other = "m\(Int.random(in: 0..<messages, using: &dice))"
                members.append("\"inbox_message_uid\":\"\(other)\"")
            }
            if dice.chance(campaign) {
                let name = oneCampaign ? "c" + message : "c\(dice.pick([1, 2, 3]))"
                members.append("\"campaign_id\":\"\(name)\"")
            }
            let at = 1_788_220_800 + dice.pick([0, 3, 40_000, 80_000, 170_000])
            members.append("\"occurred_at\":\(at)")
            if dice.chance(0.7) {
                members.append("\"platform\":\"\(dice.pick(["ios", "android"]))\"")
                if dice.chance(0.8) { members.append("\"app_version\":\"\(dice.pick([1, 2]))\"") }
                if dice.chance(0.1) { members.append("\"locale\":\"en\"") }
            }
            if dice.chance(0.3) { members.append("\"opens_app\":\(dice.chance(0.5))") }
            if dice.chance(0.02) { members.append("\"is_test\":true") }
            if dice.chance(0.05) { members.append("\"silent\":true") }
            members += details(type, message)
            let line = "{" + members.joined(separator: ",") + "}"
            made.append(line)
            return line
        }
    }

    static let everyBy = [
        "campaign", "platform", "day", "campaign,platform", "platform,app_version", "campaign,hour",
        "locale",
    ]
    /// What is of a message or of an event, asked for besides.
    static let everyDetail = [
        "category", "push_group", "topic", "type", "action", "type,action", "campaign,type",
        "day,type", "campaign,action", "action,platform", "category,action", "topic,hour",
        "category,push_group",
    ]

    /// The session of a daemon that knows nothing yet.
    static func session(
        _ fixture: Fixture, _ settings: LoadSettings, picture: Picture = Picture()
    ) throws -> LoadSession {
        let conninfo = fixture.conninfo
        var session = try LoadSession(
            database: { conninfo }, spoolID: .random(), picture: picture, settings: settings)
        _ = try session.claim()
        return session
    }

    /// A session whose first segment has `World.line(0)` and is closed.
    static func sessionWithAClosedSegment(_ fixture: Fixture) throws -> LoadSession {
        var settings = LoadSettings()
        settings.segmentRowsMax = 1
        var session = try session(fixture, settings)
        _ = try session.load(batch([World.line(0)], mark: 1))
        #expect(try session.closeSegmentIfFull())
        return session
    }

    /// Whether a report of now from cells is that from events.
    static func areSame(by: String, on connection: borrowing PostgresConnection) throws -> Bool {
        var options = ReportOptions()
        options.journeys = .never
        try options.set("by", by)
        let cells = try CampaignReport.load(options, on: connection)
        options.isFromEvents = true
        let events = try CampaignReport.load(options, on: connection)
        return cells.totals == events.totals && cells.rows == events.rows
    }

    /// What asks the closed segments that a picture knows of.
    static func lookAhead(_ fixture: Fixture, _ picture: Picture) -> LookAhead {
        let conninfo = fixture.conninfo
        return LookAhead(picture.closed) { () throws(LoadError) in
            try LoadSession.connect({ conninfo }, LoadSettings(), "tapline ahead")
        }
    }

    /// What they say of some events; nil if there are none.
    static func inquire(
        _ fixture: Fixture, _ picture: Picture, _ batch: borrowing LoadBatch
    ) -> Inquiry? {
        var ahead = lookAhead(fixture, picture)
        return ahead.inquire(batch.events, batch.contents)
    }

    static func batch(
        _ lines: [String], mark: UInt64, receivedAt now: Microseconds = 1_788_400_000_000_000
    ) throws -> LoadBatch {
        var decoder = EventDecoder()
        let app = Array("shop".utf8)
        var builder = BodyRecord.Builder(app: app, receivedAt: now)
        for line in lines {
            let bytes = Array(line.utf8)
            _ = decoder.decode(
                line: unsafe bytes.span.bytes, receivedAt: now, sentAtHeader: nil, app: app,
                into: &builder)
        }
        #expect(builder.rejected == 0)
        var batch = LoadBatch()
        try batch.append(
            SpoolRecord(
                payload: builder.finish(), events: lines.count,
                mark: SpoolMark(segment: 1, offset: mark, chain: 0)))
        return batch
    }

    /// Lets a load fail: the server ends the session once it has written to a table.
    static func interrupt(
        _ session: inout LoadSession, _ batch: inout LoadBatch, at table: String,
        _ connection: borrowing PostgresConnection
    ) throws {
        try connection.execute(
            """
            CREATE OR REPLACE FUNCTION public.die() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
            CREATE TRIGGER die AFTER INSERT ON tapline.\(table) EXECUTE FUNCTION public.die();
            """)
        defer { _ = try? connection.execute("DROP TRIGGER die ON tapline.\(table)") }
        do throws(LoadError) {
            _ = try session.load(&batch)
        } catch {
            guard case .postgres = error else { throw error }
        }
    }

    /// What is not as if all were made anew: units that should be special, and cells, the rest.
    static func differences(_ connection: borrowing PostgresConnection) throws -> String {
        try connection.execute(
            """
            BEGIN;
            CREATE TEMP TABLE was_special ON COMMIT DROP AS SELECT DISTINCT unit FROM tapline.special_unit;
            CREATE TEMP TABLE was ON COMMIT DROP AS
                SELECT app, campaign_id, states, units, clicks, late FROM tapline.cell_campaign;
            SELECT tapline.rebuild_cells();
            """)
        let answer = try connection.query(
            """
            SELECT concat_ws(chr(10),
                (SELECT string_agg(DISTINCT 'should be special: ' || unit, chr(10))
                    FROM tapline.special_unit WHERE unit NOT IN (SELECT unit FROM was_special)),
                (SELECT string_agg(format('cell: %s', d), chr(10)) FROM (
                    (SELECT 'before', * FROM was WHERE units <> 0
                        EXCEPT SELECT 'before', * FROM tapline.cell_campaign)
                    UNION ALL (SELECT 'anew', * FROM tapline.cell_campaign
                        EXCEPT SELECT 'anew', * FROM was)) d),
                (SELECT string_agg(format('event: %s', (e.unit, e.inbox_unit, e.type, e.segment, e.batch, e.campaign_id,
                    e.message_uid, e.device_id, e.inbox_message_uid)), chr(10) ORDER BY e.batch) FROM tapline.event e),
                (SELECT string_agg(format('special: %s', (unit, segment, batch)), chr(10) ORDER BY unit) FROM tapline.special_unit))
            """)
        let text = answer.string(0, 0) ?? ""
        try connection.execute("ROLLBACK")
        return text
    }

    @Test(arguments: Seeds.few(16) + [78, 124, 178, 358]) func cellsChangeNoReport(seed: UInt64)
        throws
    {
        var dice = Dice(source: KeySource(state: seed))
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = dice.pick([6, 20, 100_000])
        settings.heavyUnitEvents = dice.pick([4, 1000])
        settings.alwaysWritesNews = dice.chance(0.6)
        // Of its own, so that a seed makes the same events whatever is done with them.
        var news = Dice(source: KeySource(state: seed &+ 1_000))
        let files = news.chance(0.5) ? try fixture.makeIdentityFiles() : nil
        var first = try Self.session(fixture, settings, picture: Picture(identities: files))
        var second = try Self.session(fixture, settings)
        var world = World(&dice)
        let steps = UInt64(dice.pick([4, 16]))
        for step in 0..<steps {
            let lines = (0..<Int.random(in: 1..<14, using: &dice)).map { _ in world.line(&dice) }
            var batch = try Self.batch(lines, mark: step + 1)
            if dice.chance(0.1) {
                first = try Self.session(fixture, settings, picture: Picture(identities: files))
            }
            // What closed segments hold may be asked before whatever comes now.
            var firstEarly: Inquiry?
            var secondEarly: Inquiry?
            if news.chance(0.4) {
                firstEarly = Self.inquire(fixture, first.picture, batch)
                secondEarly = Self.inquire(fixture, second.picture, batch)
            }
            if dice.chance(0.1) {
                // The session dies at some moment; the next one goes on with what it knows.
                let open = try fixture.int("SELECT segment FROM tapline.turn")
                try Self.interrupt(
                    &first, &batch, at: dice.pick(["event_\(open)", "cell_change", "batch"]),
                    connection)
                first = try Self.session(fixture, settings, picture: first.picture)
            }
            if dice.chance(0.1) {
                // The answer to COMMIT is lost: the batch comes again, and nothing is believed.
                _ = try second.load(&batch)
                second.picture.forget()
            }
            if dice.chance(0.05) {
                try fixture.run(
                    "INSERT INTO tapline.test_device VALUES ('shop', 'd0') ON CONFLICT DO NOTHING")
                if dice.chance(0.7) { try second.applyMarks() }
            }
            if news.chance(0.4) { first.readAhead() }
            if news.chance(0.4) { second.readAhead() }
            if news.chance(0.1) {
                // A server that crashes forgets what daemons have written for each other.
                try fixture.run("DELETE FROM tapline.batch_news WHERE batch % 2 = \(step % 2)")
            }
            if dice.chance(0.7) {
                batch.inquiry = firstEarly.take()
                _ = try first.load(&batch)
                try first.closeSegmentIfFull()
            } else {
                batch.inquiry = secondEarly.take()
                _ = try second.load(&batch)
                try second.closeSegmentIfFull()
            }
            if dice.chance(0.3) { try Segments.sealClosing(connection) }
            if dice.chance(0.05) { try fixture.run("SELECT tapline.rebuild_cells()") }
            let asked =
                [dice.pick(Self.everyBy)]
                + Self.everyDetail.shuffled(using: &news).prefix(step == steps - 1 ? 5 : 1)
            let includesTest = dice.chance(0.3)
            // Now, or what was known after some batch before.
            let past =
                dice.chance(0.5)
                ? try fixture.int(
                    """
                    SELECT (extract(epoch FROM stored_at) * 1000000)::bigint FROM tapline.batch
                    ORDER BY hashint8(batch + \(step)) LIMIT 1
                    """) : nil
            // Of one campaign, too: what is special elsewhere is left out of that.
            let one = news.pick(
                ["c1", "c2", "c3", "cm0", "cm1", "cm2", "(unattributed)"])
            var questions = (asked + ["campaign"]).map { by in ["by": by] }
            questions[questions.count - 1]["campaign"] = one
            // What happened in a period, of which only the units active in it are read.
            questions.append([
                "by": news.pick(Self.everyBy), "by-activity": "",
                "from": news.pick(["2026-08-30", "2026-09-01T00:00:02Z", "2026-09-01T11:15:00Z"]),
                "to": news.pick(["2026-09-01T11:00:00Z", "2026-09-02", "2026-09-10"]),
            ])
            for question in questions {
                func report(fromEvents: Bool) throws -> CampaignReport {
                    var options = ReportOptions()
                    options.journeys = .never
                    options.asOf = past.map { .instant($0) }
                    for (name, value) in question { try options.set(name, value) }
                    options.includesTest = includesTest
                    options.isFromEvents = fromEvents
                    return try CampaignReport.load(options, on: connection)
                }
                let (cells, exact) = (try report(fromEvents: false), try report(fromEvents: true))
                #expect(
                    cells.totals == exact.totals && cells.rows == exact.rows,
                    "seed \(seed), step \(step), \(question), as of \(past ?? 0)")
                if cells.totals != exact.totals || cells.rows != exact.rows {
                    Issue.record("\(try Self.differences(connection))")
                    return
                }
            }
        }
        #expect(try fixture.int("SELECT count(*) - count(DISTINCT key) FROM tapline.event") == 0)
        #expect(
            try fixture.int("SELECT count(*) FROM tapline.event") == Int64(Set(world.made).count))
    }

    @Test func aHungLoaderIsGivenUp() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.statementTimeoutMilliseconds = 300
        var hung = try Self.session(fixture, settings)
        var other = try Self.session(fixture, LoadSettings())
        // It has the turn and does nothing with it: the server ends its session.
        _ = try hung.takeTurn()
        var batch = try Self.batch([World.line(1), World.line(2)], mark: 1)
        #expect(try other.load(&batch) == [.stored, .stored])
        #expect(throws: LoadError.self) { _ = try hung.load(&batch) }
        var next = try Self.session(fixture, settings, picture: hung.picture)
        #expect(try next.load(&batch) == [.duplicate, .duplicate])
    }

    @Test func whoWaitsForTheTurnReadsAhead() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.alwaysWritesNews = true
        var first = try Self.session(fixture, settings)
        var second = try Self.session(fixture, settings)
        _ = try second.load(Self.batch([World.line(0)], mark: 1))
        _ = try first.load(Self.batch([World.line(1), World.line(2)], mark: 1))
        settings.statementTimeoutMilliseconds = 1_500
        var hung = try Self.session(fixture, settings)
        // It keeps the turn until the server ends its session.
        _ = try hung.takeTurn()
        #expect(second.picture.batch == 1)
        let turn = try second.takeTurn()
        #expect(turn.previous == 2)
        #expect(second.picture.batch == 2 && second.picture.openRows == 3)
        second.rollback()
        let batch = try Self.batch([World.line(2), World.line(3)], mark: 2)
        #expect(try second.load(batch) == [.duplicate, .stored])
    }

    @Test func whatReadsAheadMayFail() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.alwaysWritesNews = true
        var first = try Self.session(fixture, settings)
        var second = try Self.session(fixture, settings)
        _ = try second.load(Self.batch([World.line(0)], mark: 1))
        _ = try first.load(Self.batch([World.line(1)], mark: 1))
        second.readAhead()
        #expect(second.picture.batch == 2)
        _ = try first.load(Self.batch([World.line(2)], mark: 2))
        try fixture.run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'tapline news' AND datname = current_database()
            """)
        second.readAhead()
        let batch = try Self.batch((0..<4).map { World.line($0) }, mark: 2)
        #expect(try second.load(batch) == [.duplicate, .duplicate, .duplicate, .stored])
    }

    @Test(arguments: Seeds.few(4)) func newsSaysWhatTheRowsSay(seed: UInt64) throws {
        var dice = Dice(source: KeySource(state: seed))
        var world = World(&dice)
        let batch = try Self.batch((0..<100).map { _ in world.line(&dice) }, mark: 1)
        let (writer, reader) = (OpenBox(number: 1), OpenBox(number: 1))
        var older = OlderUnits()
        var fold = Fold(isWriting: true)
        // Of an earlier batch, which was smaller or larger.
        var buffer = [UInt8](repeating: 0xA5, count: Int(seed) * 4_000)
        fold.news = BatchNews(capacity: 1, reusing: &buffer)
        var labels = BatchLabelMap(batch)
        for row in 0..<batch.count { writer.add(row, of: batch, &labels, &older, &fold) }
        let written = fold.news?.finish(writer.segment)
        let bytes = try #require(written)
        for count in 0..<bytes.count {
            let cut = Array(bytes[..<count])
            let isRead = unsafe BatchNews.Reader(cut.span.bytes, &reader.segment) != nil
            #expect(!isRead, "cut after \(count) bytes")
        }
        let whole = unsafe BatchNews.Reader(bytes.span.bytes, &reader.segment)
        let news = try #require(whole)
        #expect(news.count == batch.count)
        for row in 0..<batch.count {
            let entry = unsafe news.entry(row, bytes.span.bytes)
            let (mine, theirs) = (batch.events[row], entry.event)
            #expect(theirs.key == mine.key && theirs.unit == mine.unit)
            #expect(theirs.inbox == mine.inbox && theirs.time == mine.time)
            #expect(theirs.isLate == mine.isLate && theirs.propertiesHash == mine.propertiesHash)
            #expect(theirs.type == mine.type && theirs.states == mine.states)
            #expect(theirs.pattern == mine.pattern && theirs.hasCampaign == mine.hasCampaign)
            #expect(entry.content == batch.contents[row])
            func texts(_ range: Range<Int>) -> [UInt8] {
                unsafe batch.bytes(row).extracting(range).withUnsafeBytes { unsafe [UInt8]($0) }
            }
            let campaign = texts(mine.app) + texts(mine.campaign)
            let profile = texts(mine.device) + texts(mine.place)
            let (labelled, dimensions) = (
                reader.segment.campaignFields(entry.campaign),
                reader.segment.profileFields(entry.profile)
            )
            #expect(labelled == campaign)
            // Whatever else the event names is behind the dimensions.
            #expect(dimensions == batch.profileFields(batch.labels[row].profile))
            #expect(dimensions.starts(with: profile))
        }
    }

    @Test func aUnitThatTwoDaemonsLoadIsNoSpecialOne() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.alwaysWritesNews = true
        var first = try Self.session(fixture, settings)
        var second = try Self.session(fixture, settings)
        func batch(_ type: String, _ mark: UInt64) throws -> LoadBatch {
            try Self.batch(
                (0..<5).map { number in
                    """
                    {"type":"\(type)","event_uid":"\(type)-\(number)","message_uid":"m\(number)",\
                    "device_id":"d","campaign_id":"c\(number % 2)","platform":"ios","locale":"en"}
                    """
                }, mark: mark)
        }
        _ = try second.load(Self.batch([World.line(99)], mark: 1))
        _ = try first.load(batch("received", 1))
        _ = try second.load(batch("clicked", 2))
        _ = try first.load(batch("dismissed", 2))
        #expect(try fixture.int("SELECT count(*) FROM tapline.special_unit") == 0)
        #expect(
            try fixture.int(
                "SELECT sum(units) FROM tapline.cell_campaign "
                    + "WHERE states = (1 << 3) + (1 << 7) + (1 << 9) + (1 << 20)") == 5)
    }
}
