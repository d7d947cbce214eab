import Event
import Platform
import Postgres
import PostgresTesting
import Testing

@testable import Load

/// A file of identities never takes an event that is not stored for a repeat, whatever became of it.
@Suite struct IdentityFileTests {
    typealias World = CellTests.World

    private static let closing = ClosingID(high: 1, low: 2)

    /// A segment of some events, and these.
    private static func segment(
        _ count: Int, _ dice: inout CellTests.Dice
    ) -> (segment: OpenBox, events: [IdentityFile.Wanted]) {
        let box = OpenBox(number: 1)
        let events = (0..<count).map { number in
            let content = EventContent(
                campaign: dice.pick([0, 1, dice.next()]),
                properties: dice.pick([0, 1, dice.next()]))
            let key = Identity(high: dice.next(), low: dice.next())
            box.segment.addKey(key, content)
            return IdentityFile.Wanted(key: key, content: content, number: number)
        }
        return (box, events)
    }

    /// Looks for the events, for each of them with another content, and for as many that are not there.
    ///
    /// - Returns: The numbers of those that were found, and whether the file was of use to the end.
    private static func find(
        _ path: String, _ events: [IdentityFile.Wanted], _ dice: inout CellTests.Dice
    ) -> (found: [Int], isWhole: Bool) {
        var strangers: [IdentityFile.Wanted] = []
        for event in events {
            let (key, content) = (event.key, event.content)
            strangers.append(
                .init(
                    key: key,
                    content: .init(campaign: content.campaign &+ 1, properties: content.properties),
                    number: -1))
            strangers.append(
                .init(
                    key: key,
                    content: .init(campaign: content.properties, properties: content.campaign &+ 7),
                    number: -2))
            strangers.append(
                .init(
                    key: .init(high: key.high, low: key.low ^ 1 << (dice.next() % 64)),
                    content: content, number: -3))
            strangers.append(
                .init(
                    key: .init(high: key.high ^ 1 << (dice.next() % 64), low: key.low),
                    content: content, number: -4))
        }
        var found: [Int] = []
        guard let file = try? IdentityFile(path: path, of: closing) else { return ([], false) }
        var isWhole = true
        for some in [events, strangers] {
            do {
                try file.find(some) { found.append($0.number) }
            } catch { isWhole = false }
        }
        return (found, isWhole)
    }

    @Test(arguments: [0, 1, 2, 203, 204, 205, 408, 5_000, 120_000])
    func allThatIsStoredIsFoundAndNothingElse(count: Int) throws {
        var dice = CellTests.Dice(source: KeySource(state: UInt64(count)))
        let path = try TestDirectory.make() + "/file"
        defer { TestDirectory.remove(Directory.parent(of: path)) }
        let (box, events) = Self.segment(count, &dice)
        let written = try IdentityFile.write(path, of: Self.closing, .init(box.segment))
        #expect(try File.contents(of: path).count == written.bytes)
        #expect(Self.find(path, events, &dice) == (Array(0..<count), true))
        #expect(throws: IdentityFile.Damage.self) {
            try IdentityFile(path: path, of: ClosingID(high: 1, low: 3))
        }
    }

    /// One bit, a page of zeros, as a crash of the machine leaves it, or an end that is missing.
    @Test func whatIsDamagedFindsNothingThatIsNotThere() throws {
        var dice = CellTests.Dice(source: KeySource(state: 5))
        let path = try TestDirectory.make() + "/file"
        defer { TestDirectory.remove(Directory.parent(of: path)) }
        let (box, events) = Self.segment(3_000, &dice)
        _ = try IdentityFile.write(path, of: Self.closing, .init(box.segment))
        let good = try File.contents(of: path)
        var noticed = 0
        for round in 0..<300 {
            var bytes = good
            switch round % 3 {
            case 0:
                let index = Int.random(in: 0..<bytes.count, using: &dice)
                bytes[index] ^= 1 << UInt8(round / 3 % 8)
            case 1:
                let start = Int.random(in: 0..<bytes.count / 4096, using: &dice) * 4096
                for index in start..<start + 4096 { bytes[index] = 0 }
            default: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &dice))
            }
            try File(path, .replace).write(bytes.span, at: 0)
            // What is found is one of them, and what was found before the damage was, too.
            let (found, isWhole) = Self.find(path, events, &dice)
            #expect(found == Array(0..<found.count), "round \(round)")
            #expect(found.count == events.count || !isWhole, "round \(round)")
            noticed += isWhole ? 0 : 1
        }
        // Not so only where nothing is: in the rest of the header and of the last block.
        #expect(noticed > 200)
    }

    /// After a crash of the machine a file may have blocks of one that was removed.
    @Test func aBlockOfAnotherClosingIsNotBelieved() throws {
        var dice = CellTests.Dice(source: KeySource(state: 8))
        let path = try TestDirectory.make() + "/file"
        defer { TestDirectory.remove(Directory.parent(of: path)) }
        let (box, events) = Self.segment(1_000, &dice)
        _ = try IdentityFile.write(path, of: .init(high: 1, low: 3), .init(box.segment))
        let other = try File.contents(of: path)
        _ = try IdentityFile.write(path, of: Self.closing, .init(box.segment))
        var bytes = try File.contents(of: path)
        bytes.replaceSubrange(4096..<8192, with: other[4096..<8192])
        try File(path, .replace).write(bytes.span, at: 0)
        #expect(Self.find(path, events, &dice) == ([], false))
        // Nor one of another place.
        _ = try IdentityFile.write(path, of: Self.closing, .init(box.segment))
        bytes = try File.contents(of: path)
        bytes.replaceSubrange(4096..<8192, with: bytes[8192..<12288])
        try File(path, .replace).write(bytes.span, at: 0)
        #expect(Self.find(path, events, &dice) == ([], false))
    }

    /// After the oldest, if there is not room for all, and those of other closings.
    @Test func theNewestAreKept() throws {
        var dice = CellTests.Dice(source: KeySource(state: 6))
        let directory = try TestDirectory.make()
        defer { TestDirectory.remove(directory) }
        let files = IdentityFiles(directory: directory, bytesMax: 30_000)
        var written: [Int: IdentityFile] = [:]
        for segment in 1...4 {
            let (box, _) = Self.segment(300, &dice)
            box.segment.start(number: segment)
            box.segment.addKey(.init(high: 1, low: 1), .init(campaign: 1, properties: 1))
            written[segment] = files.write(
                .init(box.segment), segment, .init(high: 0, low: UInt64(segment)))
        }
        #expect(written.count == 4)
        try File(directory + "/9-x.identities.new", .createNew).write([1].span, at: 0)
        var closings = Dictionary(
            uniqueKeysWithValues: (1...4).map { ($0, ClosingID(high: 0, low: UInt64($0))) })
        closings[3] = ClosingID(high: 7, low: 7)
        func kept(_ bytesMax: Int) throws -> [Int] {
            let closed = ClosedSegments(
                identities: .init(directory: directory, bytesMax: bytesMax))
            closed.setClosings(closings)
            return try Directory.list(directory).map { Int($0.prefix { $0.isNumber })! }
        }
        #expect(try kept(30_000) == [1, 2, 4])
        #expect(try kept(2 * written[1]!.bytes) == [2, 4])
        #expect(try kept(0) == [])
        let none = IdentityFiles(directory: directory, bytesMax: 0)
        #expect(none.write(.init(OpenBox(number: 5).segment), 5, .random()) == nil)
    }

    /// What is sent again is found without a look at the closed segment, by the daemon that closed it and after
    /// its restart; a conflict, a new event of an old message and all others are as without a file.
    @Test(arguments: [false, true]) func repeatsAreFoundWithoutTheDatabase(isEarly: Bool) throws {
        let fixture = try Fixture()
        let files = try fixture.makeIdentityFiles()
        var settings = LoadSettings()
        settings.segmentRowsMax = 4
        let outside = #"{"type":"launch","event_uid":"l","device_id":"d"}"#
        func campaign(_ name: String) -> String {
            #"{"type":"clicked","event_uid":"c","message_uid":"m1","device_id":"d","campaign_id":"\#(name)"}"#
        }
        func batch(_ lines: [String], _ mark: UInt64, _ picture: Picture) throws -> LoadBatch {
            var batch = try CellTests.batch(lines, mark: mark)
            if isEarly { batch.inquiry = CellTests.inquire(fixture, picture, batch) }
            return batch
        }
        func session() throws -> LoadSession {
            try CellTests.session(fixture, settings, picture: Picture(identities: files))
        }
        var first = try session()
        let stored = [World.line(0), World.line(1), outside, campaign("a")]
        _ = try first.load(CellTests.batch(stored, mark: 1))
        #expect(try first.closeSegmentIfFull())
        let reads = """
            SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes WHERE relname = 'event_1'
            """
        func read() throws -> Int64 {
            try fixture.run("SELECT pg_stat_force_next_flush()")
            return try fixture.int(reads)
        }
        var mark: UInt64 = 2
        for isRestarted in [false, true] {
            if isRestarted { first = try session() }
            var again = try batch(stored.reversed(), mark, first.picture)
            #expect(try first.load(&again) == .init(repeating: .duplicate, count: 4))
            mark += 1
        }
        _ = try first.connection.statement("SELECT pg_stat_force_next_flush()")
        #expect(try read() == 0)
        var other = try batch(
            [campaign("b"), World.line(2), World.line(1), World.line(2)], mark, first.picture)
        #expect(try first.load(&other) == [.conflict, .stored, .duplicate, .duplicate])
        // Of the conflict it is asked, so that this is counted at all.
        _ = try first.connection.statement("SELECT pg_stat_force_next_flush()")
        _ = try first.connection.statement("SELECT 1")
        #expect(try read() > 0)
        var more = try batch(
            [#"{"type":"dismissed","event_uid":"x","message_uid":"m0","device_id":"d"}"#], mark + 1,
            first.picture)
        #expect(try first.load(&more) == [.stored])
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        #expect(try CellTests.areSame(by: "type", on: connection))
    }

    /// What is known of a segment when another daemon closes it goes into a file, too, unless rows of it were deleted.
    @Test(arguments: [false, true])
    func ofWhatAnotherHasClosedThereIsAFileOfWhatIsKnown(hasDeletedRows: Bool) throws {
        let fixture = try Fixture()
        let directory = try fixture.makeDirectory()
        let files = IdentityFiles(directory: directory, bytesMax: 1 << 30)
        var settings = LoadSettings()
        settings.segmentRowsMax = 4
        settings.alwaysWritesNews = true
        func batch(_ numbers: [Int], _ mark: UInt64) throws -> LoadBatch {
            try CellTests.batch(numbers.map { World.line($0) }, mark: mark)
        }
        var first = try CellTests.session(fixture, settings)
        var second = try CellTests.session(fixture, settings, picture: Picture(identities: files))
        _ = try first.load(batch([0, 1, 2, 3], 1))
        #expect(try first.closeSegmentIfFull())
        #expect(try second.load(batch([0, 4], 1)) == [.duplicate, .stored])
        _ = try first.load(batch([5], 2))
        second.readAhead()
        // Of these it knows nothing when the segment is closed.
        _ = try first.load(batch([6, 7], 3))
        if hasDeletedRows {
            try fixture.run("DELETE FROM tapline.event_2 WHERE message_uid = 'm5'")
        }
        #expect(try first.closeSegmentIfFull())
        #expect(try second.load(batch([8], 2)) == [.stored])
        second.picture.closed.settle()
        #expect(try Directory.list(directory).count == (hasDeletedRows ? 0 : 1))
        func read() throws -> Int64 {
            _ = try second.connection.statement("SELECT pg_stat_force_next_flush()")
            _ = try second.connection.statement("SELECT 1")
            return try fixture.int(
                """
                SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
                WHERE relname = 'event_2'
                """)
        }
        for isRestarted in [false, true] {
            if isRestarted {
                second = try CellTests.session(
                    fixture, settings, picture: Picture(identities: files))
            }
            let before = try read()
            #expect(
                try second.load(batch([4, 5], 3))
                    == [.duplicate, hasDeletedRows && !isRestarted ? .stored : .duplicate])
            #expect(try (read() > before) == hasDeletedRows)
        }
        let before = try read()
        #expect(try second.load(batch([7, 6], 4)) == [.duplicate, .duplicate])
        #expect(try read() > before)
    }

    /// A database that is restored from before the closing, or a partition that is gone with its rows: then
    /// what the file says is not so.
    @Test(arguments: ["restored", "closed again", "dropped", "dropped, without files"])
    func whatIsStoredNoMoreIsStoredAgain(way: String) throws {
        let fixture = try Fixture()
        let directory = try fixture.makeDirectory()
        let files =
            way.hasSuffix("without files")
            ? nil : IdentityFiles(directory: directory, bytesMax: 1 << 30)
        let isDropped = way.hasPrefix("dropped")
        var settings = LoadSettings()
        settings.segmentRowsMax = 1
        let picture = Picture(identities: files)
        var first = try CellTests.session(fixture, settings, picture: picture)
        _ = try first.load(CellTests.batch([World.line(0)], mark: 1))
        #expect(try first.closeSegmentIfFull())
        // Asked while it was true.
        var batch = try CellTests.batch([World.line(0)], mark: 2)
        batch.inquiry = CellTests.inquire(fixture, first.picture, batch)
        let isFound = batch.inquiry?.older.content(of: batch.events[0].key) != nil
        #expect(isFound)
        #expect(try Directory.list(directory).count == (files == nil ? 0 : 1))
        if isDropped {
            try fixture.run("DROP TABLE tapline.event_1")
        } else {
            try fixture.run(
                """
                UPDATE tapline.turn SET segment = 1, segment_rows = 0, batch = 0;
                DELETE FROM tapline.batch; DELETE FROM tapline.segment WHERE segment = 2;
                UPDATE tapline.segment SET state = 'open', rows = NULL, filter = NULL, closing = NULL;
                DROP TABLE tapline.event_2;
                DROP INDEX IF EXISTS tapline.event_1_unit_key, tapline.event_1_inbox_unit;
                TRUNCATE tapline.event_1
                """)
        }
        if way == "closed again" {
            var second = try CellTests.session(fixture, settings)
            _ = try second.load(CellTests.batch([World.line(1)], mark: 1))
            #expect(try second.closeSegmentIfFull())
        }
        #expect(try first.load(&batch) == [.stored])
        #expect(try fixture.int("SELECT count(*) FROM tapline.event WHERE message_uid = 'm0'") == 1)
        #expect(try Directory.list(directory).isEmpty)
    }

    /// Who loads an event of an old unit knows the older ones, which are stored in another segment: when
    /// that is gone, the file of this one must not speak of them. An older version mends it by itself.
    @Test(arguments: [false, true]) func aFileSpeaksOfItsOwnSegmentOnly(isOlder: Bool) throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.segmentRowsMax = 1
        let picture = Picture(identities: try fixture.makeIdentityFiles())
        var first = try CellTests.session(fixture, settings, picture: picture)
        let click = #"{"type":"clicked","message_uid":"m0","device_id":"d"}"#
        for (mark, line) in [World.line(0), click].enumerated() {
            _ = try first.load(CellTests.batch([line], mark: UInt64(mark + 1)))
            #expect(try first.closeSegmentIfFull())
        }
        try fixture.run("DROP TABLE tapline.event_1")
        if isOlder {
            try fixture.run(
                """
                \(Segments.create(1)); \(Segments.index(1));
                UPDATE tapline.segment SET rows = 0 WHERE segment = 1;
                UPDATE tapline.turn SET generation = generation + 1
                """)
        }
        #expect(
            try first.load(CellTests.batch([World.line(0), click], mark: 3))
                == [.stored, .duplicate])
    }

    /// A server that was promoted has every batch, lacks the closing, and has closed the segment with one more.
    @Test(arguments: [false, true]) func aSegmentThatWasClosedAnotherTimeIsReadAgain(
        hasFiles: Bool
    ) throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.segmentRowsMax = 1
        let files = hasFiles ? try fixture.makeIdentityFiles() : nil
        var first = try CellTests.session(
            fixture, settings, picture: Picture(identities: files))
        _ = try first.load(CellTests.batch([World.line(0)], mark: 1))
        #expect(try first.closeSegmentIfFull())
        try fixture.run(
            """
            UPDATE tapline.turn SET segment = 1, segment_rows = 1;
            DELETE FROM tapline.segment WHERE segment = 2;
            UPDATE tapline.segment SET state = 'open', rows = NULL, filter = NULL, closing = NULL;
            DROP TABLE tapline.event_2;
            DROP INDEX IF EXISTS tapline.event_1_unit_key, tapline.event_1_inbox_unit
            """)
        var second = try CellTests.session(fixture, settings)
        _ = try second.load(CellTests.batch([World.line(1)], mark: 1))
        #expect(try second.closeSegmentIfFull())
        #expect(
            try first.load(CellTests.batch([World.line(1), World.line(0)], mark: 2))
                == [.duplicate, .duplicate])
    }

    /// Rows that somebody deletes are not stored; what goes into a file has to be.
    @Test func ofASegmentThatLacksRowsThereIsNoFile() throws {
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.segmentRowsMax = 2
        let directory = try fixture.makeDirectory()
        let files = IdentityFiles(directory: directory, bytesMax: 1 << 30)
        var first = try CellTests.session(
            fixture, settings, picture: Picture(identities: files))
        _ = try first.load(CellTests.batch([World.line(0), World.line(1)], mark: 1))
        try fixture.run("DELETE FROM tapline.event_1 WHERE message_uid = 'm0'")
        #expect(try first.closeSegmentIfFull())
        #expect(try Directory.list(directory).isEmpty)
    }
}
