import Foundation
import Testing

extension SystemTests {
    /// `tapline top` shows what the daemon's metrics say.
    @Suite struct TopTests {
        @Test func aLookHasTheBooksAndWhatHappenedMeanwhile() throws {
            let daemon = try Daemon(settings: ["load.batch_age_ms": "5"]).start()
            let app = try App(daemon)
            try app.store(["{}"] + (0..<20).map { App.click("m\($0)") })
            let url = ["--url", "http://127.0.0.1:\(daemon.port)"]
            let top = try Tapline.start(
                ["top", "--format", "json", "--interval", "200ms"] + url)
            defer { top.signal(SIGKILL) }
            // Sends until a look has seen something of it.
            var next = 0
            let looks = try until("a look with something new", interval: 0.02) {
                next += 1
                try app.store([App.click("n\(next)"), "{}"])
                let looks = try top.output.split(separator: "\n").dropLast().map {
                    try JSON(parsing: $0.utf8)
                }
                return looks.contains {
                    $0["received_per_second"].number ?? 0 > 0
                        && $0["rejections_per_second"]["missing_type"].number ?? 0 > 0
                        && $0["answers_per_second"]["200"].number ?? 0 > 0
                        && $0["acknowledge_p99_seconds"].number ?? 0 > 0
                } ? looks : nil
            }
            #expect(looks.allSatisfy { $0["database_up"] == .bool(true) })
            top.signal(SIGKILL)
            let once = try Tapline.run(["top", "--once", "--format", "json"] + url)
            let look = try JSON(parsing: once.output.utf8)
            let (_, books) = try daemon.check()
            for name in CheckTests.terms + ["received", "balanced"] {
                #expect(look[name] == books[name], "\(name)")
            }
            let table = try Tapline.run(["top", "--once"] + url)
            #expect(table.isSuccess && !table.output.contains("\u{1B}"), "\(table)")
            #expect(table.output.contains("dead_lettered") && table.output.contains("answers"))
            #expect(try daemon.stop() == .code(0))
            let gone = try Tapline.run(["top", "--once"] + url)
            #expect(gone.exit == .code(1) && gone.complaints.count == 1, "\(gone)")
            #expect(try Tapline.run(["top", "--url", "ftp://x"]).exit == .code(2))
        }
    }
}
