import Foundation
import Testing

extension SystemTests {
    /// Law 5: the numbers of a report are those of the lines that were sent.
    @Suite struct ReportTests {
        static let directory = TemporaryDirectory()
        /// Ten days ago, so that no event is just about late (24 h) while the test runs.
        static let anchor = Int(Date().timeIntervalSince1970) - 864_000

        /// The sample of an app of the demo, sent to an app of the test's own.
        final class Sent: Sendable {
            let app: App
            let file: String

            init(_ name: String, _ options: [String], name suffix: String) throws {
                app = try Shared.app()
                let process = try Tapline.start(
                    ["demo", "--print-sample", name, "--sample-anchor", "\(anchor)"] + options)
                guard try process.wait(seconds: 60) == .code(0) else {
                    throw Failure("demo: \(process.error)")
                }
                file = "\(directory.path)/\(name)-\(suffix).ndjson"
                try FileManager.default.copyItem(atPath: process.outputPath, toPath: file)
                try Self.send(file, to: app, connections: 1)
            }

            static func send(_ file: String, to app: App, connections: Int) throws {
                let url = "http://127.0.0.1:\(app.daemon.port)"
                let outcome = try Tapline.run(
                    [
                        "send", "--url", url, "--key", app.key, "--connections", "\(connections)",
                        file,
                    ],
                    seconds: 120)
                // Some lines of the sample are bad on purpose.
                guard outcome.isSuccess || outcome.error.contains("rejected") else {
                    throw Failure("send: \(outcome)")
                }
                try app.daemon.waitUntilLoaded()
            }
        }

        /// The sample with all its faults, sent line after line: what arrival decides is decided.
        static let whole = Result {
            try ["shop", "news", "games"].map {
                try Sent($0, ["--sample-percent", "40"], name: "all")
            }
        }
        /// A smaller one in which the order does not matter.
        static let orderFree = Result {
            try Sent(
                "shop", ["--sample-order-free", "--sample-percent", "8"], name: "free")
        }

        static func report(_ app: App, _ options: [String] = []) throws -> String {
            let outcome = try Tapline.run(
                ["report", "--app", app.name] + options + app.daemon.store)
            guard outcome.isSuccess else { throw Failure("report: \(outcome)") }
            return outcome.output
        }

        static func json(_ app: App, _ options: [String] = []) throws -> JSON {
            try JSON(parsing: try report(app, options + ["--format", "json"]).utf8)
        }

        /// The report without what differs from one call or app to the next.
        static func comparable(_ json: JSON) -> JSON {
            guard case .object(var report) = json else { return json }
            for name in ["as_of", "data_through"] { report[name] = nil }
            func withoutApp(_ row: JSON) -> JSON {
                guard case .object(var members) = row else { return row }
                members["app"] = nil
                return .object(members)
            }
            report["totals"] = withoutApp(json["totals"])
            report["campaigns"] = .array(json["campaigns"].items.map(withoutApp))
            return .object(report)
        }

        /// Compares a report with the one that the other program makes of the file.
        static func compare(_ sent: Sent, _ options: [String]) throws {
            // The other program knows nothing of what devices did, and of flags about that.
            let text = try report(
                sent.app, options + ["--format", "json", "--journeys", "never"])
            let file = try directory.file("report.json", text)
            let program = Tapline.packageRoot + "/Tests/Python/recompute.py"
            let arguments = ["--app", sent.app.name, "--compare", file, sent.file]
            do {
                try Tapline.tool(["python3", program] + options + arguments)
            } catch {
                Issue.record("\(options): \("\(error)".prefix(3000))")
            }
        }

        static func day(_ ago: Int) -> String {
            let formatter = ISO8601DateFormatter()
            return formatter.string(
                from: Date(timeIntervalSince1970: TimeInterval((anchor / 86_400 - ago) * 86_400)))
        }

        // MARK: Against the other program

        @Test(arguments: 0..<3) func theSampleComesToWhatAnotherProgramComputes(index: Int) throws {
            try Self.compare(try Self.whole.get()[index], ["--by", "campaign,platform"])
        }

        static let views: [[String]] = [
            ["--by", "day"], ["--by", "day", "--tz", "Europe/Berlin"],
            ["--by", "campaign,day", "--tz", "America/St_Johns"], ["--by", "hour,platform"],
            ["--by", "country,locale"], ["--by", "app_version"],
            ["--from", day(9)], ["--to", day(5), "--by", "platform"],
            ["--from", day(8), "--to", day(4), "--by", "campaign,platform"],
            ["--campaign", "cart-reminder", "--by", "day"],
        ]

        @Test(arguments: views) func everyViewComesToWhatAnotherProgramComputes(
            options: [String]
        ) throws {
            try Self.compare(try Self.orderFree.get(), options)
        }

        // MARK: Coherence

        @Test func anyOrderAndAnyRepeatsGiveTheSameReport() throws {
            let first = try Self.orderFree.get()
            var random = Random(seed: 37)
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: first.file)))
            let lines = bytes.split(separator: 0x0A)
            let shuffled = (lines + lines.shuffled(using: &random).prefix(lines.count / 3))
                .shuffled(using: &random).joined(separator: [0x0A])
            let file = try Self.directory.file("shuffled.ndjson", Array(shuffled))
            let app = try Shared.app()
            try Sent.send(file, to: app, connections: 8)
            for options in [["--by", "campaign"], ["--by", "day,platform"]] {
                let expected = Self.comparable(try Self.json(first.app, options))
                #expect(!expected["campaigns"].items.isEmpty)
                let found = Self.comparable(try Self.json(app, options))
                #expect(found["totals"] == expected["totals"])
                #expect(found["campaigns"] == expected["campaigns"], "\(options)")
            }
        }

        @Test func whatWasKnownAtATimeStaysTheSame() throws {
            let app = try Shared.app()
            try app.store((0..<50).map { App.click("m\($0)", #","campaign_id":"a""#) })
            let before = try Self.json(app)
            let asOf = try #require(before["as_of"].text)
            #expect(before["totals"]["clicked"] == .int(50))
            try app.store((0..<30).map { App.click("n\($0)", #","campaign_id":"b""#) })
            let after = try Self.json(app)
            #expect(after["totals"]["clicked"].int == 80, "\(after)")
            let again = try Self.json(app, ["--as-of", asOf])
            #expect(Self.comparable(again) == Self.comparable(before))
            #expect(again["as_of"].text == asOf)
        }

        // S18
        @Test func ratesAreHonestWhateverTheCounts() throws {
            let app = try Shared.app()
            func line(_ type: String, _ uid: String, _ campaign: String, _ more: String = "")
                -> String
            {
                #"{"type":"\#(type)","message_uid":"\#(uid)","device_id":"d","#
                    + #""campaign_id":"\#(campaign)"\#(more)}"#
            }
            try app.store([
                line("received", "a", "twice"), line("clicked", "a", "twice", #","event_uid":"1""#),
                line("clicked", "a", "twice", #","event_uid":"2""#),
                line("clicked", "b", "undelivered"), line("failed", "c", "failed"),
            ])
            let rows = Dictionary(
                uniqueKeysWithValues: try Self.json(app)["campaigns"].items.map {
                    ($0["campaign_id"].text ?? "", $0)
                })
            let twice = try #require(rows["twice"])
            #expect(twice["clicked"] == .int(1) && twice["clicks_total"] == .int(2))
            #expect(twice["ctr_delivered"]["value"].number == 1)
            #expect(twice["sent"] == .null && twice["ctr_sent"]["value"] == .null)
            #expect(rows["undelivered"]?["delivered"] == .int(1))
            #expect(rows["failed"]?["ctr_delivered"]["value"] == .null)
            #expect(rows["failed"]?["ctr_delivered"]["denominator"] == .int(0))
            #expect(try Self.report(app).contains("n/a"))
            #expect(!(try Self.report(app, ["--format", "csv"]).lowercased().contains("nan")))
        }

        @Test func everyFormatSaysTheSame() throws {
            let app = try Self.whole.get()[0].app
            let json = try Self.json(app)
            let csv = Self.parse(try Self.report(app, ["--format", "csv"]))
            let header = try #require(csv.first)
            #expect(csv.allSatisfy { $0.count == header.count })
            for row in json["campaigns"].items {
                let campaign = try #require(row["campaign_id"].text)
                let column = try #require(header.firstIndex(of: "campaign_id"))
                let fields = try #require(csv.first { $0[column] == campaign })
                for (name, field) in zip(header, fields) {
                    if let count = row[name].int { #expect(field == "\(count)", "\(name)") }
                    if let rate = row[name]["value"].number {
                        #expect(Double(field).map { abs($0 - rate) < 1e-9 } == true, "\(name)")
                    }
                }
            }
            let table = try Self.report(app)
            #expect(table.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(table)")
            let file = Self.directory.path + "/output.csv"
            #expect(try Self.report(app, ["--format", "csv", "--output", file]).isEmpty)
            #expect(Self.parse(try String(contentsOfFile: file, encoding: .utf8)) == csv)
        }

        /// The fields of CSV (RFC 4180).
        private static func parse(_ text: String) -> [[String]] {
            var rows: [[String]] = [[""]]
            var isQuoted = false
            for character in text {
                let last = rows.count - 1
                switch character {
                case "\"": isQuoted.toggle()
                case "," where !isQuoted: rows[last].append("")
                case "\n" where !isQuoted, "\r\n" where !isQuoted: rows.append([""])
                default: rows[last][rows[last].count - 1].append(character)
                }
            }
            return rows.filter { $0 != [""] }
        }
    }
}
