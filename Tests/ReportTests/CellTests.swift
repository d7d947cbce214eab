import Event
import Foundation
import Postgres
import PostgresTesting
import PythonTesting
import Report
import Schema
import Testing

/// Cells only save time: with them, however they came about, every report is that of the events.
@Suite struct CellTests {
    struct Dice: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            // splitmix64
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }

        mutating func chance(_ part: Double) -> Bool {
            Double.random(in: 0..<1, using: &self) < part
        }
    }

    /// What events say of the dimensions.
    enum Dimensions: CaseIterable {
        /// Each event what it likes.
        case any
        /// Those of a unit the same, as far as they say it.
        case agreed
        /// All of them, and often different.
        case whole
        /// Some events all of them, others nothing.
        case wholeOrNone

        func value(_ seed: Seed, _ place: Int, _ dice: inout Dice) -> String? {
            let any = ["a", "b"].randomElement(using: &dice)!
            // Of the type, so that an event says all or nothing.
            return switch self {
            case .any: dice.chance(0.5) ? any : nil
            case .agreed: dice.chance(0.6) ? "\(seed.device ?? "-")\(place % 2)" : nil
            case .whole: any
            case .wholeOrNone: seed.type.rawValue % 2 == 0 ? any : nil
            }
        }
    }

    /// Events over few messages, devices, inbox ids, campaigns and times, so that all of it meets.
    static func world(_ dice: inout Dice) -> [Seed] {
        let apps = Int.random(in: 1...2, using: &dice)
        let messages = [2, 4, 8, 20].randomElement(using: &dice)!
        let devices = [1, 2, 4].randomElement(using: &dice)!
        let count = [3, 10, 30, 60].randomElement(using: &dice)!
        let (noDevice, inbox, campaign) = (
            [0, 0, 0.1, 0.5].randomElement(using: &dice)!,
            [0, 0, 0.2, 0.6].randomElement(using: &dice)!,
            [0.2, 0.7, 1].randomElement(using: &dice)!
        )
        let isOneCampaignAMessage = dice.chance(0.6)
        let sends = dice.chance(0.8)
        let dimensions = (Dimensions.allCases + [.agreed, .agreed, .whole]).randomElement(
            using: &dice)!
        func name(_ letter: String, _ count: Int) -> String {
            "\(letter)\(Int.random(in: 0..<count, using: &dice))"
        }
        return (0..<count).map { index in
            let type = EventType(rawValue: Int16.random(in: 0...16, using: &dice))!
            let message = name("m", messages)
            let isTracking = !type.isStatus && dice.chance(0.5)
            var seed = Seed(
                type == .sent && !sends ? .received : type, isTracking ? nil : message,
                on: dice.chance(noDevice) ? nil : name("d", devices))
            seed.app = name("app", apps)
            if dice.chance(campaign) {
                seed.campaign = isOneCampaignAMessage ? "c" + message : name("c", 3)
            }
            if dice.chance(inbox) { seed.inbox = name("m", messages) }
            seed.at = Double(Int.random(in: 0..<6, using: &dice)) * 40_000
            seed.delay = dice.chance(0.5) ? 0 : 90_000
            seed.key = ReportBase.key(Int.random(in: 0..<1 << 40, using: &dice) << 10 | index)
            for (place, dimension) in Seed.dimensions.enumerated() {
                seed[keyPath: dimension] = dimensions.value(seed, place, &dice)
            }
            seed.opensApp = [true, false, nil].randomElement(using: &dice)!
            seed.isTest = dice.chance(0.03) ? true : nil
            seed.isSilent = dice.chance(0.05) ? true : nil
            return seed
        }
    }

    static let everyBy = [
        "campaign", "platform", "day", "campaign,platform", "platform,app_version", "campaign,hour",
        "os_version,locale", "country", "provider,day",
    ]

    /// Some options that cells can answer, and how to say them to the recomputation.
    struct Question: CustomStringConvertible {
        let description: String
        let options: ReportOptions
        let arguments: [String]

        init(_ dice: inout Dice) throws {
            var options = ReportOptions()
            var arguments: [String] = []
            func set(_ name: String, _ value: String) throws {
                try options.set(name, value)
                arguments += ["--" + name] + (value.isEmpty ? [] : [value])
            }
            try set("by", CellTests.everyBy.randomElement(using: &dice)!)
            if dice.chance(0.3) { try set("include-test", "") }
            // Midnights, hours and quarters of an hour; some seeds are at the first of them.
            let days = ["01T00:00:00Z", "01T11:00:00Z", "02T09:15:00Z", "03T07:30:00Z"]
            if dice.chance(0.3) { try set("from", "2026-09-" + days.randomElement(using: &dice)!) }
            if dice.chance(0.3) { try set("to", "2026-09-" + days.randomElement(using: &dice)!) }
            if dice.chance(0.2) { try set("app", "app0") }
            if dice.chance(0.3) {
                try set(
                    "tz", ["Asia/Kathmandu", "America/New_York"].randomElement(using: &dice)!)
            }
            if dice.chance(0.3) {
                try set("campaign", ["c0", "c1", "(unattributed)"].randomElement(using: &dice)!)
            }
            self.options = options
            self.arguments = arguments
            description = arguments.joined(separator: " ")
        }
    }

    static let everyView = [
        (ReportJourneys.never, false), (.always, false), (.never, true), (.always, true),
    ]

    /// Whether cells and events give one answer, in two of the four views.
    static func expectSame(
        _ base: ReportBase, _ question: Question, _ dice: inout Dice,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for (journeys, isByActivity) in everyView.shuffled(using: &dice).prefix(2) {
            func report(isFromEvents: Bool) throws -> CampaignReport {
                try base.report {
                    $0 = question.options
                    $0.journeys = journeys
                    $0.isByActivity = isByActivity
                    $0.isFromEvents = isFromEvents
                }
            }
            let (cells, events) = try (report(isFromEvents: false), report(isFromEvents: true))
            #expect(
                cells.totals == events.totals && cells.rows == events.rows,
                "\(question), journeys \(journeys), by activity \(isByActivity)",
                sourceLocation: sourceLocation)
        }
    }

    /// A launch that names a message and no device is of the message's only device, all of whose messages it may
    /// have come from.
    @Test func aLaunchThatNamesAMessageReachesTheOthersOfItsDevice() throws {
        let base = try ReportBase()
        try base.add([
            Seed(.received, campaign: "a"), Seed(.received, "m2", campaign: "b", at: 100),
            Seed(.launch, on: nil, at: 200),
        ])
        for fromEvents in [true, false] {
            let report = try base.report {
                $0.journeys = .always
                $0.isFromEvents = fromEvents
            }
            #expect(
                report.rows.map { $0[.influenced] } == [0, 1], "from events: \(fromEvents)")
        }
    }

    @Test func aDroppedPartitionLeavesReportsOfTheRest() throws {
        let base = try ReportBase()
        try base.add([Seed(.received, campaign: "a")])
        try base.openSegment()
        try base.add([Seed(.received, "m2", campaign: "b"), Seed(.clicked, "m2", at: 5)])
        try base.connection.execute("DROP TABLE tapline.event_1")
        let report = try base.report { $0.journeys = .always }
        #expect(report.totals[.delivered] == 2 && report.totals[.clicked] == 1)
    }

    /// The daemon keeps its connections: one that has failed is of use again, and its next report is of now.
    @Test func aConnectionIsOfUseAgainAfterAReportThatCouldNotBegin() throws {
        let base = try ReportBase()
        let plans = ReportPlans()
        for asksForStamp in [false, true] {
            // A server that does not know a setting, or refuses it, leaves a failed transaction.
            _ = try? base.connection.execute("BEGIN; SELECT 1 / 0")
            #expect(throws: ReportError.self) {
                if asksForStamp {
                    _ = try CampaignReport.stamp(
                        of: ReportOptions(), on: base.connection, plans: plans)
                } else {
                    _ = try base.report()
                }
            }
            let before = try base.report().rows.count
            try base.add([Seed(.received, "m\(before)", campaign: "c\(before)")])
            #expect(try base.report().rows.count == before + 1)
        }
    }

    /// Of what may count with another unit, too, which is of no use to tell whose a unit is.
    @Test func whatOlderVersionsNotedOfSpecialUnitsIsFoundAnew() throws {
        let version = try #require(Schema.migrations.firstIndex { $0.name == "special campaigns" })
        let base = try ReportBase(version: version)
        try base.connection.execute(
            """
            INSERT INTO tapline.special_unit (unit, segment, batch, campaigns)
            VALUES (gen_random_uuid(), 1, 1, '{c}')
            """)
        try base.connection.execute(Schema.migrations[version].sql)
        let noted = try base.connection.query("SELECT count(campaigns) FROM tapline.special_unit")
        #expect(noted.int64(0, 0) == 0)
    }

    @Test(arguments: Seeds.few(12)) func cellsChangeNoReport(seed: UInt64) throws {
        var dice = Dice(state: seed)
        let base = try ReportBase()
        var rest = Self.world(&dice).shuffled(using: &dice)[...]
        var question = try Question(&dice)
        while !rest.isEmpty {
            if dice.chance(0.1) {
                try base.connection.execute(
                    """
                    INSERT INTO tapline.test_device VALUES ('app0', 'd\(dice.next() % 2)')
                    ON CONFLICT DO NOTHING
                    """)
                try Self.expectSame(base, question, &dice)
            }
            let batch = rest.prefix(Int.random(in: 1..<12, using: &dice))
            rest = rest.dropFirst(batch.count)
            if dice.chance(0.3) { try base.openSegment() }
            try base.add(Array(batch))
            question = try Question(&dice)
            try Self.expectSame(base, question, &dice)
            if dice.chance(0.5) {
                try base.unmerge()
                try Self.expectSame(base, question, &dice)
                try base.merge()
                try Self.expectSame(base, question, &dice)
            }
            if dice.chance(0.2) {
                try base.connection.execute("DELETE FROM tapline.test_device")
                try Self.expectSame(base, question, &dice)
            }
        }
        try Self.expectRecomputed(base, question)
        try Self.expectPages(base)
    }

    /// Whether pages of rows by campaign and hour, of which only the keys are sorted, are parts of all rows.
    static func expectPages(_ base: ReportBase) throws {
        for isMerged in [false, true] {
            if isMerged { try base.merge() }
            for words in [
                [:], ["app": "app0"], ["campaign": "c1"], ["campaign": "(unattributed)"],
                ["include-test": ""], ["tz": "America/New_York"], ["from": "2026-09-01T11:00:00Z"],
                ["to": "2026-09-02", "include-test": ""],
            ] {
                func report(_ offset: Int, _ top: Int?) throws -> CampaignReport {
                    try base.report {
                        $0.by = [.campaign, .hour]
                        ($0.offset, $0.top) = (offset, top)
                        for (name, value) in words { try $0.set(name, value) }
                    }
                }
                let all = try report(0, nil)
                for (offset, top) in [
                    (0, 1), (0, 3), (1, 2), (all.rows.count, 1), (0, all.rows.count + 1),
                ] {
                    let page = try report(offset, top)
                    let isPart =
                        page.totals == all.totals
                        && page.rows == Array(all.rows.dropFirst(offset).prefix(top))
                    #expect(isPart, "\(words): \(top) of \(all.rows.count) from \(offset)")
                }
            }
        }
    }

    @Test(arguments: 0..<3) func anyOrderGivesTheSameReport(seed: UInt64) throws {
        var dice = Dice(state: seed)
        let seeds = Self.world(&dice)
        let report = try ReportBase.report(of: seeds)
        let base = try ReportBase()
        try base.add(batches: seeds.shuffled(using: &dice).map { [$0] })
        let other = try base.report()
        #expect(report.totals == other.totals && report.rows == other.rows)
    }

    /// Compares with `Tests/Python/recompute.py`, which knows only the documents.
    static func expectRecomputed(_ base: ReportBase, _ question: Question) throws {
        let rows = try base.connection.query(
            """
            SELECT json_build_object('app', app, 'key', key, 'type', t.name,
                'message_uid', message_uid, 'device_id', device_id, 'campaign_id', campaign_id,
                'inbox_message_uid', inbox_message_uid, 'platform', platform,
                'app_version', app_version, 'os_version', os_version, 'locale', locale,
                'country', country, 'provider', provider, 'opens_app', opens_app,
                'is_test', is_test, 'silent', silent, 'event_time', (extract(epoch FROM event_time) * 1000000)::bigint,
                'received_at', (extract(epoch FROM received_at) * 1000000)::bigint)::text
            FROM tapline.event e JOIN tapline.event_type t ON t.code = e.type
            """)
        let marked = try base.connection.query(
            "SELECT app || ':' || device_id FROM tapline.test_device")
        let report = try base.report {
            $0 = question.options
            $0.journeys = .never
        }
        let directory = try TestDirectory.make()
        defer { TestDirectory.remove(directory) }
        let lines = (0..<rows.rows).map { rows.string($0, 0)! + "\n" }.joined()
        try Data(lines.utf8).write(to: URL(filePath: directory + "/rows.ndjson"))
        try Data(report.render(.json)).write(to: URL(filePath: directory + "/report.json"))

        let (status, said) = try PythonScript.run(
            ["recompute.py", "--rows"] + question.arguments
                + (0..<marked.rows).flatMap { ["--test-device", marked.string($0, 0)!] }
                + ["--compare", directory + "/report.json", directory + "/rows.ndjson"],
            in: "Python")
        #expect(status == 0, "\(question): \(said)")
    }
}
