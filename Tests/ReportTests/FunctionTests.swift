import Foundation
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

    /// Messages without a campaign are looked up among the sent events of each closed segment: by its index or,
    /// where they are more than a twentieth of its rows, by a scan.
    @Test(arguments: [0, 1, 16, 17, 300]) func sentEventsAreFoundByIndexAndByScan(count: Int) throws
    {
        let base = try ReportBase()
        try base.store(
            (0..<300).map { Seed(.sent, "m\($0)", on: "d", campaign: $0 % 5 == 1 ? nil : "c\($0)") }
                + (0..<20).map { Seed(.received, "m\($0)", on: "d", campaign: "no send") })
        try base.openSegment()
        try base.connection.execute(
            """
            UPDATE tapline.segment SET rows = 320 WHERE segment = 1;
            SET enable_nestloop = off;
            CREATE TEMP TABLE asked AS
                SELECT tapline.unit_message(unit) AS message, campaign_id, event_time, key, batch
                FROM tapline.event WHERE type = 1 ORDER BY key LIMIT \(count)
            """)
        let found = "SELECT * FROM tapline.sent_campaigns((SELECT array_agg(message) FROM asked))"
        let expected = "SELECT * FROM asked WHERE campaign_id IS NOT NULL"
        let counts = try base.connection.query(
            """
            SELECT (SELECT count(*) FROM (\(found)) f), (SELECT count(*) FROM (\(expected)) e),
                (SELECT count(*) FROM (\(found) INTERSECT \(expected)) b)
            """)
        #expect(counts.int64(0, 0) == counts.int64(0, 1))
        #expect(counts.int64(0, 0) == counts.int64(0, 2))
        #expect(Int(counts.int64(0, 0) ?? 0) * 2 >= count)
    }

    // The views over it.

    /// Every column of every row: keys, each count and each rate that needs no journeys, flags.
    @Test func viewsHaveTheNumbersOfTheCommandLine() throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        // Units of every kind, among them special and test ones, and a campaign with a flag.
        try base.add(
            (1...8).flatMap(MergeTests.world) + Self.seeds(40)
                + (0..<31).map { Seed(.clicked, "all \($0)", campaign: "all") } + [
                    Seed(.failed, "f", campaign: "failed"), Seed(.clicked, "f", campaign: "failed"),
                    Seed(.received, "t", campaign: "failed").with { $0.isTest = true },
                    Seed(.dismissed, "d", campaign: "failed"),
                    Seed(.action, "a", campaign: "failed"),
                    Seed(.inboxOpen, "i", campaign: "failed").with { $0.delay = 90_000 },
                    Seed(.sent, "s", campaign: "failed"), Seed(.displayed, "s", campaign: "failed"),
                ])
        let counts = ReportCount.allCases.filter {
            ![.influenced, .converted, .clicksBeforeReceipts].contains($0)
        }
        let rates = ReportRate.allCases.filter { ![.influencedRate, .conversionRate].contains($0) }
        var names = Set(["app", "campaign_id", "flags", "ctr_delivered_low", "ctr_delivered_high"])
        names.formUnion(counts.map(\.rawValue) + rates.map(\.rawValue))
        for (view, by) in [("campaign", "campaign"), ("campaign_day", "campaign,day")] {
            let isByDay = by != "campaign"
            let answer = try base.connection.query(
                "SELECT to_jsonb(v)::text FROM reporting.\(view) v")
            let found = try (0..<answer.rows).map { row in
                try #require(
                    try JSONSerialization.jsonObject(with: Data(answer.string(row, 0)!.utf8))
                        as? [String: Any])
            }
            let report = try base.report { try $0.set("by", by) }
            #expect(found.count == report.rows.count && found.count > 6)
            for row in report.rows {
                let same = try #require(
                    found.first {
                        $0["app"] as? String == row.app
                            && $0["campaign_id"] as? String == row.campaign
                            && (!isByDay || $0["day"] as? String == row.dimensions[0])
                    })
                #expect(Set(same.keys) == (isByDay ? names.union(["day"]) : names))
                let place = "\(view): \(row.app ?? "") \(row.campaign ?? "") \(row.dimensions)"
                for count in counts {
                    #expect(same[count.rawValue] as? Int64 == row[count], "\(place): \(count)")
                }
                var values = rates.map { ($0.rawValue, row[$0].value) }
                values.append(("ctr_delivered_low", row[.ctrDelivered].low))
                values.append(("ctr_delivered_high", row[.ctrDelivered].high))
                for (name, value) in values {
                    let other = same[name] as? Double
                    #expect((other == nil) == (value == nil), "\(place): \(name)")
                    #expect(abs((other ?? 0) - (value ?? 0)) < 1e-12, "\(place): \(name)")
                }
                #expect(same["flags"] as? [String] == row.flags, "\(place)")
            }
            // Nothing is compared that is the same everywhere.
            for count in counts {
                #expect(report.rows.contains { $0[count] ?? 0 > 0 }, "\(count)")
            }
            #expect(report.rows.contains { !$0.flags.isEmpty })
        }
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

    /// Whoever says `SELECT *` or inserts from one counts on their order.
    @Test func theColumnsOfTheViewsStayInTheirPlaces() throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        let counts =
            "sent failed accepted observed delivered implied clicked clicks_total actions dismissed "
            + "inbox_opened engaged test_excluded late clicks_without_send failed_but_clicked "
            + "delivery_rate ctr_delivered ctr_delivered_low ctr_delivered_high ctr_sent "
            + "ctr_accepted engagement_rate dismiss_rate flags"
        for (view, keys) in [("campaign", ""), ("campaign_day", "day ")] {
            let found = try base.connection.query(
                """
                SELECT string_agg(column_name, ' ' ORDER BY ordinal_position)
                FROM information_schema.columns
                WHERE table_schema = 'reporting' AND table_name = '\(view)'
                """)
            #expect(found.string(0, 0) == "app campaign_id \(keys)\(counts)")
        }
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
