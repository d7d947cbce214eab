import Event
import Ingest
import Metrics
import Platform
import Postgres
import PostgresTesting
import Spool
import Testing

@testable import Load

/// A database with the schema, and spools that loaders bring into it.
final class Fixture {
    let conninfo: String
    private var directories: [String] = []

    init() throws {
        conninfo = try TestDatabase.create(like: "migrated") { _ = try Migrator.migrate($0) }
    }

    deinit {
        for directory in directories { TestDirectory.remove(directory) }
    }

    func makeDirectory() throws -> String {
        let directory = try TestDirectory.make()
        directories.append(directory)
        return directory
    }

    func makeSpool() throws -> Spool {
        try Spool(directory: makeDirectory(), options: SpoolOptions())
    }

    func makeIdentityFiles(bytesMax: Int = 1 << 30) throws -> IdentityFiles {
        IdentityFiles(directory: try makeDirectory() + "/identities", bytesMax: bytesMax)
    }

    func int(_ sql: String) throws -> Int64 {
        let connection = try PostgresConnection(conninfo: conninfo)
        return try connection.execute(sql).int64(0, 0) ?? -1
    }

    func run(_ sql: String) throws {
        let connection = try PostgresConnection(conninfo: conninfo)
        try connection.execute(sql)
    }
}

/// A spool with its loader, as one daemon has them.
final class Daemon {
    let spool: Spool
    let loader: Loader
    let ledger: Ledger
    let registry = Registry()
    private let commits = Sync.Monitor(0)

    init(_ fixture: Fixture, _ spool: Spool, _ change: (inout LoadSettings) -> Void = { _ in }) {
        var settings = LoadSettings()
        settings.batchAgeMilliseconds = 1
        change(&settings)
        self.spool = spool
        ledger = Ledger(registry: registry)
        let commits = self.commits
        loader = Loader(
            database: { [conninfo = fixture.conninfo] in conninfo }, spool: spool,
            settings: settings,
            metrics: LoadMetrics(registry: registry), ledger: ledger, notifier: StoredNotifier(),
            onCommit: {
                commits.withLock { $0 += 1 }
                commits.broadcast()
            })
    }

    /// Spools one body of lines, as the daemon does before it answers.
    func spool(app: String = "shop", _ lines: [String]) throws {
        var decoder = EventDecoder()
        var builder = BodyRecord.Builder(app: Array(app.utf8), receivedAt: Clock.now())
        for line in lines {
            let bytes = Array(line.utf8)
            _ = decoder.decode(
                line: unsafe bytes.span.bytes, receivedAt: Clock.now(), sentAtHeader: nil,
                app: Array(app.utf8), into: &builder)
        }
        let (rows, rejected) = (builder.rows, builder.rejected)
        let done = Sync.Monitor(false)
        try spool.append(builder.finish(), events: rows) { _ in
            done.withLock { $0 = true }
            done.broadcast()
        }
        let isDone = done.wait(until: Clock.deadline(inMilliseconds: 60_000)) { $0 ? true : nil }
        try #require(isDone == true)
        ledger.noteDurable(received: rows + rejected, rejected: rejected)
    }

    /// Waits until nothing is spooled.
    func waitUntilLoaded(seconds: Int = 60) -> Bool {
        let deadline = Clock.deadline(inMilliseconds: seconds * 1000)
        let ledger = self.ledger
        return commits.wait(until: deadline) { _ in ledger.books.spooled == 0 ? true : nil }
            ?? false
    }

    func stop() {
        loader.stop(drainSeconds: 30)
        spool.close()
    }
}

private func click(_ number: Int, campaign: String = "c1", eventUID: Bool = true) -> String {
    let uid = eventUID ? "\"event_uid\":\"e-\(number)\"," : ""
    return
        "{\"type\":\"clicked\",\(uid)\"message_uid\":\"m-\(number)\",\"device_id\":\"d-\(number)\","
        + "\"campaign_id\":\"\(campaign)\",\"properties\":{\"n\":\(number)}}"
}

@Suite(.serialized) struct LoaderTests {
    /// The series of a metric: labels and value.
    static func series(_ name: String, _ registry: Registry) -> [String: Int] {
        var series: [String: Int] = [:]
        let text = String(decoding: registry.render(), as: UTF8.self)
        for line in text.split(separator: "\n") where line.hasPrefix(name + "{") {
            let parts = line.split(separator: " ")
            series[String(parts[0].dropFirst(name.count))] = Int(parts[1])
        }
        return series
    }

    // S24
    @Test func conflictsAreCountedBySenderAndTheSendersAreBounded() throws {
        let fixture = try Fixture()
        let daemon = Daemon(fixture, try fixture.makeSpool())
        daemon.loader.start()
        defer { daemon.stop() }
        func send(_ numbers: Range<Int>, campaign: String, version: (Int) -> String) throws {
            try daemon.spool(
                numbers.map {
                    click($0, campaign: campaign).dropLast()
                        + ",\"sdk_version\":\"\(version($0))\"}"
                })
            #expect(daemon.waitUntilLoaded())
        }
        func conflicts() -> [String: Int] {
            Self.series("tapline_conflicts_total", daemon.registry)
        }
        try send(0..<300, campaign: "c1") { _ in "9" }
        #expect(conflicts() == [:])
        try send(0..<10, campaign: "c2") { $0 < 3 ? "1" : "2" }
        let few = [#"{app="shop",sdk_version="1"}"#: 3, #"{app="shop",sdk_version="2"}"#: 7]
        #expect(conflicts() == few)
        // The same events again are neither fresh nor fewer.
        try send(0..<3, campaign: "c1") { _ in "1" }
        #expect(conflicts() == few)
        try send(10..<300, campaign: "c2") { "\($0)" }
        #expect(conflicts().count == 101)
        #expect(conflicts()[#"{app="other",sdk_version="other"}"#] == 290 - 98)
        #expect(conflicts().values.reduce(0, +) == 300)
        #expect(daemon.ledger.books.conflict == 300)
    }

    @Test func waitsGrowToALimitAtRandom() {
        var one = Backoff()
        var other = Backoff()
        var differing = 0
        for round in 0..<12 {
            let upper = min(50 << round, 5_000)
            let pair = (one.next(), other.next())
            for wait in [pair.0, pair.1] { #expect((upper / 2...upper).contains(wait)) }
            if pair.0 != pair.1 { differing += 1 }
        }
        #expect(differing > 0)
        one.reset()
        let again = one.next()
        #expect(again <= 50)
    }

    @Test func countsEachVerdictOnceAndKeepsTheBooks() throws {
        let fixture = try Fixture()
        let daemon = Daemon(fixture, try fixture.makeSpool())
        daemon.loader.start()
        try daemon.spool((0..<1000).map { click($0) })
        try daemon.spool((500..<1500).map { click($0) } + ["not json", "{}"])
        try daemon.spool([click(7, campaign: "other"), click(7, campaign: "other")])
        #expect(daemon.waitUntilLoaded())
        daemon.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 1500)
        #expect(try fixture.int("SELECT count(DISTINCT key) FROM tapline.event") == 1500)
        #expect(try fixture.int("SELECT count(*) FROM tapline.conflict") == 1)
        #expect(try fixture.int("SELECT times FROM tapline.conflict") == 2)
        let books = daemon.ledger.books
        #expect(books.received == 2004 && books.stored == 1500 && books.duplicate == 500)
        #expect(books.conflict == 2 && books.rejected == 2 && books.isBalanced)
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        let recount = try Books.recount(connection, ownSpool: daemon.spool.id)
        #expect(recount.books == books)
    }

    /// Rows go to the end of the open segment as a rule, and another daemon looks for them there. Where
    /// somebody has vacuumed it, they fill holes before that.
    @Test(arguments: ["VACUUM", "VACUUM FULL"])
    func rowsInHolesOfAVacuumedOpenSegmentAreFoundByOtherDaemons(vacuum: String) throws {
        let fixture = try Fixture()
        let first = Daemon(fixture, try fixture.makeSpool())
        let second = Daemon(fixture, try fixture.makeSpool())
        for daemon in [first, second] { daemon.loader.start() }
        defer { for daemon in [first, second] { daemon.stop() } }
        try first.spool((0..<10_000).map { click($0) })
        #expect(first.waitUntilLoaded())
        // Now the second knows all of it.
        try second.spool([click(10_000)])
        #expect(second.waitUntilLoaded())
        try fixture.run(
            "UPDATE tapline.event_1 SET properties = NULL WHERE ctid < '(100,0)'")
        try fixture.run("\(vacuum) tapline.event_1")
        let more = (20_000..<20_500).map { click($0) }
        try first.spool(more)
        #expect(first.waitUntilLoaded())
        let hidden = try fixture.int(
            """
            SELECT count(*) FROM tapline.event_1 e JOIN tapline.batch b USING (batch)
            WHERE e.ctid < format('(%s,0)', b.first_block)::tid
                AND batch = (SELECT max(batch) FROM tapline.batch WHERE rows > 0)
            """)
        // A full one leaves no holes, but moves all rows.
        try #require(hidden > 0 || vacuum == "VACUUM FULL")
        // As if the first had not known of the second, which else it writes down its batches for.
        try fixture.run("DELETE FROM tapline.batch_news")
        try second.spool(more)
        #expect(second.waitUntilLoaded())
        #expect(second.ledger.books.duplicate == 500)
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 10_501)
        #expect(try fixture.int("SELECT count(DISTINCT key) FROM tapline.event") == 10_501)
    }

    @Test func findsDuplicatesInSealedSegmentsAndAfterARestart() throws {
        let fixture = try Fixture()
        let spool = try fixture.makeSpool()
        let first = Daemon(fixture, spool) { $0.segmentRowsMax = 300 }
        first.loader.start()
        for start in stride(from: 0, to: 1000, by: 100) {
            try first.spool((start..<start + 100).map { click($0) })
            #expect(first.waitUntilLoaded())
        }
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        try Segments.sealClosing(connection)
        #expect(
            try fixture.int("SELECT count(*) FROM tapline.segment WHERE state = 'sealed'") == 3)
        try first.spool((0..<1000).map { click($0) })
        #expect(first.waitUntilLoaded())
        first.loader.stop(drainSeconds: 30)
        // A new loader knows nothing but the database.
        let second = Daemon(fixture, spool) { $0.segmentRowsMax = 300 }
        second.loader.start()
        try second.spool((0..<1001).map { click($0) })
        #expect(second.waitUntilLoaded())
        second.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 1001)
        #expect(second.ledger.books.stored == 1001 && second.ledger.books.duplicate == 2000)
    }

    @Test func daemonsOnOneDatabaseStoreEachEventOnce() throws {
        let fixture = try Fixture()
        let daemons = try (0..<4).map { _ in
            Daemon(fixture, try fixture.makeSpool()) { $0.segmentRowsMax = 700 }
        }
        for daemon in daemons { daemon.loader.start() }
        for round in 0..<20 {
            // Overlapping ranges, so that most events reach several daemons.
            for (index, daemon) in daemons.enumerated() {
                let start = round * 50 + index * 20
                try daemon.spool((start..<start + 120).map { click($0) })
            }
        }
        for daemon in daemons { #expect(daemon.waitUntilLoaded()) }
        for daemon in daemons { daemon.stop() }
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 1130)
        #expect(try fixture.int("SELECT count(DISTINCT key) FROM tapline.event") == 1130)
        #expect(daemons.reduce(0) { $0 + $1.ledger.books.stored } == 1130)
        #expect(
            try fixture.int(
                "SELECT count(*) FROM tapline.segment s WHERE state <> 'open' AND rows <> "
                    + "(SELECT count(*) FROM tapline.event e WHERE e.segment = s.segment)") == 0)
    }

    @Test func aRowThatTheDatabaseRefusesCostsOnlyItself() throws {
        let fixture = try Fixture()
        try fixture.run(
            "ALTER TABLE tapline.event_1 ADD CONSTRAINT no_poison CHECK (campaign_id <> 'poison')")
        let daemon = Daemon(fixture, try fixture.makeSpool())
        daemon.loader.start()
        try daemon.spool(
            (0..<1000).map { click($0, campaign: $0 % 400 == 7 ? "poison" : "c1") })
        #expect(daemon.waitUntilLoaded())
        daemon.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 997)
        #expect(
            try fixture.int("SELECT count(*) FROM tapline.dead_letter WHERE sqlstate = '23514'")
                == 3)
        #expect(
            try fixture.int(
                "SELECT count(*) FROM tapline.dead_letter WHERE body::jsonb ->> 'campaign_id' = "
                    + "'poison' AND reason LIKE '%no_poison%'") == 3)
        #expect(daemon.ledger.books.deadLettered == 3 && daemon.ledger.books.isBalanced)
    }

    @Test func aConstraintThatRefusesEverythingDropsNothing() throws {
        let fixture = try Fixture()
        try fixture.run("ALTER TABLE tapline.event_1 ADD CONSTRAINT never CHECK (false)")
        let daemon = Daemon(fixture, try fixture.makeSpool())
        daemon.loader.start()
        try daemon.spool((0..<10).map { click($0) })
        #expect(!daemon.waitUntilLoaded(seconds: 1))
        #expect(try fixture.int("SELECT count(*) FROM tapline.dead_letter") == 0)
        try fixture.run("ALTER TABLE tapline.event_1 DROP CONSTRAINT never")
        #expect(daemon.waitUntilLoaded())
        daemon.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 10)
    }

    @Test func aCheckpointOfAnotherHistoryLoadsFromTheOldestSegment() throws {
        let fixture = try Fixture()
        let spool = try fixture.makeSpool()
        let daemon = Daemon(fixture, spool)
        let id = spool.id
        try daemon.spool((0..<10).map { click($0) })
        // The database says that more of this spool is loaded than it holds: as after a clone.
        try fixture.run(
            """
            INSERT INTO tapline.spool (id, epoch, segment, "offset", chain, published_spooled)
            VALUES ('\(id)', gen_random_uuid(), 99, 4096, 12345, 7)
            """)
        daemon.loader.start()
        #expect(daemon.waitUntilLoaded())
        #expect(spool.id != id)
        // The other one still has them.
        let left = "SELECT published_spooled FROM tapline.spool WHERE id = '\(id)'"
        #expect(try fixture.int(left) == 7)
        daemon.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 10)
    }

    @Test func nothingIsPublishedUnderTheClaimOfAnother() throws {
        let fixture = try Fixture()
        let spool = try fixture.makeSpool()
        let (registry, epoch) = (Registry(), SpoolID.random())
        let ledger = Ledger(registry: registry)
        let keeper = Keeper(
            database: { [conninfo = fixture.conninfo] in conninfo }, spool: spool, ledger: ledger,
            registry: registry)
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        try fixture.run(
            """
            INSERT INTO tapline.spool (id, epoch, segment, "offset", chain, published_spooled)
            VALUES ('\(spool.id)', '\(epoch)', 0, 0, 0, 7)
            """)
        let published = "SELECT published_spooled FROM tapline.spool WHERE published_at IS NOT NULL"
        ledger.noteDurable(received: 3, rejected: 1)
        #expect(try !keeper.publish(connection), "nothing is claimed")
        ledger.claim = (spool.id, .random())
        #expect(try !keeper.publish(connection), "somebody else has claimed it since")
        #expect(try fixture.int("SELECT published_spooled FROM tapline.spool") == 7)
        ledger.claim = (spool.id, epoch)
        #expect(try keeper.publish(connection))
        #expect(try fixture.int(published) == 2)
        spool.close()
    }

    @Test func aDatabaseRestoredFromABackupIsNoticedByARunningLoader() throws {
        let fixture = try Fixture()
        let daemon = Daemon(fixture, try fixture.makeSpool())
        daemon.loader.start()
        try daemon.spool((0..<10).map { click($0) })
        #expect(daemon.waitUntilLoaded())
        // What a restore to before the first batch looks like, with another batch loaded since.
        try fixture.run(
            """
            TRUNCATE tapline.event; DELETE FROM tapline.batch;
            INSERT INTO tapline.batch VALUES (1, clock_timestamp() - interval '1 hour',
                gen_random_uuid(), 0, 1, 0);
            UPDATE tapline.turn SET segment_rows = 0
            """)
        try daemon.spool((0..<20).map { click($0) })
        #expect(daemon.waitUntilLoaded())
        daemon.stop()
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 20)
    }
}
