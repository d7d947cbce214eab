import Event
import Glibc
import Metrics
import Platform
import Postgres
import PostgresTesting
import Spool
import Testing

@testable import Load

@Suite struct BatchReaderTests {
    /// A spool, and a reader of it that a test takes batches from.
    final class Fixture {
        let spool: Spool
        private let directory: String

        init() throws {
            directory = try TestDirectory.make()
            spool = try Spool(directory: directory, options: SpoolOptions())
        }

        deinit {
            spool.close()
            TestDirectory.remove(directory)
        }

        func reader(
            from mark: SpoolMark? = nil, rowsMax: Int = 50_000, bytesMax: Int = .max,
            ageMilliseconds: Int = 1, lookAhead: (@Sendable () -> LookAhead)? = nil
        ) throws -> BatchReader {
            var settings = LoadSettings()
            settings.batchRowsMax = rowsMax
            settings.batchBytesMax = bytesMax
            settings.batchAgeMilliseconds = ageMilliseconds
            return try BatchReader(
                spool, from: mark, settings: settings, metrics: LoadMetrics(registry: Registry()),
                lookAhead: lookAhead)
        }

        /// Spools a record and waits until it is durable.
        @discardableResult
        func append(_ payload: [UInt8]) throws -> SpoolMark {
            let done = Sync.Monitor<SpoolMark?>(nil)
            try spool.append(payload, events: 0) { result in
                done.withLock { $0 = try? result.get() }
                done.broadcast()
            }
            return try #require(done.wait(until: Clock.deadline(inMilliseconds: 60_000)) { $0 })
        }

        /// Spools a body of events with these numbers.
        @discardableResult
        func append(_ numbers: Range<Int>) throws -> SpoolMark {
            try append(payload(numbers.map { line($0) }))
        }
    }

    /// The batches up to the end, each as its rows, which have to be those of the events in it.
    private static func drain(_ reader: BatchReader) throws -> [[String]] {
        reader.drain()
        var batches: [[String]] = []
        var batch = LoadBatch()
        while try reader.take(&batch) { batches.append(uids(batch)) }
        return batches
    }

    @Test func aBatchThatWaitsGrowsUntilItIsFull() throws {
        let fixture = try Fixture()
        let reader = try fixture.reader(rowsMax: 30)
        defer { reader.end() }
        for body in 0..<5 { try fixture.append(body * 10..<body * 10 + 10) }
        #expect(waits { reader.rowsWaiting == 30 })
        var batch = LoadBatch()
        #expect(try reader.take(&batch))
        #expect(uids(batch) == (0..<30).map { "e-\($0)" })
        #expect(waits { reader.rowsWaiting == 20 })
        #expect(try reader.take(&batch))
        #expect(uids(batch) == (30..<50).map { "e-\($0)" })
    }

    @Test func aBatchOfLargeRowsIsFullBeforeItsRowsAre() throws {
        let fixture = try Fixture()
        let bytes = payload((0..<10).map { line($0) }).count
        let reader = try fixture.reader(bytesMax: bytes * 3 / 2, ageMilliseconds: 600_000)
        defer { reader.end() }
        for body in 0..<6 { try fixture.append(body * 10..<body * 10 + 10) }
        let batches = try Self.drain(reader)
        #expect(batches.map(\.count) == [20, 20, 20])
        #expect(batches.flatMap { $0 } == (0..<60).map { "e-\($0)" })
    }

    @Test func aBatchIsNotTakenBeforeItIsOldOrFull() throws {
        let fixture = try Fixture()
        let reader = try fixture.reader(rowsMax: 30, ageMilliseconds: 600_000)
        defer { reader.end() }
        let taken = Sync.Monitor<[String]?>(nil)
        let loader = Thread.start(name: "test-loader") {
            var batch = LoadBatch()
            while (try? reader.take(&batch)) ?? false, batch.isEmpty {}
            taken.withLock { $0 = uids(batch) }
        }
        for body in 0..<3 {
            #expect(taken.withLock { $0 } == nil)
            try fixture.append(body * 10..<body * 10 + 10)
        }
        loader.join()
        #expect(taken.withLock { $0?.count } == 30)
    }

    @Test func takesEachRowOnceAndInOrderHoweverTheThreadsMeet() throws {
        let fixture = try Fixture()
        let spool = fixture.spool
        let reader = try fixture.reader(rowsMax: 7, ageMilliseconds: 0)
        defer { reader.end() }
        let writer = Thread.start(name: "test-writer") {
            for number in 0..<600 where number % 3 == 0 {
                let body = payload((number..<number + 3).map { line($0) })
                try? spool.append(body, events: 3) { _ in }
            }
        }
        var rows: [String] = []
        var batch = LoadBatch()
        let deadline = Clock.deadline(inMilliseconds: 60_000)
        while rows.count < 600, Clock.monotonic() < deadline {
            #expect(try reader.take(&batch))
            #expect(batch.count <= 9)
            rows += uids(batch)
        }
        writer.join()
        #expect(rows == (0..<600).map { "e-\($0)" })
    }

    @Test func drainingTakesAllThatIsDurable() throws {
        let fixture = try Fixture()
        let mark = try fixture.append(0..<10)
        let reader = try fixture.reader(from: mark, rowsMax: 20, ageMilliseconds: 600_000)
        defer { reader.end() }
        for body in 1..<6 { try fixture.append(body * 10..<body * 10 + 10) }
        let batches = try Self.drain(reader)
        #expect(batches.map(\.count) == [20, 20, 10])
        #expect(batches.flatMap { $0 } == (10..<60).map { "e-\($0)" })
        var batch = LoadBatch()
        #expect(try !reader.take(&batch))
    }

    @Test func whatIsBeforeARecordThatCannotBeReadIsTakenFirst() throws {
        let fixture = try Fixture()
        try fixture.append(0..<10)
        var cut = payload((10..<20).map { line($0) })
        cut.removeLast()
        let bad = try fixture.append(cut)
        try fixture.append(20..<30)
        let reader = try fixture.reader(ageMilliseconds: 600_000)
        defer { reader.end() }
        var batch = LoadBatch()
        #expect(try reader.take(&batch))
        #expect(uids(batch) == (0..<10).map { "e-\($0)" })
        #expect(throws: LoadError.unreadable(bad)) { try reader.take(&batch) }
    }

    @Test(arguments: [0, 1, 5]) func endsWhateverItWaitsFor(bodies: Int) throws {
        let fixture = try Fixture()
        let reader = try fixture.reader(rowsMax: 30)
        for body in 0..<bodies { try fixture.append(body * 10..<body * 10 + 10) }
        #expect(waits { reader.rowsWaiting == min(30, bodies * 10) })
        reader.end()
        // A second reader has nothing of the first, which has lost its rows.
        let second = try fixture.reader()
        defer { second.end() }
        let rows = try Self.drain(second).flatMap { $0 }
        #expect(rows == (0..<bodies * 10).map { "e-\($0)" })
    }

    @Test func aCheckpointOfAnotherHistoryIsToldAtOnce() throws {
        let fixture = try Fixture()
        try fixture.append(0..<10)
        let mark = SpoolMark(segment: 99, offset: 4096, chain: 1)
        #expect(throws: LoadError.otherHistory) { try fixture.reader(from: mark) }
    }
}

/// A loader that waits for its turn with one batch while it has read another ahead.
@Suite(.serialized) struct ReadAheadTests {
    private let fixture = try! Fixture()

    private func hold(_ daemon: Daemon) throws -> PostgresConnection {
        let other = try PostgresConnection(conninfo: fixture.conninfo)
        let watcher = try PostgresConnection(conninfo: fixture.conninfo)
        try other.execute("BEGIN; SELECT FROM tapline.turn FOR UPDATE")
        daemon.loader.start()
        try daemon.spool((0..<100).map { line($0) })
        #expect(
            try waits { try watcher.execute(Self.waiting("count(*)")).int64(0, 0) == 1 })
        try daemon.spool((100..<150).map { line($0) })
        try daemon.spool((150..<200).map { line($0) })
        #expect(waits { daemon.loader.rowsReadAhead == 100 })
        return other
    }

    private static func waiting(_ what: String) -> String {
        "SELECT \(what) FROM pg_stat_activity WHERE datname = current_database() "
            + "AND application_name = 'tapline load' AND wait_event_type = 'Lock'"
    }

    @Test func aLostConnectionNeitherLosesNorRepeatsWhatIsReadAhead() throws {
        let daemon = Daemon(fixture, try fixture.makeSpool())
        let other = try hold(daemon)
        _ = try fixture.int(Self.waiting("pg_terminate_backend(pid)"))
        try other.execute("ROLLBACK")
        #expect(daemon.waitUntilLoaded())
        daemon.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 200)
        #expect(try fixture.int("SELECT count(DISTINCT key) FROM tapline.event") == 200)
        #expect(daemon.ledger.books.stored == 200 && daemon.ledger.books.duplicate == 0)
    }

    @Test func stoppingStoresWhatIsReadAhead() throws {
        let daemon = Daemon(fixture, try fixture.makeSpool())
        let other = try hold(daemon)
        let stopping = Thread.start(name: "test-stop") { [loader = daemon.loader] in
            loader.stop(drainSeconds: 60)
        }
        try other.execute("ROLLBACK")
        stopping.join()
        daemon.spool.close()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 200)
        #expect(daemon.ledger.books.stored == 200 && daemon.ledger.books.spooled == 0)
    }

    @Test func whoHasNoTimeToStopLeavesItSpooled() throws {
        let spool = try fixture.makeSpool()
        let daemon = Daemon(fixture, spool)
        let other = try hold(daemon)
        let stopping = Thread.start(name: "test-stop") { [loader = daemon.loader] in
            loader.stop(drainSeconds: 0)
        }
        #expect(waits { daemon.loader.isOutOfTime })
        try other.execute("ROLLBACK")
        stopping.join()
        // The batch that had begun is stored, the one read ahead is not.
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 100)
        let next = Daemon(fixture, spool)
        next.loader.start()
        next.loader.stop(drainSeconds: 60)
        spool.close()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 200)
    }
}

private func line(_ number: Int) -> String {
    "{\"type\":\"clicked\",\"event_uid\":\"e-\(number)\",\"message_uid\":\"m-\(number % 40)\","
        + "\"device_id\":\"d-\(number)\"}"
}

/// The event_uid of each row of a batch.
private func uids(_ batch: borrowing LoadBatch) -> [String] {
    (0..<batch.count).map { row in
        batch.row(row).text(.eventUID) ?? ""
    }
}

/// Whether something comes true within a minute.
private func waits(for condition: () throws -> Bool) rethrows -> Bool {
    let deadline = Clock.deadline(inMilliseconds: 60_000)
    while Clock.monotonic() < deadline {
        if try condition() { return true }
        sched_yield()
    }
    return false
}
