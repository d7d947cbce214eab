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
    var osVersion: String?
    var locale: String?
    var country: String?
    var provider: String?
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

    /// The values of the dimensions.
    static let dimensions: [WritableKeyPath<Seed, String?> & Sendable] = [
        \.platform, \.version, \.osVersion, \.locale, \.country, \.provider,
    ]

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

    /// - Parameter version: How many migrations the schema has.
    init(version: Int = Schema.migrations.count) throws {
        conninfo = try TestDatabase.create(like: "report \(version)") { conninfo in
            let connection = try PostgresConnection(conninfo: conninfo)
            try connection.execute("CREATE SCHEMA tapline")
            for migration in Schema.migrations.prefix(version) {
                try connection.execute(migration.sql)
            }
            if version == Schema.migrations.count { try connection.execute(Schema.cellFunctions) }
        }
        connection = try PostgresConnection(conninfo: conninfo)
    }

    /// Stores events as one batch, and counts them in cells.
    func add(_ seeds: [Seed]) throws { try add(batches: [seeds]) }

    /// Stores events in batches, and counts them in cells.
    func add(batches: [[Seed]]) throws {
        for seeds in batches { try store(seeds) }
        try rebuild()
    }

    /// Makes the cells of the events stored.
    func rebuild() throws { try connection.execute("SELECT tapline.rebuild_cells()") }

    /// Stores events as one batch, and nothing more: every event of a test comes by here.
    func store(_ seeds: [Seed]) throws {
        batch += 1
        for seed in seeds {
            stored += 1
            let key = seed.key ?? Self.key(stored)
            try connection.query(
                """
                INSERT INTO tapline.event (key, unit, inbox_unit, event_time, received_at, type,
                    time_rule, app, message_uid, device_id, campaign_id, inbox_message_uid,
                    platform, app_version, opens_app, is_test, silent, batch, segment,
                    os_version, locale, country, provider, occurred_at)
                SELECT $1::uuid, encode(m || d, 'hex')::uuid,
                    CASE WHEN $7::text IS NOT NULL
                        THEN encode(tapline.hash64($4, $7) || d, 'hex')::uuid END,
                    to_timestamp($2::float8), to_timestamp($2::float8 + $3::float8), $8::int2, 0,
                    $4, $5, $6, $9::text, $7, $10, $11, $12, $13, $14, $15, $16::int4,
                    $17, $18, $19, $20, to_timestamp($2::float8)
                FROM (SELECT coalesce(tapline.hash64($4, $5), '\\x0000000000000000') AS m,
                    coalesce(tapline.hash64($4, $6), '\\x0000000000000000') AS d) h
                """,
                [
                    .untyped(key), .double(Double(Self.start) + seed.at), .double(seed.delay),
                    .text(seed.app), optional(seed.message), optional(seed.device),
                    optional(seed.inbox), .int16(seed.type.rawValue), optional(seed.campaign),
                    optional(seed.platform), optional(seed.version), optional(seed.opensApp),
                    optional(seed.isTest), optional(seed.isSilent), .int64(Int64(batch)),
                    .int32(Int32(segment)), optional(seed.osVersion), optional(seed.locale),
                    optional(seed.country), optional(seed.provider),
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

    /// Lets the following batches go to another partition; upkeep of the one before is left.
    func openSegment() throws {
        segment += 1
        try connection.execute(
            """
            CREATE TABLE tapline.event_\(segment) PARTITION OF tapline.event
                FOR VALUES IN (\(segment));
            CREATE UNIQUE INDEX event_\(segment - 1)_unit_key
                ON tapline.event_\(segment - 1) (unit, key);
            INSERT INTO tapline.segment (segment, state) VALUES (\(segment), 'open');
            UPDATE tapline.segment SET state = 'closing' WHERE segment = \(segment - 1);
            UPDATE tapline.turn SET segment = \(segment);
            """)
    }

    /// Makes cells look as if the load transactions of all segments had only now written them: as
    /// changes, among them some that come to nothing.
    func unmerge() throws {
        let columns =
            "app, campaign_id, platform, app_version, os_version, locale, country, provider"
        try connection.execute(
            """
            WITH moved AS (
                DELETE FROM tapline.cell RETURNING *
            ), placed AS (
                SELECT quarter, states, units, clicks, late, \(columns), s.segment FROM moved m,
                    LATERAL (SELECT segment FROM tapline.segment WHERE m.quarter IS NOT NULL
                        ORDER BY random() LIMIT 1) s
            )
            INSERT INTO tapline.cell_change (batch, segment, quarter, states, units, clicks, late,
                \(columns))
            SELECT 0, c.* FROM (
            SELECT segment, quarter, states, units, clicks, late, \(columns) FROM placed
            UNION ALL
            SELECT segment, quarter, states | 1 << 2, sign, sign, sign, \(columns)
            FROM placed, (VALUES (1), (-1)) v(sign)
            UNION ALL
            SELECT segment, quarter + sign, states, sign, 2 * sign, 0, \(columns)
            FROM placed, (VALUES (1), (-1)) v(sign)
            UNION ALL
            SELECT segment, quarter + sign, states, -sign, -2 * sign, 0, \(columns)
            FROM placed, (VALUES (1), (-1)) v(sign)) c;
            DELETE FROM tapline.cell_quarter;
            DELETE FROM tapline.cell_hour;
            DELETE FROM tapline.cell_dimension;
            DELETE FROM tapline.cell_time;
            """)
    }

    /// Moves what closed segments have changed; how many segments it was.
    @discardableResult
    func merge() throws -> Int64 {
        try connection.query("SELECT tapline.merge_cells()").int64(0, 0)!
    }

    /// A report; without what devices did, as that is never made of cells.
    func report(_ change: (inout ReportOptions) throws -> Void = { _ in }) throws -> CampaignReport
    {
        var options = ReportOptions()
        options.journeys = .never
        try change(&options)
        return try CampaignReport.load(options, on: connection)
    }

    /// The report of some events: computed from them alone, and the same from cells.
    static func report(
        of seeds: [Seed], _ change: (inout ReportOptions) throws -> Void = { _ in }
    ) throws -> CampaignReport {
        let base = try ReportBase()
        try base.add(batches: seeds.map { [$0] })
        let report = try base.report {
            try change(&$0)
            $0.isFromEvents = true
        }
        let fromCells = try base.report(change)
        #expect(fromCells.totals == report.totals && fromCells.rows == report.rows)
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
