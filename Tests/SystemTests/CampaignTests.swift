import Foundation
import Testing

extension SystemTests {
    /// `tapline campaign`, and the names in reports.
    @Suite struct CampaignTests {
        private func campaign(_ app: App, _ arguments: [String]) throws -> Outcome {
            try Tapline.run(["campaign"] + arguments + app.daemon.store)
        }

        private func load(_ app: App, _ text: String) throws -> Outcome {
            let file = try TemporaryDirectory().file("campaigns", text)
            return try campaign(app, ["import", "--app", app.name, file])
        }

        private func row(_ app: App, _ id: String, _ options: [String] = []) throws -> JSON {
            let rows = try ReportTests.json(app, options)["campaigns"].items
            return try #require(rows.first { $0["campaign_id"] == .string(id) })
        }

        @Test func aNameThatComesLateIsInReportsOfThePast() throws {
            let app = try Shared.app()
            try app.store([
                #"{"type":"sent","message_uid":"m","device_id":"d","campaign_id":"s1"}"#,
                #"{"type":"clicked","message_uid":"m","device_id":"d","campaign_id":"s1"}"#,
                #"{"type":"sent","message_uid":"n","device_id":"d","campaign_id":"s2"}"#,
            ])
            let asOf = try #require(try ReportTests.json(app)["as_of"].text)
            #expect(try row(app, "s1")["campaign_name"] == .null)
            let first = try load(
                app,
                "id,name,variant,audience,provider,sent_at\n"
                    + "s1,\"Spring, all\",B,members,vibes,2026-11-30T00:00:00+01:00\n")
            #expect(first.isSuccess && first.error.contains("1 added, 0 changed"), "\(first)")
            let names = [
                "campaign_name", "campaign_variant", "campaign_audience", "campaign_provider",
                "campaign_sent_at",
            ]
            let values = ["Spring, all", "B", "members", "vibes", "2026-11-29T23:00:00Z"]
            for options in [[], ["--as-of", asOf], ["--by", "campaign,platform"]] {
                let row = try row(app, "s1", options)
                #expect(names.map { row[$0].text } == values, "\(options): \(row)")
                #expect(row["clicked"] == .int(1))
            }
            #expect(try row(app, "s2")["campaign_name"] == .null)
            #expect(try ReportTests.json(app)["totals"]["campaign_name"] == .null)
            for (format, text) in [
                ("table", "\ns1  Spring, all, variant B, to members, by vibes, sent "),
                ("csv", ",\"Spring, all\",B,members,vibes,2026-11-29T23:00:00Z\n"),
                ("html", "Spring, all B (s1)"), ("html", ">members</th>"),
                ("ndjson", "\"campaign_name\":\"Spring, all\""),
            ] {
                let report = try ReportTests.report(app, ["--format", format])
                #expect(report.contains(text), "\(format): \(report)")
            }
            let compared = try Tapline.run(
                ["compare", "--app", app.name, "s1", "s2"] + app.daemon.store)
            #expect(compared.output.contains("Spring, all, variant B"), "\(compared)")
        }

        @Test func importingAgainChangesNothingAndAColumnThatIsNotThereStays() throws {
            let app = try Shared.app()
            let text =
                "{\"id\":\"c\",\"name\":\"N\",\"variant\":\"A\"}\n{\"id\":2,\"name\":\"Two\"}\n"
            #expect(try load(app, text).error.contains("2 added, 0 changed, 0 as they were"))
            #expect(try load(app, text).error.contains("0 added, 0 changed, 2 as they were"))
            #expect(try load(app, "id,name\nc,\n").error.contains("0 added, 1 changed"))
            let list = try campaign(app, ["list", "--app", app.name, "--format", "json"])
            let rows = try JSON(parsing: list.output.utf8).items
            #expect(rows.map { $0["id"].text } == ["2", "c"])
            #expect(rows.map { $0["name"].text } == ["Two", nil])
            #expect(rows.map { $0["variant"].text } == [nil, "A"])
        }

        @Test func aWrongLineIsNamedAndTheOthersAreImported() throws {
            let app = try Shared.app()
            let outcome = try load(app, "id,name\na,A\n,B\nc,C,D\nd,D\n")
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains("campaigns:3: id is missing"), "\(outcome.error)")
            #expect(outcome.error.contains("campaigns:4: has 3 columns, expected 2"))
            #expect(outcome.error.contains("2 campaigns: 2 added"))
            #expect(try campaign(app, ["import", "/nowhere"]).exit == .code(1))
        }

        /// Over HTTP an unchanged report is 304: a name that comes is a change.
        @Test func aNewNameChangesTheETag() throws {
            let app = try Shared.app()
            try app.store([#"{"type":"clicked","message_uid":"m","campaign_id":"c"}"#])
            let reader = try app.daemon.key(app.name, role: "read")
            func ask(_ tag: String? = nil) throws -> Answer {
                var request = Request(method: "GET", target: "/v1/reports/campaigns?to=2100-01-01")
                request.headers.append(("Authorization", "Bearer \(reader)"))
                if let tag { request.headers.append(("If-None-Match", tag)) }
                return try app.daemon.send(request)
            }
            let first = try ask()
            let tag = try #require(first.header("etag"))
            #expect(try ask(tag).status == 304)
            for name in ["One", "Two"] {
                #expect(try load(app, "id,name\nc,\(name)\n").isSuccess)
                let answer = try ask(tag)
                #expect(answer.status == 200)
                let row = try answer.json["campaigns"][0]
                #expect(row["campaign_name"] == .string(name), "\(row)")
            }
        }
    }
}
