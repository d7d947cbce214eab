import Postgres
import Report
import Schema
import Testing

@Suite struct PeriodTests {
    /// Seconds from ``ReportBase/start`` (2026-09-01T00:00Z) to a day of 2026, at midnight UTC.
    static let october25 = 54 * 86_400.0
    static let march29 = -156 * 86_400.0

    @Test func periodIsHalfOpenAndOfTheFirstSight() throws {
        let seeds = [
            Seed(.sent, "m0", at: -1), Seed(.clicked, "m0", at: 5),
            Seed(.sent, "m1", at: 0), Seed(.clicked, "m1", at: 500_000),
            Seed(.clicked, "m2", at: -5), Seed(.sent, "m2", at: 86_399),
            Seed(.sent, "m3", at: 86_400),
            Seed(.sent, "m4", at: 86_500), Seed(.sent, "m4", at: 100),
        ]
        let report = try ReportBase.report(of: seeds) {
            try $0.set("from", "2026-09-01")
            try $0.set("to", "2026-09-02T00:00:00Z")
        }
        #expect(report.totals[.sent] == 3 && report.totals[.clicked] == 2)
        #expect(report.from == "2026-09-01T00:00:00Z" && report.to == "2026-09-02T00:00:00Z")
    }

    @Test(arguments: [("00:00:30", "00:15:01"), ("00:00:30", "00:30"), ("00:00", "00:15:01")])
    func periodMayCutAQuarterOfAnHour(from: String, to: String) throws {
        let times = [0, 29, 30, 899, 900, 901, 1799, 1800]
        func seconds(_ text: String) -> Int {
            zip(text.split(separator: ":"), [3600, 60, 1]).map { Int($0)! * $1 }.reduce(0, +)
        }
        let report = try ReportBase.report(
            of: times.map { Seed(.sent, "m\($0)", at: Double($0)) }
        ) {
            try $0.set("from", "2026-09-01T\(from)" + (from.count < 8 ? ":00Z" : "Z"))
            try $0.set("to", "2026-09-01T\(to)" + (to.count < 8 ? ":00Z" : "Z"))
        }
        let expected = times.filter { $0 >= seconds(from) && $0 < seconds(to) }.count
        #expect(report.totals[.sent] == Int64(expected))
    }

    @Test func daysOf25And23HoursAreWhole() throws {
        // Berlin's 25 October is 22:00Z of the 24th to 23:00Z of the 25th; its 29 March is 23:00Z
        // of the 28th to 22:00Z of the 29th.
        let hour = 3600.0
        let times = [
            Self.october25 - 2 * hour, Self.october25 + 23 * hour - 1, Self.october25 + 23 * hour,
            Self.march29 - hour, Self.march29 + 22 * hour - 1, Self.march29 + 22 * hour,
        ]
        let seeds = times.enumerated().map { Seed(.received, "m\($0)", at: $1) }
        let days = try ReportBase.report(of: seeds) {
            try $0.set("tz", "Europe/Berlin")
            try $0.set("by", "day")
        }
        #expect(
            days.rows.map { $0.dimensions[0] } == [
                "2026-03-29", "2026-03-30", "2026-10-25", "2026-10-26",
            ])
        #expect(days.rows.map { $0[.delivered] } == [2, 1, 2, 1])
        for (from, to) in [("2026-10-25", "2026-10-26"), ("2026-03-29", "2026-03-30")] {
            let day = try ReportBase.report(of: seeds) {
                try $0.set("tz", "Europe/Berlin")
                try $0.set("from", from)
                try $0.set("to", to)
            }
            #expect(day.totals[.delivered] == 2)
        }
    }

    @Test func theHourThatComesTwiceIsTwoRows() throws {
        let seeds = [
            Seed(.received, "m1", at: Self.october25 + 1800),
            Seed(.received, "m2", at: Self.october25 + 5400),
        ]
        let report = try ReportBase.report(of: seeds) {
            try $0.set("tz", "Europe/Berlin")
            try $0.set("by", "hour")
        }
        #expect(
            report.rows.map { $0.dimensions[0] } == [
                "2026-10-25T02:00+01:00", "2026-10-25T02:00+02:00",
            ])
    }

    /// Also where clocks change by half an hour, at midnight, or within an hour of UTC.
    @Test(arguments: [
        "UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe",
        "America/St_Johns", "America/Havana", "Asia/Gaza", "Pacific/Apia", "Asia/Pyongyang",
    ])
    func everyQuarterHasTheKeyOfItsDayAndHour(zone: String) throws {
        let base = try ReportBase()
        try base.connection.execute("SET TimeZone = '\(zone)'")
        for (key, text) in [
            (Schema.CellKeys.Time.day, Schema.dayKey), (.hour, Schema.hourKey),
        ] {
            let wrong = try base.connection.query(
                """
                WITH zone AS MATERIALIZED (SELECT * FROM tapline.zone_shifts()), keyed AS (
                    SELECT place, \(key.key(of: "place", isUTC: zone == "UTC")) AS quarter
                    FROM generate_series(extract(epoch FROM timestamptz '2009-01-01')::int / 900,
                        extract(epoch FROM timestamptz '2027-01-01')::int / 900) place)
                SELECT place, \(text(key.at)) FROM keyed
                WHERE \(text(key.at)) IS DISTINCT FROM \(text("to_timestamp(place * 900::float8)"))
                """)
            #expect(wrong.rows == 0, "quarter \(wrong.rows > 0 ? wrong.int64(0, 0)! : 0)")
        }
    }

    /// Hours of UTC are enough where they are hours of the zone, and the period is of whole ones.
    @Test func onlyWhereHoursAreEnoughAreQuartersNotRead() throws {
        let base = try ReportBase()
        let hour = "'2026-09-01 10:00Z'"
        for (zone, from, isByTime, expected) in [
            ("UTC", "NULL", true, true), ("UTC", hour, true, true),
            ("UTC", "'2026-09-01 10:15Z'", true, false),
            ("Europe/Berlin", hour, true, true), ("Asia/Kolkata", "NULL", true, false),
            ("Asia/Kolkata", hour, false, true), ("Asia/Kolkata", "'2026-09-01'", false, false),
            // Half an hour apart until 2018.
            ("Asia/Pyongyang", "NULL", true, false),
            ("America/New_York", "'2026-09-01'", true, true),
        ] {
            try base.connection.execute("SET TimeZone = '\(zone)'")
            let found = try base.connection.query(
                "SELECT tapline.hours_are_enough(\(from)::timestamptz, NULL, \(isByTime))")
            #expect(found.bool(0, 0) == expected, "\(zone) \(from) \(isByTime)")
        }
    }

    @Test(arguments: ["Europe/Nowhere", "EST5EDT4", "", "utc'; --"])
    func onlyZonesOfTheDatabaseAreTaken(zone: String) throws {
        let base = try ReportBase()
        let expected = ReportError.invalidOption(
            name: "tz", value: zone, reason: "not an IANA time zone")
        #expect(throws: expected) { try base.report { try $0.set("tz", zone) } }
        #expect(base.connection.transactionStatus == .idle)
    }

    @Test func asOfGivesTheSameEventsForEver() throws {
        let base = try ReportBase()
        try base.add([Seed(.sent, campaign: "a")])
        let first = try base.report()
        try base.add([Seed(.clicked), Seed(.sent, "m2")])
        let then = try base.report { try $0.set("as-of", first.asOf) }
        #expect(then.totals == first.totals && then.asOf == first.asOf)
        #expect(then.rows == first.rows)
        let now = try base.report { try $0.set("as-of", "2999-01-01") }
        #expect(now.totals[.clicked] == 1 && now.asOf > first.asOf)
        let before = try base.report { try $0.set("as-of", "2001-01-01") }
        #expect(before.rows.isEmpty && before.asOf == "2001-01-01T00:00:00Z")
    }

    @Test func timesAgoAreCountedFromNow() throws {
        let base = try ReportBase()
        let now = try base.connection.query("SELECT extract(epoch FROM now())::float8").double(
            0, 0)!
        let at = now - Double(ReportBase.start)
        try base.add([Seed(.sent, "m1", at: at - 5000), Seed(.sent, "m2", at: at - 100_000)])
        #expect(try base.report { try $0.set("from", "1h") }.totals[.sent] == 0)
        #expect(try base.report { try $0.set("from", "2h") }.totals[.sent] == 1)
        #expect(try base.report { try $0.set("from", "3d") }.totals[.sent] == 2)
    }

    @Test func oldestSpooledTimeIsDataThrough() throws {
        let base = try ReportBase()
        let report = try base.report { $0.dataThrough = 1_788_220_800_500_000 }
        #expect(report.dataThrough == "2026-09-01T00:00:00.500000Z")
        let idle = try base.report()
        #expect(idle.dataThrough == idle.asOf)
    }
}
