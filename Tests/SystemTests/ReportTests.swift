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

        /// Every number, text and flag of every row, in each format as JSON has it.
        @Test(arguments: ["campaign", "campaign,platform"])
        func everyFormatSaysTheSame(by: String) throws {
            let app = try Self.whole.get()[0].app
            let options = ["--by", by, "--journeys", "always"]
            let json = try Self.json(app, options)
            let rows = json["campaigns"].items
            #expect(rows.count > 3 && rows.contains { $0["influenced"].int ?? 0 > 0 })
            try Self.expectCSV(app, options, rows)

            let lines = try Self.report(app, options + ["--format", "ndjson"])
                .split(separator: "\n").map { try JSON(parsing: $0.utf8) }
            let ofAll = ["as_of", "data_through", "from", "to", "timezone", "cohort"]
            let expected = try ([json["totals"]] + rows).enumerated().map { place, row in
                guard case .object(var members) = row else { throw Failure("no row: \(row)") }
                for name in ofAll { members[name] = json[name] }
                members["is_total"] = .bool(place == 0)
                return JSON.object(members)
            }
            #expect(lines == expected)

            let columns = ["campaign_id"] + by.split(separator: ",").dropFirst().map(String.init)
            let table = try Self.report(app, options).split(separator: "\n").map(String.init)
            #expect(table.allSatisfy { $0.count <= 80 })
            Self.expectTable(table, rows + [json["totals"]], columns)
            let page = try Self.report(app, options + ["--format", "html"])
            Self.expectPage(page, rows + [json["totals"]], columns)
        }

        /// Each column is a member of JSON, and each member but lists a column.
        private static func expectCSV(_ app: App, _ options: [String], _ rows: [JSON]) throws {
            let text = try report(app, options + ["--format", "csv"])
            let csv = parse(text)
            let header = try #require(csv.first)
            #expect(csv.count == rows.count + 1 && csv.allSatisfy { $0.count == header.count })
            let parts = ["numerator", "denominator", "low", "high", "p50", "p90", "p99"]
            var members: Set<String> = ["action_share"]
            for (row, fields) in zip(rows, csv.dropFirst()) {
                for (name, field) in zip(header, fields) {
                    let part = parts.first { name.hasSuffix("_" + $0) }
                    let member = part.map { String(name.dropLast($0.count + 1)) } ?? name
                    members.insert(member)
                    #expect(row.keys.contains(member), "\(name)")
                    let value = row[member]
                    let isRate = if case .object = value { true } else { false }
                    switch isRate ? value[part ?? "value"] : value {
                    case .null: #expect(field.isEmpty, "\(name)")
                    case .string(let text): #expect(field == text, "\(name)")
                    case .array(let flags):
                        #expect(field == flags.compactMap(\.text).joined(separator: " "), "\(name)")
                    case let number: #expect(Double(field) == number.number, "\(name)")
                    }
                }
                #expect(members == row.keys)
            }
            let file = directory.path + "/output.csv"
            #expect(try report(app, options + ["--format", "csv", "--output", file]).isEmpty)
            #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
        }

        private static let shownCounts = [
            "sent", "delivered", "clicked", "clicks_total", "inbox_opened", "engaged",
        ]
        private static let shownRates = ["ctr_delivered", "ctr_sent", "engagement_rate"]

        /// A block of counts and one of rates, each with a line for every row and the totals.
        private static func expectTable(_ table: [String], _ rows: [JSON], _ columns: [String]) {
            // Bars are of other characters than numbers and names.
            let words = table.map { line in
                line.split(separator: " ").filter { !"▏▎▍▌▋▊▉█".contains($0.first!) }.map(
                    String.init)
            }
            let heads = words.indices.filter { words[$0].first == "campaign" }
            #expect(heads.count == 2)
            for (block, head) in heads.enumerated() {
                for (row, line) in zip(rows, words[(head + 1)...]) {
                    let isTotal = row["campaign_id"] == .null
                    let labels = isTotal ? ["totals"] : columns.map { row[$0].text ?? "(unknown)" }
                    for (label, word) in zip(labels, line) {
                        let ends = word.split(separator: "…", omittingEmptySubsequences: false)
                        #expect(
                            label.hasPrefix(ends.first ?? "") && label.hasSuffix(ends.last ?? ""))
                    }
                    let found = Array(line.dropFirst(labels.count))
                    if block == 0 {
                        #expect(found == shownCounts.map { row[$0].int.map { "\($0)" } ?? "n/a" })
                    } else {
                        var place = 0
                        for name in shownRates {
                            guard let value = row[name]["value"].number else {
                                #expect(found[place] == "n/a", "\(name)")
                                place += 1
                                continue
                            }
                            let numbers = found[place..<place + 3].map {
                                Double($0.filter { $0 != "[" && $0 != "]" }) ?? -1
                            }
                            for (number, (expected, error)) in zip(
                                numbers,
                                [
                                    (value, 0.005), (row[name]["low"].number ?? -1, 0.05),
                                    (row[name]["high"].number ?? -1, 0.05),
                                ])
                            {
                                #expect(abs(number - expected * 100) <= error + 1e-9, "\(name)")
                            }
                            place += 3
                        }
                        #expect(found.count == place)
                    }
                }
            }
        }

        /// The last table of the page has all rows and the totals.
        private static func expectPage(_ page: String, _ rows: [JSON], _ columns: [String]) {
            let table = page.components(separatedBy: "Every row, and the totals over everything")
                .last!
            let lines = table.components(separatedBy: "<tr>").dropFirst().map { line in
                line.matches(of: #/<t[dh][^>]*>([^<]*)</#).map { String($0.1) }
            }
            func percent(_ value: JSON) -> String {
                value.number.map { String(format: "%.2f", $0 * 100) } ?? "n/a"
            }
            #expect(lines.count == rows.count + 1)
            for (row, cells) in zip(rows, lines.dropFirst()) {
                let isTotal = row["campaign_id"] == .null
                var expected =
                    isTotal
                    ? ["totals"] + columns.dropFirst().map { _ in "" }
                    : columns.map { row[$0].text ?? "(unknown)" }
                expected += shownCounts.map { row[$0].int.map { "\($0)" } ?? "n/a" }
                for name in shownRates {
                    let (low, high) = (percent(row[name]["low"]), percent(row[name]["high"]))
                    expected += [
                        percent(row[name]["value"]), low == "n/a" ? low : "\(low)–\(high)",
                    ]
                }
                expected.append(row["flags"].items.compactMap(\.text).joined(separator: " "))
                #expect(
                    cells.map { $0.replacing(",", with: "").replacing("\u{A0}%", with: "") }
                        == expected)
            }
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
