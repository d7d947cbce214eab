import Platform
import Postgres
import PostgresTesting
import Testing

@testable import Load
@testable import Report

/// Reports that are taken while events pour in.
@Suite struct SnapshotTests {
    private struct Progress {
        var batches: UInt64 = 0
        /// How many there may be, so that reports of few events stay quick.
        var batchesMax: UInt64 = 0
        var isOver = false
        var failure: String?
    }

    /// Stores batch after batch until it is over.
    private static func load(_ conninfo: String, _ progress: Sync.Monitor<Progress>) throws {
        var settings = LoadSettings()
        settings.segmentRowsMax = 200
        var session = try LoadSession(
            database: { conninfo }, spoolID: .random(), picture: Picture(), settings: settings)
        _ = try session.claim()
        var mark: UInt64 = 0
        while true {
            let mayLoad = progress.wait(until: Clock.deadline(inMilliseconds: 60_000)) { progress in
                progress.isOver ? false : progress.batches < progress.batchesMax ? true : nil
            }
            guard mayLoad == true else { return }
            mark += 1
            let lines = (0..<4).flatMap { number in
                ["received", "clicked"].map { type in
                    """
                    {"type":"\(type)","event_uid":"\(type)-\(mark)-\(number)","message_uid":"m\(mark)-\(number)",\
                    "device_id":"d","campaign_id":"c\(number)","platform":"ios"}
                    """
                }
            }
            _ = try session.load(CellTests.batch(lines, mark: mark))
            try session.closeSegmentIfFull()
            progress.withLock { $0.batches = mark }
            progress.broadcast()
        }
    }

    /// All parts of a page are of the batch that it names, though later ones are stored by then.
    @Test func aReportTakenWhileEventsPourInIsOfOneMoment() throws {
        let fixture = try Fixture()
        let conninfo = fixture.conninfo
        let progress = Sync.Monitor(Progress())
        let loader = Thread.start(name: "pour") {
            do {
                try Self.load(conninfo, progress)
            } catch {
                progress.withLock { $0.failure = "\(error)" }
            }
            progress.broadcast()
        }
        defer {
            progress.withLock { $0.isOver = true }
            progress.broadcast()
            loader.join()
        }
        let connection = try PostgresConnection(conninfo: conninfo)
        var pages: [HTMLReport] = []
        for _ in 0..<20 {
            // So that no two are of one batch, and more come while it is read.
            let seen = progress.withLock { progress in
                progress.batchesMax = progress.batches + 15
                return progress.batches
            }
            progress.broadcast()
            let isMore = progress.wait(until: Clock.deadline(inMilliseconds: 60_000)) { progress in
                progress.failure != nil || progress.batches > seen ? true : nil
            }
            try #require(isMore == true)
            let failure = progress.withLock { $0.failure }
            try #require(failure == nil)
            pages.append(try HTMLReport.load(ReportOptions(), on: connection))
        }
        for page in pages {
            for part in [page.byTime, page.byPlatform] {
                #expect(part.asOf == page.main.asOf)
                #expect(part.totals[.delivered] == page.main.totals[.delivered])
                #expect(part.totals[.clicked] == page.main.totals[.clicked])
            }
            var options = ReportOptions()
            try options.set("as-of", page.main.asOf)
            let then = try CampaignReport.load(options, on: connection)
            #expect(then.totals == page.main.totals && then.rows == page.main.rows)
        }
        #expect(Set(pages.map(\.main.asOf)).count == pages.count)
    }
}
