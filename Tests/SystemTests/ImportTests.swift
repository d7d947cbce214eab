import Foundation
import Testing

extension SystemTests {
    /// `tapline import`.
    @Suite struct ImportTests {
        private func load(
            _ app: App, _ arguments: [String], map: String = "vibes-push-messages",
            input: String = "/dev/null"
        ) throws -> Outcome {
            let target = ["--url", "http://127.0.0.1:\(app.daemon.port)", "--key", app.key]
            return try Tapline.run(
                ["import", "--map", map] + target + arguments, input: input, seconds: 120)
        }

        static let header = [
            "person_id", "external_person_id", "vibes_device_id", "os", "push_token", "message_id",
            "client_message_id", "receipt_at", "response_text", "activity_type", "activity_id",
            "company_id", "app_id", "content", "subject",
        ].joined(separator: "\t")

        /// A row of the extract of Vibes.
        static func row(
            _ number: Int, _ response: String = "Success", device: String? = nil, app: String = "A",
            time: String = "2026-11-20 14:30:00 -0600"
        ) -> String {
            [
                "p\(number)", "", device ?? "d\(number)", "IOS", "token\(number)", "m\(number)",
                "c",
                time, response, "Broadcast", "77", "1", app, "\"Say \"\"hi\"\",\n\tnow\"", "S",
            ].joined(separator: "\t")
        }

        static func table(_ rows: [String]) -> String {
            ([header] + rows).joined(separator: "\r\n") + "\r\n"
        }

        /// From the extract of Vibes, and what its SDK reports, to the numbers of a report.
        @Test func theExtractOfVibesGivesTheDenominators() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            let rows = (0..<10).map { number in
                Self.row(number, number == 9 ? "Unregistered" : number == 8 ? "" : "Success")
            }
            let file = try TemporaryDirectory().file("push.txt.gz", gzip(Self.table(rows)))
            for number in 0..<4 {
                let event = """
                    {"events":[{"uuid":"u\(number)","type":"clickthru","attributes":{"message_uid":"m\(number)",
                    "activity_type":"Broadcast","activity_uid":"77"}}]}
                    """
                let answer = try app.daemon.send(
                    source.request(
                        "/mobile_apps/\(source.pathPart)/devices/d\(number)/events", event,
                        key: "MobileAppToken", headers: SourceTests.android))
                #expect(answer.status == 200)
            }
            for round in 0..<2 {
                let outcome = try load(app, ["--batch", "3", "--format", "json", file])
                #expect(outcome.isSuccess, "\(outcome)")
                let json = try JSON(parsing: outcome.output.utf8)
                #expect(json["rows"] == .int(10), "\(round): \(json)")
                #expect(json["events"]["sent"] == .int(10) && json["events"]["failed"] == .int(1))
                #expect(try app.storedCount() == 15)
            }
            let report = try ReportTests.json(app)
            let campaigns = report["campaigns"].items
            #expect(campaigns.map { $0["campaign_id"] } == [.string("Broadcast:77")])
            let counts = ["sent", "failed", "accepted", "clicked", "delivered"]
            #expect(counts.map { campaigns[0][$0] } == [10, 1, 9, 4, 4].map { JSON.int($0) })
            #expect(campaigns[0]["ctr_sent"]["denominator"] == .int(10))
            let stored = try app.stored("platform, provider, person_id, properties, occurred_at")
            #expect(!stored.contains { $0[3]?.contains("token") == true }, "\(stored)")
            #expect(stored.contains { $0[4] == "2026-11-20 20:30:00+00" && $0[1] == "vibes" })
        }

        @Test func aBadRowIsInTheFileOfRejectsWhichCanBePutRight() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let rows = [
                Self.row(1), Self.row(2, time: "yesterday"), Self.row(3, app: "B"),
                Self.row(4) + "\tmore", Self.row(5, device: String(repeating: "d", count: 129)),
                Self.row(6),
            ]
            let file = try directory.file("push.txt", Self.table(rows))
            let outcome = try load(app, [file])
            #expect(outcome.exit == .code(1))
            for line in [
                "push.txt:4: occurred_at is \"yesterday\", not a time",
                "push.txt:6: app_id is \"B\"", "push.txt:8: has 16 columns, expected 15",
                "push.txt:10: field_too_long: field \"device_id\" is 129 bytes",
            ] { #expect(outcome.error.contains(line), "\(line): \(outcome.error)") }
            #expect(try app.storedCount() == 2)
            let rejects = try String(contentsOfFile: file + ".rejects", encoding: .utf8)
            #expect(rejects.hasPrefix("tapline_reason\t\(Self.header)\n"), "\(rejects)")
            let better = rejects.replacing("yesterday", with: "2026-11-20 14:30:00 -0600")
                .replacing("\tB\t", with: "\tA\t").replacing("ddddd", with: "")
            let mended = try directory.file("mended.txt", better)
            let again = try load(app, [mended])
            // The row with a column too many is two broken lines, as its text has two lines.
            #expect(again.exit == .code(1) && again.error.contains("5 rows, 2 refused"), "\(again)")
            #expect(try app.storedCount() == 5)
            let left = try String(contentsOfFile: mended + ".rejects", encoding: .utf8)
            #expect(left.split(separator: "\n").count == 3 && left.contains("\tp4\t"), "\(left)")
        }

        /// What the daemon refuses of a body is named row by row, beyond the hundred of an answer.
        @Test func whatTheDaemonRefusesIsInTheFileOfRejectsToo() throws {
            let daemon = try Daemon(
                database: try Shared.daemon.conninfo, settings: ["http.line_bytes_max": "1KiB"]
            ).start()
            let app = try App(daemon)
            let directory = TemporaryDirectory()
            let map = try directory.file(
                "map", "type = \"sent\"\nmessage_uid = id\ndevice_id = \"d\"\n")
            let long = String(repeating: "x", count: 2000)
            let rows = (0..<300).map { $0 % 2 == 0 ? "m\($0),\(long)" : "m\($0),short" }
            let file = try directory.file("a.csv", "id,note\n" + rows.joined(separator: "\n"))
            let outcome = try load(app, [file], map: map)
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains("a.csv:2: line_too_long"), "\(outcome.error)")
            #expect(try app.storedCount() == 150)
            let rejects = try String(contentsOfFile: file + ".rejects", encoding: .utf8)
            #expect(rejects.split(separator: "\n").count == 151)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aDryRunSendsNothingAndShowsTheFirstEvents() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let rows = (0..<8).map { Self.row($0) } + [Self.row(9, time: "soon")]
            let file = try directory.file("push.txt", Self.table(rows))
            let outcome = try load(app, ["--dry-run", file])
            #expect(outcome.exit == .code(1))
            let lines = try outcome.output.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
            #expect(lines.count == 5 && lines[0]["type"] == .string("sent"))
            #expect(lines[0]["campaign_id"] == .string("Broadcast:77"))
            #expect(
                outcome.error.contains("would send 8 events (8 sent) of 9 rows, 1 refused"),
                "\(outcome.error)")
            #expect(try app.count() == 0)
            #expect(!FileManager.default.fileExists(atPath: file + ".rejects"))
        }

        @Test func wordsThatMeanNothingAreRefusedBeforeAnythingIsSent() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let file = try directory.file("a.csv", "id\nm\n")
            let bad = try directory.file("bad", "type = \"sent\"\ncolour = id\n")
            let wrong = try load(app, [file], map: bad)
            #expect(wrong.exit == .code(2) && wrong.error.contains("line 2: there is no field"))
            #expect(try load(app, [file], map: "nowhere").exit == .code(1))
            #expect(try load(app, []).exit == .code(2))
            #expect(try load(app, [file, file]).exit == .code(2))
            #expect(try load(app, ["--only", "x", file]).exit == .code(2))
            #expect(try load(app, ["--rejects", file, file]).exit == .code(2))
            let missing = try load(app, [file])
            #expect(
                missing.exit == .code(1) && missing.error.contains("no column \"message_id\""))
            let map = try load(app, ["--print-map"])
            #expect(map.isSuccess && map.output.contains("message_uid"))
            let cut = try directory.file(
                "cut.txt.gz", gzip(Self.table((0..<3000).map { Self.row($0) })).dropLast(20))
            let truncated = try load(app, [cut])
            #expect(truncated.exit == .code(1) && truncated.error.contains("cut.txt.gz"))
        }

        @Test func noFileOfRefusedRowsReplacesAFileThatIsRead() throws {
            let app = try Shared.app()
            let directory = TemporaryDirectory()
            let (good, bad) = ("id\nm1\n", "id\n\n\"\n")
            let map = try directory.file("m", "type = \"sent\"\nmessage_uid = id\n")
            let file = try directory.file("a.csv", bad)
            let other = try directory.file("a.csv.rejects", good)
            let same = directory.path + "/./a.csv"
            for arguments in [
                [file, other], ["--rejects", same, file], ["--rejects", map, file], [file, same],
            ] {
                let outcome = try load(app, arguments, map: map)
                #expect(outcome.exit == .code(2), "\(arguments): \(outcome)")
                #expect(outcome.error.contains("it is the same file as"), "\(outcome.error)")
            }
            let standardInput = try load(app, ["--rejects", file, "-"], map: map, input: file)
            #expect(standardInput.exit == .code(2), "\(standardInput)")
            #expect(try app.count() == 0)
            #expect(try String(contentsOfFile: file, encoding: .utf8) == bad)
            #expect(try String(contentsOfFile: other, encoding: .utf8) == good)
            // The rejects of an earlier import are replaced.
            #expect(try load(app, [file], map: map).exit == .code(1))
            #expect(try String(contentsOfFile: other, encoding: .utf8) != good)
        }

        /// Events that have no id and no time are told apart by their rows: killed and sent again, in
        /// another order of rows and columns, each is stored once.
        @Test func anImportThatIsCutOffAndBegunAgainStoresEachRowOnce() throws {
            let daemon = try Daemon(database: try Shared.daemon.conninfo).start()
            let app = try App(daemon)
            let directory = TemporaryDirectory()
            let map = try directory.file("map", "type = \"visit\"\ndevice_id = device\n")
            let rows = (0..<20_000).map { ("d\($0 % 100)", "page\($0)") }
            let file = try directory.file(
                "a.csv", "device,page\n" + rows.map { "\($0.0),\($0.1)\n" }.joined())
            let turned = try directory.file(
                "b.csv", "page,device\n" + rows.reversed().map { "\($0.1),\($0.0)\n" }.joined())
            let target = ["--url", "http://127.0.0.1:\(daemon.port)", "--key", app.key]
            let cut = try Tapline.start(
                ["import", "--map", map, "--batch", "50", "--connections", "1"] + target + [file])
            try until("some are taken") {
                try daemon.metric("tapline_events_received_total") >= 1000 ? true : nil
            }
            cut.signal(SIGKILL)
            _ = try cut.wait(seconds: 10)
            let whole = try Tapline.start(
                ["import", "--map", map, "--batch", "50"] + target + [file, turned])
            try until("some more are taken") {
                try daemon.metric("tapline_events_received_total") >= 5000 ? true : nil
            }
            try daemon.kill()
            try daemon.start()
            #expect(try whole.wait(seconds: 120) == .code(0), "\(whole.error)")
            #expect(try app.storedCount() == 20_000)
            #expect(try daemon.check().exit == .code(0))
            #expect(try daemon.stop() == .code(0))
        }
    }
}
