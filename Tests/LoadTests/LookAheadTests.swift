import Event
import Platform
import Postgres
import PostgresTesting
import Report
import Spool
import Testing

@testable import Load

/// What closed segments are asked before the turn is as good as what they are asked within it.
@Suite struct LookAheadTests {
    typealias Dice = CellTests.Dice
    typealias World = CellTests.World

    /// One daemon asks about its next batch, then another one loads a batch and may close a segment, then the
    /// first has its turn.
    @Test(arguments: Seeds.few(12)) func whatIsAskedEarlyHoldsAtTheTurn(seed: UInt64) throws {
        var dice = Dice(source: KeySource(state: seed &+ 7_000))
        let fixture = try Fixture()
        var settings = LoadSettings()
        settings.segmentRowsMax = dice.pick([4, 12, 40])
        settings.heavyUnitEvents = dice.pick([3, 1000])
        settings.alwaysWritesNews = dice.chance(0.5)
        let files = dice.chance(0.5) ? try fixture.makeIdentityFiles() : nil
        var first = try CellTests.session(fixture, settings, picture: Picture(identities: files))
        let others = dice.chance(0.5) ? try fixture.makeIdentityFiles() : nil
        var second = try CellTests.session(fixture, settings, picture: Picture(identities: others))
        var ahead = CellTests.lookAhead(fixture, first.picture)
        var world = World(&dice)
        var seen: Set<String> = []
        var late = 0
        func expected(_ lines: [String]) -> [StoredVerdict] {
            lines.map { seen.insert($0).inserted ? .stored : .duplicate }
        }
        for step in 0..<UInt64(14) {
            func lines() -> [String] {
                (0..<Int.random(in: 1..<10, using: &dice)).map { _ in world.line(&dice) }
            }
            let (others, own) = (lines(), lines())
            var batch = try CellTests.batch(own, mark: step + 1)
            batch.inquiry = ahead.inquire(batch.events, batch.contents)
            let isAsked = batch.inquiry != nil
            #expect(isAsked == (first.picture.closed.count > 0))
            let known = try fixture.int("SELECT max(segment) FROM tapline.segment")
            let theirs = try second.load(CellTests.batch(others, mark: step + 1))
            #expect(theirs == expected(others), "seed \(seed), step \(step)")
            try second.closeSegmentIfFull()
            if try fixture.int("SELECT max(segment) FROM tapline.segment") > known { late += 1 }
            let ours = try first.load(&batch)
            #expect(ours == expected(own), "seed \(seed), step \(step)")
            if dice.chance(0.5) { try first.closeSegmentIfFull() }
        }
        #expect(late > 0 || settings.segmentRowsMax > 4)
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == Int64(seen.count))
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        for by in CellTests.everyBy + CellTests.everyDetail {
            let areSame = try CellTests.areSame(by: by, on: connection)
            #expect(areSame, "seed \(seed), by \(by)")
            if !areSame { Issue.record("\(try CellTests.differences(connection))") }
        }
    }

    /// An answer of a database that has gone another way must not make a repeat of an event that is not stored.
    @Test func whatAnotherDatabaseSaidIsNotBelieved() throws {
        let fixture = try Fixture()
        var session = try CellTests.sessionWithAClosedSegment(fixture)
        var ahead = CellTests.lookAhead(fixture, session.picture)
        func batch(_ number: Int, _ change: (inout Inquiry) -> Void) throws -> LoadBatch {
            var batch = try CellTests.batch([World.line(number)], mark: UInt64(number + 2))
            guard var inquiry = ahead.inquire(batch.events, batch.contents) else {
                Issue.record("nothing was asked")
                return batch
            }
            inquiry.older.keys.insert(batch.events[0].key, batch.contents[0])
            change(&inquiry)
            batch.inquiry = consume inquiry
            return batch
        }
        // What this test rests on: else it would be.
        #expect(try session.load(batch(1) { _ in }) == [.duplicate])
        #expect(try session.load(batch(2) { $0.storedAt += 1 }) == [.stored])
        #expect(try session.load(batch(3) { $0.batch += 1 }) == [.stored])
        #expect(try session.load(batch(4) { $0.history += 1 }) == [.stored])
    }

    /// A standby that was promoted may have every batch, and lack the closing of the segment after the last.
    @Test func aFilterOfASegmentThatIsOpenAfterAllIsForgotten() throws {
        let fixture = try Fixture()
        var session = try CellTests.sessionWithAClosedSegment(fixture)
        try fixture.run(
            """
            UPDATE tapline.turn SET segment = 1, segment_rows = 1;
            DELETE FROM tapline.segment WHERE segment = 2;
            UPDATE tapline.segment SET state = 'open', rows = NULL, filter = NULL;
            DROP TABLE tapline.event_2;
            DROP INDEX IF EXISTS tapline.event_1_unit_key, tapline.event_1_inbox_unit
            """)
        let again = try CellTests.batch([World.line(0), World.line(1)], mark: 2)
        #expect(try session.load(again) == [.duplicate, .stored])
        #expect(session.picture.closed.count == 0)
        #expect(try session.closeSegmentIfFull())
        // Its filter is there once, or all that it has would be read twice.
        #expect(session.picture.closed.all == [1])
        let third = try CellTests.batch([World.line(1), World.line(2)], mark: 3)
        #expect(try session.load(third) == [.duplicate, .stored])
    }

    /// A standby that lags behind may lack rows of a segment that the loader knows to be closed.
    @Test func aServerThatDoesNotKnowThatASegmentIsClosedIsNotBelieved() throws {
        let fixture = try Fixture()
        let session = try CellTests.sessionWithAClosedSegment(fixture)
        var ahead = CellTests.lookAhead(fixture, session.picture)
        let batch = try CellTests.batch([World.line(0)], mark: 2)
        for (state, isBelieved) in [("closing", true), ("open", false), ("sealed", true)] {
            try fixture.run("UPDATE tapline.segment SET state = '\(state)' WHERE segment = 1")
            let isAsked = ahead.inquire(batch.events, batch.contents) != nil
            #expect(isAsked == isBelieved, "\(state)")
        }
    }

    @Test func whoCannotConnectDoesNotTryAtEachBatch() throws {
        let fixture = try Fixture()
        let session = try CellTests.sessionWithAClosedSegment(fixture)
        let tries = Sync.Monitor(0)
        var ahead = LookAhead(session.picture.closed) { () throws(LoadError) in
            tries.withLock { $0 += 1 }
            throw .fenced
        }
        let batch = try CellTests.batch([World.line(0)], mark: 2)
        for _ in 0..<20 {
            let isAsked = ahead.inquire(batch.events, batch.contents) != nil
            #expect(!isAsked)
        }
        #expect(tries.withLock { $0 } == 2, "once, and once more at once")
    }

    @Test func whoCannotAskEarlyAsksAtTheTurn() throws {
        let fixture = try Fixture()
        var session = try CellTests.sessionWithAClosedSegment(fixture)
        var ahead = CellTests.lookAhead(fixture, session.picture)
        var batch = try CellTests.batch([World.line(0), World.line(1)], mark: 2)
        let isAsked = ahead.inquire(batch.events, batch.contents) != nil
        #expect(isAsked)
        try fixture.run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'tapline ahead' AND datname = current_database()
            """)
        batch.inquiry = ahead.inquire(batch.events, batch.contents)
        let isAskedInVain = batch.inquiry != nil
        #expect(!isAskedInVain)
        #expect(try session.load(&batch) == [.duplicate, .stored])
        // It connects anew.
        batch.inquiry = ahead.inquire(batch.events, batch.contents)
        let isAskedAgain = batch.inquiry != nil
        #expect(isAskedAgain)
        #expect(try session.load(&batch) == [.duplicate, .duplicate])
    }
}

/// The loader's thread that reads asks about what it has read.
@Suite(.serialized) struct ReaderAsksTests {
    private let fixture = try! Fixture()

    @Test func aFullBatchIsAskedAboutBeforeItIsTakenAndNoOther() throws {
        let session = try CellTests.sessionWithAClosedSegment(fixture)
        let spool = try BatchReaderTests.Fixture()
        let (conninfo, closed) = (fixture.conninfo, session.picture.closed)
        let reader = try spool.reader(rowsMax: 30, ageMilliseconds: 600_000) {
            LookAhead(closed) { () throws(LoadError) in
                try LoadSession.connect({ conninfo }, LoadSettings(), "tapline ahead")
            }
        }
        defer { reader.end() }
        for body in 0..<7 { try spool.append(body * 10..<body * 10 + 10) }
        reader.drain()
        var batch = LoadBatch()
        var counts: [Int] = []
        while try reader.take(&batch) {
            guard !batch.isEmpty else { continue }
            counts.append(batch.count)
            let isAsked = batch.inquiry != nil
            #expect(isAsked == (batch.count == 30))
        }
        #expect(counts == [30, 30, 10])
    }

    /// Batches that come again and again while segments close, with each of the threads at its own pace.
    @Test func eachEventIsStoredOnceWhateverIsAskedEarly() throws {
        let daemon = Daemon(fixture, try fixture.makeSpool()) {
            $0.batchRowsMax = 40
            $0.segmentRowsMax = 100
        }
        daemon.loader.start()
        for body in 0..<120 {
            // Most lines come four times: in two bodies one after the other, and again much later.
            try daemon.spool((0..<20).map { CellTests.World.line((body % 60) * 10 + $0) })
        }
        #expect(daemon.waitUntilLoaded())
        daemon.stop()
        let events = Int64(59 * 10 + 20)
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == events)
        #expect(try fixture.int("SELECT count(DISTINCT key) FROM tapline.event") == events)
        #expect(try fixture.int("SELECT count(*) FROM tapline.segment WHERE state <> 'open'") > 3)
        #expect(daemon.ledger.books.duplicate == 2_400 - events)
    }
}
