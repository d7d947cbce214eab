import Foundation
import Report
import Testing

@Suite struct FormatTests {
    /// A campaign id that would break every format that does not quote.
    static let nasty = "a,\"b\"\n\u{1B}[31m\\ü"

    static func sample() throws -> CampaignReport {
        var seeds: [Seed] = []
        for index in 0..<200 {
            let campaign = ["spring sale 2026 for everyone who has ever bought a hat", nasty][
                index % 2]
            seeds.append(Seed(.sent, "m\(index)", campaign: campaign))
            if index % 4 != 3 { seeds.append(Seed(.received, "m\(index)", at: 5)) }
            if index % 10 == 0 { seeds.append(Seed(.clicked, "m\(index)", at: 9)) }
        }
        seeds.append(Seed(.received, on: nil).with { $0.app = "other" })
        return try ReportBase.report(of: seeds)
    }

    static func text(_ report: CampaignReport, _ format: ReportFormat) -> String {
        String(decoding: report.render(format), as: UTF8.self)
    }

    @Test func tableFitsATerminalAndShowsItsFormulas() throws {
        for by in ["campaign", "campaign,hour", "os_version,app_version", "day,hour"] {
            let base = try ReportBase()
            try base.add([
                Seed(.sent, campaign: String(repeating: "long-", count: 25)),
                Seed(.clicked).with { $0.app = String(repeating: "x", count: 100) },
            ])
            let table = Self.text(try base.report { try $0.set("by", by) }, .table)
            #expect(table.split(separator: "\n").map(String.init).filter { $0.count > 80 } == [])
        }
        let table = Self.text(try Self.sample(), .table)
        #expect(table.split(separator: "\n").map(String.init).filter { $0.count > 80 } == [])
        #expect(table.contains("ctr_delivered = clicked / delivered"))
        #expect(!table.contains("\u{1B}") && table.contains("…") && table.contains("n/a"))
        #expect(table.contains("\ntotals "))
    }

    @Test func jsonHasTheNamesOfTheDocument() throws {
        let report = try Self.sample()
        let data = Data(report.render(.json))
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(
            Set(object.keys) == [
                "as_of", "data_through", "from", "to", "timezone", "cohort", "totals", "campaigns",
            ])
        #expect(object["cohort"] as? String == "first_seen" && object["from"] is NSNull)
        let rows = try #require(object["campaigns"] as? [[String: Any]])
        let row = try #require(rows.first { $0["campaign_id"] as? String == Self.nasty })
        for name in [
            "sent", "failed", "accepted", "observed", "delivered", "implied", "clicked",
            "clicks_total", "actions", "dismissed", "inbox_opened", "engaged", "test_excluded",
            "late",
        ] {
            #expect(row[name] is Int, "\(name)")
        }
        let rate = try #require(row["ctr_sent"] as? [String: Any])
        #expect(rate["numerator"] as? Int == 0 && rate["denominator"] as? Int == 100)
        #expect(rate["value"] as? Double == 0 && rate["low"] as? Double == 0)
        let totals = try #require(object["totals"] as? [String: Any])
        #expect(totals["sent"] is NSNull && totals["influenced"] is NSNull)
        let unknown = try #require(totals["ctr_sent"] as? [String: Any])
        #expect(unknown["value"] is NSNull && unknown["denominator"] is NSNull)
    }

    @Test func csvHasOneColumnANumber() throws {
        let report = try ReportBase.report(of: [
            Seed(.received, campaign: "a,\"b\"").with { $0.platform = "ios" }
        ]) { try $0.set("by", "campaign,platform") }
        let lines = Self.text(report, .csv).split(separator: "\n")
        #expect(lines.count == 2)
        #expect(
            lines[0].hasPrefix("app,campaign_id,platform,sent,failed,accepted,observed,delivered,"))
        #expect(lines[0].contains(",ctr_delivered,ctr_delivered_low,ctr_delivered_high,"))
        #expect(lines[1].hasPrefix("shop,\"a,\"\"b\"\"\",ios,,0,,1,1,0,0,0,"))
        #expect(lines[1].contains(",0.0,0.0,0.79345"))
    }
}
