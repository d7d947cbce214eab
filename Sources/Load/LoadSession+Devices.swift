import Event
import Postgres

/// What registrations, updates and removals of devices say, beside their rows.
extension LoadSession {
    /// Writes what the stored rows of a batch say of devices. Rows are only ever added, so the order in
    /// which events are loaded changes nothing.
    func writeDevices(
        _ batch: borrowing LoadBatch, _ verdicts: [StoredVerdict], _ turn: Turn
    ) throws(LoadError) {
        var said = DeviceChanges()
        for (row, verdict) in verdicts.enumerated()
        where verdict == .stored && batch.events[row].type == .custom {
            said.add(batch.row(row))
        }
        guard !said.keys.isEmpty else { return }
        // Lines that came before an erasure and are loaded after it say nothing any more.
        let isKept =
            turn.erasedUntil == nil
            ? "true"
            : "NOT " + Self.isErased(app: "u.app", "u.device_id", "u.person_id", "u.received_at")
        let texts = DeviceChanges.texts.map { $0.name }.joined(separator: ", ")
        func text(_ name: String) -> String {
            "CASE WHEN json_typeof(p -> '\(name)') = 'string' THEN left(nullif(p ->> '\(name)', ''), 128) END"
        }
        _ = try connection.statement(
            """
            WITH said AS (
                SELECT u.*, u.properties::json AS p
                FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[],
                    \((6..<6 + DeviceChanges.texts.count).map { "$\($0)::text[]" }
                        .joined(separator: ", ")))
                    AS u (key, at, received, registered, is_test, \(texts))
            )
            INSERT INTO tapline.device_state (app, device_id, at, key, registered, platform,
                    app_version, os_version, sdk_version, locale, country, provider, person_id,
                    time_zone, push_group, topics, is_test)
                SELECT u.app, u.device_id, \(Self.time("u.at")), u.key, u.registered::boolean, u.platform,
                    u.app_version, u.os_version, u.sdk_version, u.locale, u.country, u.provider,
                    u.person_id, \(text("time_zone")), \(text("push_group")),
                    CASE WHEN json_typeof(p -> 'topics') = 'array' THEN
                        ARRAY(SELECT DISTINCT json_array_elements_text(p -> 'topics') ORDER BY 1) END,
                    u.is_test::boolean
                FROM (SELECT said.*, \(Self.time("received")) AS received_at FROM said) u
                WHERE \(isKept)
            ON CONFLICT DO NOTHING
            """, said.parameters)
    }

    /// Marks the devices that stored rows of a batch say are for tests: after it is known which rows are
    /// stored, as a mark stays.
    func markDevices(
        _ batch: borrowing LoadBatch, _ verdicts: [StoredVerdict]
    ) throws(LoadError) {
        var keys: [UInt8] = []
        var (apps, devices): ([String?], [String?]) = ([], [])
        for (row, verdict) in verdicts.enumerated()
        where verdict == .stored && batch.events[row].type == .custom {
            let fields = batch.row(row)
            guard fields.flag(.isTest) == true else { continue }
            keys += batch.events[row].key.bytes
            apps.append(fields.text(.app))
            devices.append(fields.text(.deviceID))
        }
        guard !keys.isEmpty else { return }
        // Only what was written as a state: no other event marks a device, and none of an erased one.
        _ = try connection.statement(
            """
            INSERT INTO tapline.test_device (app, device_id)
            SELECT DISTINCT s.app, s.device_id
            FROM unnest($1::uuid[], $2::text[], $3::text[]) AS u (key, app, device_id)
                JOIN tapline.device_state s USING (app, device_id, key)
            WHERE s.is_test ON CONFLICT DO NOTHING
            """, [.uuidArray(keys), .textArray(apps), .textArray(devices)])
    }

    /// Takes back what rows said of devices that PostgreSQL refused.
    func forgetDevices(
        _ batch: borrowing LoadBatch, _ verdicts: [StoredVerdict]
    ) throws(LoadError) {
        var keys: [UInt8] = []
        var (apps, devices): ([String?], [String?]) = ([], [])
        for (row, verdict) in verdicts.enumerated()
        where verdict == .deadLettered && batch.events[row].type == .custom {
            keys += batch.events[row].key.bytes
            apps.append(batch.row(row).text(.app))
            devices.append(batch.row(row).text(.deviceID))
        }
        guard !keys.isEmpty else { return }
        _ = try connection.statement(
            """
            DELETE FROM tapline.device_state s
            USING unnest($1::uuid[], $2::text[], $3::text[]) AS u (key, app, device_id)
            WHERE s.app = u.app AND s.device_id = u.device_id AND s.key = u.key
            """, [.uuidArray(keys), .textArray(apps), .textArray(devices)])
    }

    /// Gives the rows that are to be stored and lack a dimension what was known of their device at the time
    /// of the event: what is loaded, and what is loaded with them.
    func fillFromDevices(
        _ batch: inout LoadBatch, _ verdicts: [StoredVerdict]
    ) throws(LoadError) {
        batch.restore()
        if !picture.hasDevices {
            let any = try connection.statement("SELECT EXISTS (SELECT FROM tapline.device_state)")
            picture.hasDevices = any.bool(0, 0) == true
        }
        guard picture.hasDevices else { return }
        var rows: [Int32] = []
        var times: [Int64] = []
        var (apps, devices): ([String?], [String?]) = ([], [])
        for (row, verdict) in verdicts.enumerated() where verdict == .stored {
            let event = batch.events[row]
            guard event.unit.message != 0, event.unit.device != 0, event.pattern != 63 else {
                continue
            }
            let fields = batch.row(row)
            rows.append(Int32(row))
            times.append(event.time)
            apps.append(fields.text(.app))
            devices.append(fields.text(.deviceID))
        }
        guard !rows.isEmpty else { return }
        let columns = LoadBatch.filledColumns.map { "d.\($0.name)" }.joined(separator: ", ")
        let found = try connection.statement(
            """
            SELECT r.row, \(columns)
            FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) AS r (row, app, device, at),
                LATERAL tapline.device_at(r.app, r.device, \(Self.time("r.at"))) d
            WHERE num_nonnulls(\(columns)) > 0
            """,
            [.int32Array(rows), .textArray(apps), .textArray(devices), .int64Array(times)])
        for row in 0..<found.rows {
            let values = LoadBatch.filledColumns.indices.map { column in
                found.string(row, column + 1).map { Array($0.utf8) }
            }
            batch.fill(Int(found.int64(row, 0) ?? 0), values)
        }
    }

    /// SQL for a timestamptz of microseconds since 1970 UTC.
    private static func time(_ microseconds: String) -> String {
        "timestamptz '1970-01-01 00:00:00+00' + \(microseconds) * interval '1 microsecond'"
    }
}

/// What rows say of devices, as arrays for a statement.
private struct DeviceChanges {
    /// The columns that are taken as they are, and the properties.
    static let texts: [EventColumn] = [
        .app, .deviceID, .platform, .appVersion, .osVersion, .sdkVersion, .locale, .country,
        .provider, .personID, .properties,
    ]

    private(set) var keys: [UInt8] = []
    private var times: [Int64] = []
    private var received: [Int64] = []
    private var registered: [String?] = []
    private var isTest: [String?] = []
    private var values: [[String?]] = Array(repeating: [], count: texts.count)

    /// Adds a row if it is of a ``DeviceChange``.
    mutating func add(_ row: EventRow) {
        guard let word = row.field(.typeRaw),
            let change = DeviceChange(word: row.payload.rawSpan.extracting(word)),
            row.field(.deviceID) != nil
        else { return }
        keys += row.key.bytes
        times.append(row.eventTime)
        received.append(row.receivedAt)
        registered.append(change.isRegistered.map { "\($0)" })
        isTest.append(row.flag(.isTest).map { "\($0)" })
        for (index, column) in Self.texts.enumerated() { values[index].append(row.text(column)) }
    }

    var parameters: [PostgresValue] {
        [
            .uuidArray(keys), .int64Array(times), .int64Array(received), .textArray(registered),
            .textArray(isTest),
        ] + values.map { .textArray($0) }
    }
}
