import Postgres
import Report
import Schema
import Testing

/// Cells as tables: what makes them, moves them and carries an older database over.
@Suite struct MergeTests {
    static func world(_ seed: UInt64) -> [Seed] {
        var dice = CellTests.Dice(state: seed)
        return CellTests.world(&dice)
    }

    /// Units that are in cells, and units that are special.
    private static func mixed() -> [Seed] {
        (0..<30).map { number in
            Seed(.sent, "m\(number)", campaign: "c\(number % 3)", at: Double(number) * 7000)
        } + [Seed(.received, "x", campaign: "a"), Seed(.received, "x", campaign: "b")]
            + world(3)
    }

    private static func number(
        _ connection: borrowing PostgresConnection, _ sql: String
    ) throws -> Int64 {
        try #require(try connection.query(sql).int64(0, 0))
    }

    /// The reports by campaign, day and platform as one text, as the connection's snapshot has them.
    private static func reports(_ connection: borrowing PostgresConnection) throws -> String {
        try connection.query(
            """
            SELECT string_agg(r::text, E'\\n' ORDER BY r::text) FROM (
                SELECT 1, f FROM tapline.report('campaign') f
                UNION ALL SELECT 2, f FROM tapline.report('campaign,day') f
                UNION ALL SELECT 3, f FROM tapline.report('campaign,platform') f) r
            """
        ).string(0, 0) ?? ""
    }

    // What is special.

    /// Events, and which of their units, as message and device, are special.
    static let rules: [(seeds: [Seed], special: Set<String>)] = [
        ([Seed(.sent, campaign: "a"), Seed(.clicked, at: 9)], []),
        // A message without a device, or named by one without.
        ([Seed(.sent, on: nil), Seed(.received, "m2")], ["m1 -"]),
        ([Seed(.sent, on: nil), Seed(.received)], ["m1 -", "m1 d1"]),
        (
            [
                Seed(.sent, on: nil).with { $0.inbox = "m2" }, Seed(.received, "m2"),
                Seed(.received, "m3").with { $0.inbox = "m2" }, Seed(.received, "m4"),
            ], ["m1 -", "m2 d1", "m3 d1"]
        ),
        // Two campaigns.
        ([Seed(.sent, campaign: "a"), Seed(.clicked, campaign: "b")], ["m1 d1"]),
        ([Seed(.sent, campaign: "a"), Seed(.clicked, campaign: "a")], []),
        // Dimensions: different ones that agree, the same that do not, different that do not.
        (
            [
                Seed(.sent).with { $0.platform = "ios" },
                Seed(.clicked).with { $0.locale = "de" }, Seed(.received),
            ], []
        ),
        (
            [
                Seed(.sent).with { $0.platform = "ios" },
                Seed(.clicked).with { $0.platform = "web" }, Seed(.received),
            ], []
        ),
        (
            [
                Seed(.sent).with { $0.platform = "ios" },
                Seed(.clicked).with {
                    $0.platform = "web"
                    $0.locale = "de"
                },
            ], ["m1 d1"]
        ),
        // No campaign, and a sent of the message that has one.
        ([Seed(.received), Seed(.sent, on: "d2", campaign: "a")], ["m1 d1"]),
        ([Seed(.received), Seed(.sent, on: "d2")], []),
        ([Seed(.received), Seed(.received, on: "d2", campaign: "a")], []),
        // The inbox.
        ([Seed(.received).with { $0.inbox = "i1" }, Seed(.received, "i1")], []),
        (
            [Seed(.received).with { $0.inbox = "i1" }, Seed(.inboxOpen, "i1")], ["m1 d1", "i1 d1"]
        ),
        ([Seed(.received).with { $0.inbox = "i1" }, Seed(.inboxOpen, "i1", on: "d2")], []),
        ([Seed(.inboxOpen, "i1").with { $0.inbox = "i1" }], []),
        (
            [
                Seed(.received).with { $0.inbox = "i1" },
                Seed(.inboxOpen, "m2").with { $0.inbox = "i1" },
                Seed(.received, "i1"), Seed(.received, "m3").with { $0.inbox = "i3" },
            ], ["m1 d1", "m2 d1"]
        ),
    ]

    @Test(arguments: rules.indices) func onlySpecialUnitsAreLeftOutOfCells(index: Int) throws {
        let (seeds, special) = Self.rules[index]
        let base = try ReportBase()
        try base.add(seeds)
        let found = try base.connection.query(
            """
            SELECT DISTINCT message_uid || ' ' || coalesce(device_id, '-')
            FROM tapline.event e JOIN tapline.special_unit s
                ON s.unit = e.unit AND s.segment = e.segment
            """)
        #expect(Set((0..<found.rows).map { found.string($0, 0)! }) == special)
        let units = Set(seeds.map { "\($0.message ?? "-") \($0.device ?? "-")" })
        for table in [
            "cell", "cell_quarter", "cell_hour", "cell_dimension", "cell_time", "cell_campaign",
        ] {
            let counted = try Self.number(
                base.connection, "SELECT coalesce(sum(units), 0)::bigint FROM tapline.\(table)")
            #expect(counted == Int64(units.subtracting(special).count), "\(table)")
        }
    }

    @Test func specialUnitHasARowForEachSegmentOfItsEvents() throws {
        let base = try ReportBase()
        try base.add([Seed(.sent, campaign: "a"), Seed(.received)])
        try base.openSegment()
        try base.add([Seed(.sent, "m2")])
        try base.openSegment()
        try base.add([Seed(.clicked, campaign: "b")])
        let rows = try base.connection.query(
            "SELECT segment, batch FROM tapline.special_unit ORDER BY segment")
        #expect(rows.rows == 2 && rows.int64(0, 0) == 1 && rows.int64(1, 0) == 3)
        #expect(rows.int64(0, 1) == 3, "a daemon finds it by the newest batch")
    }

    @Test func rebuildingIsSeenByDaemonsAndMarksTestDevices() throws {
        let base = try ReportBase()
        try base.add([Seed(.sent), Seed(.sent, "m2", on: "d2")])
        let before = try Self.number(base.connection, "SELECT generation FROM tapline.turn")
        try base.connection.execute(
            "INSERT INTO tapline.test_device (app, device_id) VALUES ('shop', 'd1')")
        #expect(try base.report().totals[.testExcluded] == 1)
        try base.unmerge()
        try base.rebuild()
        #expect(
            try Self.number(base.connection, "SELECT generation FROM tapline.turn") == before + 1)
        #expect(try Self.number(base.connection, "SELECT count(*) FROM tapline.cell_change") == 0)
        #expect(
            try Self.number(
                base.connection, "SELECT count(*) FROM tapline.test_device WHERE NOT applied") == 0)
        #expect(try Self.number(base.connection, "SELECT count(*) FROM tapline.special_unit") == 1)
        #expect(try base.report().totals[.testExcluded] == 1)
    }

    /// A unit takes the campaign of a sent of its message, wherever that is: in the segment of the
    /// unit, in another, and in the open one whether or not that is read for units of its own.
    @Test(arguments: [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (3, 3)], [nil, 1, 3])
    func campaignComesFromASentOfAnySegment(places: (Int, Int), special: Int?) throws {
        let base = try ReportBase()
        for segment in 1...3 {
            var seeds = [Seed(.sent, "m2", on: "d\(segment)")]
            if segment == places.0 { seeds.append(Seed(.clicked, on: "d2")) }
            if segment == places.1 { seeds.append(Seed(.sent, on: "d1", campaign: "a")) }
            if segment == special {
                seeds += ["b", "c"].map { Seed(.received, "m3", campaign: $0) }
            }
            try base.store(seeds)
            if segment < 3 { try base.openSegment() }
        }
        try base.rebuild()
        let report = try base.report()
        #expect(report.row("a")?[.clicked] == 1 && report.row("a")?[.sent] == 1)
        #expect(report.row("(unattributed)")?[.sent] == 3)
        let fromEvents = try base.report { $0.isFromEvents = true }
        #expect(report.totals == fromEvents.totals && report.rows == fromEvents.rows)
    }

    // Moving.

    @Test func mergingTakesClosedSegmentsAlone() throws {
        let base = try ReportBase()
        try base.add(Self.mixed())
        try base.unmerge()
        #expect(try base.merge() == 0, "nothing is closed")
        #expect(try Self.number(base.connection, "SELECT count(*) FROM tapline.cell") == 0)
        try base.openSegment()
        try base.add([Seed(.received, "new")])
        try base.unmerge()
        let open = "SELECT count(*) FROM tapline.cell_change WHERE segment = 2"
        let left = try Self.number(base.connection, open)
        #expect(try base.merge() == 1 && base.merge() == 0)
        #expect(try left == Self.number(base.connection, open) && left > 0)
        #expect(
            try Self.number(
                base.connection, "SELECT count(*) FROM tapline.cell_change WHERE segment < 2") == 0)
        #expect(
            try base.connection.query("SELECT state FROM tapline.segment WHERE segment = 1")
                .string(0, 0) == "sealed")
        #expect(
            try Self.number(
                base.connection,
                "SELECT count(*) FROM tapline.cell WHERE units = 0 AND clicks = 0 AND late = 0")
                == 0
        )
    }

    @Test func mergingIsSeenWholeOrNotAtAll() throws {
        let base = try ReportBase()
        try base.connection.execute(Schema.functions)
        try base.add(Self.mixed())
        try base.openSegment()
        try base.unmerge()
        let expected = try Self.reports(base.connection)
        let older = try PostgresConnection(conninfo: base.conninfo)
        try older.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM tapline.turn")
        let keeper = try PostgresConnection(conninfo: base.conninfo)
        try keeper.execute("BEGIN")
        #expect(try keeper.query("SELECT tapline.merge_cells()").int64(0, 0) == 1)
        #expect(try Self.reports(base.connection) == expected, "while it is under way")
        #expect(try Self.reports(keeper) == expected, "to itself")
        try keeper.execute("COMMIT")
        #expect(try Self.reports(base.connection) == expected, "afterwards")
        #expect(try Self.reports(older) == expected, "in a snapshot from before")
        try older.execute("ROLLBACK")
        #expect(expected.contains("campaign_mismatch") && expected.contains("c1"))
    }

    @Test func onlyOneSessionMerges() throws {
        let base = try ReportBase()
        try base.add(Self.mixed())
        try base.openSegment()
        let other = try PostgresConnection(conninfo: base.conninfo)
        try other.execute("BEGIN")
        #expect(try other.query("SELECT tapline.merge_cells()").int64(0, 0) == 1)
        #expect(try base.merge() == 0)
        try other.execute("ROLLBACK")
        #expect(try base.merge() == 1)
    }

    // An older database.

    @Test(arguments: 0..<3) func databaseWithATableOfUnitsIsCarriedOver(seed: UInt64) throws {
        let seeds = Self.mixed() + Self.world(seed)
        let old = try ReportBase(version: 2)
        try old.connection.execute("INSERT INTO tapline.test_device VALUES ('app0', 'd1')")
        for number in 1...3 {
            try old.store(seeds.enumerated().filter { $0.offset % 3 == number - 1 }.map(\.element))
            try old.connection.execute("SELECT tapline.fold_units(1000000)")
            if number < 3 { try old.openSegment() }
        }
        // One sealed, and one whose index is still to be made.
        try old.connection.execute(
            """
            UPDATE tapline.segment SET state = 'sealed' WHERE segment = 1;
            DROP INDEX tapline.event_2_unit_key
            """)
        #expect(
            try Self.number(old.connection, "SELECT count(*) FROM tapline.unit WHERE special") > 0)
        for migration in Schema.migrations.dropFirst(2) {
            try old.connection.execute("BEGIN; \(migration.sql); COMMIT")
        }
        try old.connection.execute(Schema.cellFunctions)

        let new = try ReportBase()
        try new.connection.execute("INSERT INTO tapline.test_device VALUES ('app0', 'd1')")
        try new.add(seeds)
        for by in CellTests.everyBy {
            let (carried, fresh) = (
                try old.report { try $0.set("by", by) }, try new.report { try $0.set("by", by) }
            )
            #expect(carried.totals == fresh.totals && carried.rows == fresh.rows, "by \(by)")
            let fromEvents = try old.report {
                try $0.set("by", by)
                $0.isFromEvents = true
            }
            #expect(carried.totals == fromEvents.totals && carried.rows == fromEvents.rows)
        }
        #expect(
            try Self.number(
                old.connection,
                """
                SELECT count(*) FROM pg_indexes WHERE schemaname = 'tapline' AND indexname IN (
                    'event_1_unit_key', 'event_2_unit_key',
                    'event_1_inbox_unit', 'event_2_inbox_unit')
                """) == 4)
        #expect(try old.merge() == 1)
        #expect(try Self.number(old.connection, "SELECT sum(units) FROM tapline.cell") > 0)
    }
}
