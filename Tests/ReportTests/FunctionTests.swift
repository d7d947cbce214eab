import Postgres
import Report
import Schema
import Testing

/// `tapline.report`, which dashboards read, against the report of the command line.
struct FunctionTests {
    private static func seeds(_ count: Int) -> [Seed] {
        (0..<count).flatMap { number -> [Seed] in
            let message = "m\(number)"
            let sent = Seed(.sent, message, campaign: "c\(number % 3)", at: Double(number) * 7000)
                .with { $0.platform = number % 2 == 0 ? "ios" : "android" }
            let click = Seed(.clicked, message, at: Double(number) * 7000 + 60)
            return number % 4 == 0 ? [sent, click] : [sent]
        }
    }

    /// Rows of the function as texts, but for totals.
    private static func function(
        _ base: borrowing ReportBase, _ dimensions: String, _ period: [String]
    ) throws -> [String] {
        let answer = try base.connection.query(
            """
            SELECT concat_ws('|', app, coalesce(campaign_id, '-'), coalesce(dimension, '-'), sent,
                delivered, clicked, round(ctr_delivered::numeric, 9),
                round(ctr_delivered_high::numeric, 9))
            FROM tapline.report('\(dimensions)', time_zone => 'Europe/Berlin'
                \(zip(["period_from", "period_to"], period).map { ", \($0) => '\($1)'" }.joined()))
            WHERE NOT is_total
            """, [])
        return (0..<answer.rows).map { answer.string($0, 0) ?? "" }.sorted()
    }

    private static func commandLine(
        _ base: borrowing ReportBase, _ dimensions: String, _ period: [String]
    ) throws -> [String] {
        var options = ReportOptions()
        for (name, time) in zip(["from", "to"], period) { try options.set(name, time) }
        try options.set("by", dimensions)
        try options.set("tz", "Europe/Berlin")
        let report = try CampaignReport.load(options, on: base.connection)
        func text(_ rate: Double?) throws -> String? {
            try rate.map {
                try base.connection.query(
                    "SELECT round($1::float8::numeric, 9)::text", [.double($0)]
                ).string(0, 0) ?? ""
            }
        }
        return try report.rows.map { row in
            let rate = row[.ctrDelivered]
            let parts: [String?] = [
                row.app, row.campaign ?? "-", row.dimensions.first.flatMap { $0 } ?? "-",
                row[.sent].map(String.init), row[.delivered].map(String.init),
                row[.clicked].map(String.init), try text(rate.value), try text(rate.high),
            ]
            return parts.compactMap { $0 }.joined(separator: "|")
        }.sorted()
    }

    @Test(arguments: ["campaign", "day", "hour", "platform", "campaign,platform"])
    func functionCountsWhatTheCommandLineCounts(dimensions: String) throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        func expectSame() throws {
            for period in [
                [], ["2026-09-01T05:30:00Z"], ["2026-09-01T05:30:00Z", "2026-09-03T00:00:00Z"],
                ["2026-09-01T05:50:01Z"],
            ] {
                let rows = try Self.function(base, dimensions, period)
                #expect(try rows == Self.commandLine(base, dimensions, period))
                #expect(!rows.isEmpty)
            }
        }
        try base.add(Self.seeds(40))
        try expectSame()
        try base.add([Seed(.clicked, "m3", campaign: "other", at: 30_000)])
        try expectSame()
        try base.connection.execute("INSERT INTO tapline.test_device VALUES ('shop', 'd2')")
        try base.store([Seed(.sent, "m40", on: "d3", at: 30_000)])
        #expect(
            try Self.function(base, dimensions, []) == Self.commandLine(base, dimensions, []),
            "of a device that is not applied")
    }

    @Test(arguments: ["weekday", "day,platform", "campaign,day,platform", "'"])
    func functionRefusesOtherDimensions(dimensions: String) throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        #expect(throws: PostgresError.self) {
            try base.connection.query(
                "SELECT * FROM tapline.report($1)", [.text(dimensions)])
        }
    }

    @Test func functionGivesTheCallersTimeZoneBack() throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions + "; SET timezone = 'Asia/Tokyo'")
        let answer = try base.connection.query(
            """
            SELECT current_setting('timezone'),
                (SELECT count(*) FROM tapline.report(time_zone => 'Europe/Berlin')),
                current_setting('timezone')
            """, [])
        #expect(answer.string(0, 2) == "Asia/Tokyo")
    }

    // The views over it.

    @Test func viewsHaveTheNumbersOfTheCommandLine() throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        try base.add(Self.seeds(40))
        func rows(_ sql: String) throws -> [String] {
            let answer = try base.connection.query(sql)
            return (0..<answer.rows).map { row in
                (0..<4).map { answer.string(row, $0) ?? "n/a" }.joined(separator: "|")
            }.sorted()
        }
        func expected(_ by: String) throws -> [String] {
            try base.report { try $0.set("by", by) }.rows.map { row in
                [
                    row.campaign ?? "", row.dimensions.first.flatMap { $0 } ?? "n/a",
                    row[.delivered].map(String.init) ?? "n/a",
                    row[.clicked].map(String.init) ?? "n/a",
                ].joined(separator: "|")
            }.sorted()
        }
        #expect(
            try rows(
                "SELECT campaign_id, NULL::text, delivered::text, clicked::text FROM reporting.campaign"
            )
                == expected("campaign"))
        #expect(
            try rows(
                "SELECT campaign_id, day::text, delivered::text, clicked::text FROM reporting.campaign_day"
            )
                == expected("campaign,day"))
        let events = try base.connection.query(
            """
            SELECT count(*), count(stored_at), count(*) FILTER (WHERE type = 'clicked')
            FROM reporting.events
            """)
        let stored = try base.connection.query(
            "SELECT count(*), count(*), count(*) FILTER (WHERE type = 7) FROM tapline.event")
        #expect((0..<3).allSatisfy { events.int64(0, $0) == stored.int64(0, $0) })
        #expect(events.int64(0, 2)! > 0)
    }

    @Test func theReaderRoleReadsViewsAndNoKeys() throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        try base.add(Self.seeds(40))
        // As an upgrade does.
        try base.connection.execute(Schema.functions)
        // Partitions that come later are read by the report as well.
        try base.openSegment()
        try base.add([Seed(.clicked, "m3", campaign: "other", at: 30_000)])
        try base.connection.execute(
            "INSERT INTO tapline.campaign (app, campaign_id, change) VALUES ('shop', 'other', 1)")
        try base.connection.execute("SET ROLE tapline_reporting")
        for view in ["campaign", "campaign_day", "campaign_names", "events"] {
            let count = try base.connection.query("SELECT count(*) FROM reporting.\(view)")
            #expect(count.int64(0, 0)! > 0)
        }
        for statement in [
            "SELECT * FROM tapline.api_key", "SELECT * FROM tapline.token_secret",
            "SELECT * FROM tapline.dead_letter",
            "DELETE FROM tapline.event", "DELETE FROM reporting.events",
        ] {
            #expect(throws: PostgresError.self) { try base.connection.execute(statement) }
        }
    }
}
