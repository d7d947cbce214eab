import Event
import Foundation
import Postgres
import PostgresTesting
import Report
import Testing

/// The fold only saves time: with it, in whatever steps, every report is that of the events alone.
@Suite struct FoldTests {
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

    /// Events over few messages, devices, inbox ids, campaigns and times, so that all of it meets.
    static func world(_ dice: inout Dice) -> [Seed] {
        let apps = Int.random(in: 1...2, using: &dice)
        let messages = [2, 4, 8].randomElement(using: &dice)!
        let devices = [1, 2, 4].randomElement(using: &dice)!
        let count = [3, 10, 30, 60].randomElement(using: &dice)!
        let (noDevice, inbox, campaign) = (
            [0, 0.1, 0.5].randomElement(using: &dice)!, [0, 0.2, 0.6].randomElement(using: &dice)!,
            [0.2, 0.7, 1].randomElement(using: &dice)!
        )
        let isOneCampaignAMessage = dice.chance(0.4)
        let sends = dice.chance(0.8)
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
            seed.platform = ["ios", "android", nil].randomElement(using: &dice)!
            seed.version = ["1", "2", nil, nil].randomElement(using: &dice)!
            seed.opensApp = [true, false, nil].randomElement(using: &dice)!
            seed.isTest = dice.chance(0.03) ? true : nil
            seed.isSilent = dice.chance(0.05) ? true : nil
            return seed
        }
    }

    static let everyBy = [
        "campaign", "platform", "day", "campaign,platform", "platform,app_version", "campaign,hour",
    ]

    @Test(arguments: 0..<12) func foldChangesNoReport(seed: UInt64) throws {
        var dice = Dice(state: seed)
        let base = try ReportBase()
        if dice.chance(0.3) {
            try base.connection.execute("INSERT INTO tapline.test_device VALUES ('app0', 'd0')")
        }
        var rest = Self.world(&dice).shuffled(using: &dice)[...]
        while !rest.isEmpty {
            let batch = rest.prefix(Int.random(in: 1..<12, using: &dice))
            rest = rest.dropFirst(batch.count)
            if dice.chance(0.2) { try base.openSegment() }
            try base.add(Array(batch))
            for _ in 0..<Int.random(in: 0..<3, using: &dice) {
                try base.fold([1, 5, 1000].randomElement(using: &dice)!)
            }
            let by = Self.everyBy.randomElement(using: &dice)!
            let includesTest = dice.chance(0.3)
            func report(_ affectedUnitsMax: Int) throws -> CampaignReport {
                try base.report {
                    try $0.set("by", by)
                    $0.includesTest = includesTest
                    $0.affectedUnitsMax = affectedUnitsMax
                }
            }
            let (folded, exact) = (try report(100_000), try report(0))
            #expect(folded.totals == exact.totals && folded.rows == exact.rows, "by \(by)")
        }
        try Self.expectRecomputed(base, by: Self.everyBy.randomElement(using: &dice)!)
    }

    @Test(arguments: 0..<3) func anyOrderGivesTheSameReport(seed: UInt64) throws {
        var dice = Dice(state: seed)
        let seeds = Self.world(&dice)
        let report = try ReportBase.report(of: seeds)
        let base = try ReportBase()
        for seed in seeds.shuffled(using: &dice) { try base.add([seed]) }
        try base.fold(7)
        let other = try base.report()
        #expect(report.totals == other.totals && report.rows == other.rows)
    }

    @Test func foldTakesBatchesInOrderAndOnce() throws {
        let base = try ReportBase()
        for count in [3, 1, 2] {
            try base.add((0..<count).map { Seed(.received, "m\(count)-\($0)") })
        }
        let taken = try [base.fold(2), base.fold(2), base.fold(2), base.fold(2)]
        #expect(taken == [3, 3, 0, 0])
        let states = try base.connection.query(
            "SELECT count(*), bool_or(special) FROM tapline.unit")
        #expect(states.int64(0, 0) == 6 && states.bool(0, 1) == false)
    }

    @Test func onlyOneSessionFolds() throws {
        let base = try ReportBase()
        try base.add([Seed(.received)])
        let other = try PostgresConnection(conninfo: base.conninfo)
        try other.execute("BEGIN")
        #expect(try other.query("SELECT tapline.fold_units(9)").int64(0, 0) == 1)
        #expect(try base.fold() == 0)
        try other.execute("ROLLBACK")
        #expect(try base.fold() == 1)
    }

    /// Compares with `Tests/Python/recompute.py`, which knows only the documents.
    static func expectRecomputed(_ base: ReportBase, by: String) throws {
        let rows = try base.connection.query(
            """
            SELECT json_build_object('app', app, 'key', key, 'type', t.name,
                'message_uid', message_uid, 'device_id', device_id, 'campaign_id', campaign_id,
                'inbox_message_uid', inbox_message_uid, 'platform', platform,
                'app_version', app_version, 'opens_app', opens_app, 'is_test', is_test,
                'silent', silent, 'event_time', (extract(epoch FROM event_time) * 1000000)::bigint,
                'received_at', (extract(epoch FROM received_at) * 1000000)::bigint)::text
            FROM tapline.event e JOIN tapline.event_type t ON t.code = e.type
            """)
        let marked = try base.connection.query(
            "SELECT app || ':' || device_id FROM tapline.test_device")
        let report = try base.report { try $0.set("by", by) }
        let directory = try TestDirectory.make()
        defer { TestDirectory.remove(directory) }
        let lines = (0..<rows.rows).map { rows.string($0, 0)! + "\n" }.joined()
        try Data(lines.utf8).write(to: URL(filePath: directory + "/rows.ndjson"))
        try Data(report.render(.json)).write(to: URL(filePath: directory + "/report.json"))

        let (status, said) = try Python.run(
            "recompute.py",
            ["--rows", "--by", by]
                + (0..<marked.rows).flatMap { ["--test-device", marked.string($0, 0)!] }
                + ["--compare", directory + "/report.json", directory + "/rows.ndjson"])
        #expect(status == 0, "by \(by): \(said)")
    }
}
