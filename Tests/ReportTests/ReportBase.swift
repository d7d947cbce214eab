import Event
import Postgres
import PostgresTesting
import Report
import Schema
import Testing

/// An event to store, with what a report looks at.
struct Seed {
    var app = "shop"
    var type: EventType
    var message: String? = "m1"
    var device: String? = "d1"
    var campaign: String?
    /// Seconds after ``ReportBase/start``.
    var at: Double = 0
    /// Seconds from event_time to received_at.
    var delay: Double = 1
    /// Orders events of one time; made from the place in the base if nil.
    var key: String?
    var inbox: String?
    var platform: String?
    var version: String?
    var opensApp: Bool?
    var isTest: Bool?
    var isSilent: Bool?

    init(
        _ type: EventType, _ message: String? = "m1", on device: String? = "d1",
        campaign: String? = nil, at: Double = 0
    ) {
        self.type = type
        self.message = message
        self.device = device
        self.campaign = campaign
        self.at = at
    }

    /// The seed with something changed.
    func with(_ change: (inout Seed) -> Void) -> Seed {
        var seed = self
        change(&seed)
        return seed
    }
}

/// A database with the schema, to put events into and make reports of.
final class ReportBase {
    /// 2026-09-01T00:00:00Z.
    static let start: Int64 = 1_788_220_800

    let conninfo: String
    let connection: PostgresConnection
    private var batch = 0
    private var stored = 0
    private var segment = 1

    init() throws {
        conninfo = try TestDatabase.create()
        connection = try PostgresConnection(conninfo: conninfo)
        try connection.execute("CREATE SCHEMA tapline")
        for migration in Schema.migrations { try connection.execute(migration.sql) }
    }

    /// Stores events as one batch.
    func add(_ seeds: [Seed]) throws {
        batch += 1
        for seed in seeds {
            stored += 1
            let key = seed.key ?? Self.key(stored)
            try connection.query(
                """
                INSERT INTO tapline.event (key, unit, inbox_unit, event_time, received_at, type,
                    time_rule, app, message_uid, device_id, campaign_id, inbox_message_uid,
                    platform, app_version, opens_app, is_test, silent, batch, segment)
                SELECT $1::uuid, encode(m || d, 'hex')::uuid,
                    CASE WHEN $7::text IS NOT NULL
                        THEN encode(tapline.hash64($4, $7) || d, 'hex')::uuid END,
                    to_timestamp($2::float8), to_timestamp($2::float8 + $3::float8), $8::int2, 0,
                    $4, $5, $6, $9::text, $7, $10, $11, $12, $13, $14, $15, $16::int4
                FROM (SELECT coalesce(tapline.hash64($4, $5), '\\x0000000000000000') AS m,
                    coalesce(tapline.hash64($4, $6), '\\x0000000000000000') AS d) h
                """,
                [
                    .untyped(key), .double(Double(Self.start) + seed.at), .double(seed.delay),
                    .text(seed.app), optional(seed.message), optional(seed.device),
                    optional(seed.inbox), .int16(seed.type.rawValue), optional(seed.campaign),
                    optional(seed.platform), optional(seed.version), optional(seed.opensApp),
                    optional(seed.isTest), optional(seed.isSilent), .int64(Int64(batch)),
                    .int32(Int32(segment)),
                ])
        }
        try connection.execute(
            """
            INSERT INTO tapline.batch SELECT \(batch), greatest(clock_timestamp(),
                stored_at + interval '1 microsecond'), gen_random_uuid(), \(seeds.count),
                \(segment), 0
                FROM tapline.turn;
            UPDATE tapline.turn SET batch = \(batch), stored_at = (
                SELECT stored_at FROM tapline.batch WHERE batch = \(batch));
            """)
    }

    private func optional(_ text: String?) -> PostgresValue {
        text.map(PostgresValue.text) ?? .null
    }
    private func optional(_ flag: Bool?) -> PostgresValue { flag.map(PostgresValue.bool) ?? .null }

    /// A key that sorts by `number`.
    static func key(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    /// Lets the following batches go to another partition.
    func openSegment() throws {
        segment += 1
        try connection.execute(
            """
            CREATE TABLE tapline.event_\(segment) PARTITION OF tapline.event FOR VALUES IN (\(segment));
            INSERT INTO tapline.segment (segment, state) VALUES (\(segment), 'open');
            UPDATE tapline.segment SET state = 'sealed' WHERE segment < \(segment);
            CREATE UNIQUE INDEX ON tapline.event_\(segment - 1) (unit, key);
            """)
    }

    /// Folds about so many events.
    @discardableResult
    func fold(_ events: Int = 1_000_000) throws -> Int64 {
        try connection.query("SELECT tapline.fold_units($1)", [.int32(Int32(events))]).int64(0, 0)!
    }

    func report(_ change: (inout ReportOptions) throws -> Void = { _ in }) throws -> CampaignReport
    {
        var options = ReportOptions()
        try change(&options)
        return try CampaignReport.load(options, on: connection)
    }

    /// The report of some events: computed from them alone, and the same once each is folded.
    static func report(
        of seeds: [Seed], _ change: (inout ReportOptions) throws -> Void = { _ in }
    ) throws -> CampaignReport {
        let base = try ReportBase()
        for seed in seeds { try base.add([seed]) }
        let report = try base.report(change)
        while try base.fold(1) > 0 {}
        let folded = try base.report(change)
        #expect(folded.totals == report.totals && folded.rows == report.rows)
        return report
    }
}

extension CampaignReport {
    /// The row of a campaign.
    func row(_ campaign: String) -> ReportRow? { rows.first { $0.campaign == campaign } }
}

extension RateValue {
    /// Whether the parts are these.
    func isOf(_ numerator: Int64?, _ denominator: Int64?) -> Bool {
        self.numerator == numerator && self.denominator == denominator
    }
}
