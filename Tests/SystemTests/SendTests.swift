import Foundation
import Testing

extension SystemTests {
    /// `tapline send`.
    @Suite struct SendTests {
        private func send(
            _ app: App, _ arguments: [String], input: String = "/dev/null"
        ) throws -> Outcome {
            let target = ["--url", "http://127.0.0.1:\(app.daemon.port)", "--key", app.key]
            return try Tapline.run(["send"] + target + arguments, input: input, seconds: 120)
        }

        private func lines(_ name: String, _ count: Int) -> String {
            (0..<count).map { App.click("\(name)\($0)") + "\n" }.joined()
        }

        @Test func filesGzipAndStdinAreSentInBatches() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let plain = try directory.file("a.ndjson", lines("a", 2500))
            let packed = try directory.file(
                "b.ndjson.gz", gzip(lines("b", 1000)) + gzip(lines("c", 500)))
            let input = try directory.file("stdin", lines("s", 10))
            let outcome = try send(
                app, ["--batch", "400", "--format", "json", plain, packed, "-"], input: input)
            #expect(outcome.isSuccess, "\(outcome)")
            let json = try JSON(parsing: outcome.output.utf8)
            #expect(json["accepted"] == .int(4010) && json["rejected"] == .int(0), "\(json)")
            #expect(try app.storedCount() == 4010)
            // The same again adds only duplicates.
            let before = try app.daemon.metric("tapline_events_duplicate_total")
            #expect(try send(app, [plain, packed]).isSuccess)
            #expect(try app.storedCount() == 4010)
            #expect(try app.daemon.metric("tapline_events_duplicate_total") == before + 4000)
        }

        @Test func aRejectedLineIsNamedWithItsFileAndExitIs1() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let file = try directory.file("bad.ndjson", lines("a", 1999) + "{}\n" + lines("b", 10))
            let outcome = try send(app, ["--batch", "500", file])
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains("bad.ndjson:2000"), "\(outcome.error)")
            #expect(try app.storedCount() == 2009)
        }

        @Test func aWrongKeyAndATruncatedFileEndWith1() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let file = try directory.file("a.ndjson", lines("a", 10))
            let url = "http://127.0.0.1:\(app.daemon.port)"
            let refused = try Tapline.run(["send", "--url", url, "--key", "nobody", file])
            #expect(refused.exit == .code(1) && refused.error.contains("401"))
            let cut = try directory.file("cut.ndjson.gz", gzip(lines("c", 1000)).dropLast(20))
            let truncated = try send(app, [cut])
            #expect(truncated.exit == .code(1) && truncated.error.contains("cut.ndjson.gz"))
        }

        @Test func sendingGoesOnWhenTheDaemonIsKilledAndStartedAgain() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            let directory = TemporaryDirectory()
            let file = try directory.file("a.ndjson", lines("a", 60_000))
            let target = ["--url", "http://127.0.0.1:\(daemon.port)", "--key", app.key]
            let sender = try Tapline.start(
                ["send", "--batch", "100", "--format", "json"] + target + [file])
            for round in 1...3 {
                try until("the daemon has taken some") {
                    try daemon.metric("tapline_events_received_total") >= Double(round) * 5000
                        ? true : nil
                }
                try daemon.kill()
                try daemon.start()
            }
            #expect(try sender.wait(seconds: 120) == .code(0), "\(sender.error)")
            let json = try JSON(parsing: sender.output.utf8)
            #expect(json["accepted"] == .int(60_000) && json["retries"].int ?? 0 > 0, "\(json)")
            #expect(try app.storedCount() == 60_000)
            #expect(try daemon.stop() == .code(0))
        }
    }
}
