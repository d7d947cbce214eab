import Postgres
import Testing

@testable import Load

private func click(_ number: Int) -> String {
    #"{"type":"clicked","message_uid":"m-\#(number)","device_id":"d","event_uid":"e-\#(number)"}"#
}

/// What daemons write down for each other comes in pieces.
@Suite struct NewsPieceTests {
    private static func daemons(
        _ fixture: Fixture, segmentRows: Int = 500_000
    ) throws -> [Daemon] {
        let daemons = try (0..<2).map { _ in
            Daemon(fixture, try fixture.makeSpool()) {
                $0.alwaysWritesNews = true
                $0.segmentRowsMax = segmentRows
            }
        }
        for daemon in daemons { daemon.loader.start() }
        // From here on each knows the batches of the other by what that writes down.
        for (number, daemon) in daemons.enumerated() {
            try daemon.spool([click(1_000_000 + number)])
            #expect(daemon.waitUntilLoaded())
        }
        return daemons
    }

    /// The rows of the batch are gone: who read them would find too few, and store the events again.
    @Test func theOtherDaemonNeedsNoRowOfABatchThatIsWrittenDown() throws {
        let fixture = try Fixture()
        let daemons = try Self.daemons(fixture)
        defer { for daemon in daemons { daemon.stop() } }
        let lines = (0..<1_000).map { click($0) }
        try daemons[0].spool(lines)
        #expect(daemons[0].waitUntilLoaded())
        let newest = "batch = (SELECT batch FROM tapline.turn)"
        let pieces = try fixture.int("SELECT count(*) FROM tapline.batch_news WHERE \(newest)")
        #expect(pieces > 1_000 * 60 / BatchNews.pieceBytes)
        try fixture.run("DELETE FROM tapline.event_1 WHERE \(newest)")
        try daemons[1].spool(lines)
        #expect(daemons[1].waitUntilLoaded())
        #expect(daemons[1].ledger.books.duplicate == 1_000)
        #expect(daemons[1].ledger.books.stored == 1)
    }

    /// One row short, a batch is not believed.
    @Test(arguments: ["0", "(SELECT max(piece) FROM tapline.batch_news)", "1"])
    func whatLacksAPieceIsReadFromTheRows(piece: String) throws {
        let fixture = try Fixture()
        let daemons = try Self.daemons(fixture)
        defer { for daemon in daemons { daemon.stop() } }
        let lines = (0..<1_000).map { click($0) }
        try daemons[0].spool(lines)
        #expect(daemons[0].waitUntilLoaded())
        try fixture.run("DELETE FROM tapline.batch_news WHERE piece = \(piece)")
        try daemons[1].spool(lines)
        #expect(daemons[1].waitUntilLoaded())
        #expect(daemons[1].ledger.books.duplicate == 1_000)
        #expect(try fixture.int("SELECT count(*) FROM tapline.event") == 1_002)
    }

    /// A row fills a page of the table, and what is deleted makes room for what comes.
    @Test func piecesTakeTheSpaceOfEarlierOnes() throws {
        let fixture = try Fixture()
        let daemons = try Self.daemons(fixture, segmentRows: 4_000)
        defer { for daemon in daemons { daemon.stop() } }
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var sizes: [Int64] = []
        for segment in 0..<5 {
            for part in 0..<4 {
                let start = (segment * 4 + part) * 1_000
                try daemons[part % 2].spool((start..<start + 1_000).map { click($0) })
                #expect(daemons[part % 2].waitUntilLoaded())
            }
            // A daemon closes the segment that it has filled before it loads more.
            try daemons[1].spool([click(2_000_000 + segment)])
            #expect(daemons[1].waitUntilLoaded())
            #expect(try fixture.int("SELECT segment::bigint FROM tapline.turn") == segment + 2)
            try Segments.sealClosing(connection)
            sizes.append(
                try fixture.int(
                    """
                    SELECT pg_relation_size('tapline.batch_news')
                        / current_setting('block_size')::bigint
                    """))
        }
        let pieces: Int64 = 4_000 * 60 / Int64(BatchNews.pieceBytes) + 8
        #expect(sizes[0] > 4_000 * 60 / 8_192 && sizes[0] <= pieces)
        // Without it each segment would add as many pages as the first.
        #expect(sizes[4] < sizes[1] + sizes[0] / 2)
        #expect(
            try fixture.int(
                "SELECT pg_relation_size(reltoastrelid) FROM pg_class "
                    + "WHERE oid = 'tapline.batch_news'::regclass") == 0)
    }
}
