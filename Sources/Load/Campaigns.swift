import Platform
import Postgres

/// What is known of campaigns beside their events.
package enum Campaigns {
    /// What may be known; raw values are columns of the table.
    package enum Field: String, CaseIterable, Sendable {
        case name, provider, audience, variant
        case sentAt = "sent_at"
    }

    /// A campaign of an import.
    package struct Row: Equatable, Sendable {
        package let app: String
        package let id: String
        /// Nil removes what is known; what is not in here stays. `sent_at` is in microseconds since 1970.
        package let values: [Field: String?]

        /// Makes a row.
        package init(app: String, id: String, values: [Field: String?]) {
            self.app = app
            self.id = id
            self.values = values
        }

        fileprivate var json: String {
            var members = ["\"app\":" + JSONString.quoted(app), "\"id\":" + JSONString.quoted(id)]
            for field in Field.allCases {
                guard let value = values[field] else { continue }
                members.append("\"\(field.rawValue)\":" + (value.map(JSONString.quoted) ?? "null"))
            }
            return "{\(members.joined(separator: ","))}"
        }
    }

    /// A campaign as the database has it.
    package struct Known: Sendable {
        package let app: String
        package let id: String
        /// In the order of ``Field``; `sent_at` is text, in UTC.
        package let values: [String?]
    }

    /// What an import did.
    package struct Outcome: Equatable, Sendable {
        package var added = 0
        package var changed = 0

        package init() {}
    }

    private static let rowsOfStatement = 5_000

    /// Adds campaigns, and changes what is there; all of them or none.
    ///
    /// - Parameter rows: No two of one campaign.
    package static func put(
        _ connection: borrowing PostgresConnection, _ rows: [Row]
    ) throws(LoadError) -> Outcome {
        var outcome = Outcome()
        _ = try connection.statement("BEGIN")
        do throws(LoadError) {
            // So that whoever sees a change sees all smaller ones too.
            _ = try connection.statement(
                "LOCK TABLE tapline.campaign IN SHARE ROW EXCLUSIVE MODE")
            for start in stride(from: 0, to: rows.count, by: rowsOfStatement) {
                let part = rows[start..<min(start + rowsOfStatement, rows.count)]
                let list = "[" + part.map(\.json).joined(separator: ",") + "]"
                let result = try connection.statement(statement, [.text(list)])
                outcome.added += Int(result.int64(0, 0) ?? 0)
                outcome.changed += Int(result.int64(0, 1) ?? 0)
            }
            _ = try connection.statement("COMMIT")
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
        return outcome
    }

    private static let statement = """
        WITH new AS (
            SELECT r ->> 'app' AS app, r ->> 'id' AS campaign_id,
                CASE WHEN r ? 'name' THEN r ->> 'name' ELSE old.name END AS name,
                CASE WHEN r ? 'provider' THEN r ->> 'provider' ELSE old.provider END AS provider,
                CASE WHEN r ? 'sent_at'
                    THEN timestamptz 'epoch' + (r ->> 'sent_at')::bigint * interval '1 microsecond'
                    ELSE old.sent_at END AS sent_at,
                CASE WHEN r ? 'audience' THEN r ->> 'audience' ELSE old.audience END AS audience,
                CASE WHEN r ? 'variant' THEN r ->> 'variant' ELSE old.variant END AS variant
            FROM jsonb_array_elements($1::jsonb) r
                LEFT JOIN tapline.campaign old
                    ON old.app = r ->> 'app' AND old.campaign_id = r ->> 'id'
        ), put AS (
            INSERT INTO tapline.campaign AS c
                (app, campaign_id, name, provider, sent_at, audience, variant, change)
            SELECT app, campaign_id, name, provider, sent_at, audience, variant,
                nextval('tapline.campaign_change') FROM new
            ON CONFLICT (app, campaign_id) DO UPDATE
                SET name = excluded.name, provider = excluded.provider, sent_at = excluded.sent_at,
                    audience = excluded.audience, variant = excluded.variant,
                    change = excluded.change
                WHERE (c.name, c.provider, c.sent_at, c.audience, c.variant)
                    IS DISTINCT FROM (excluded.name, excluded.provider, excluded.sent_at,
                        excluded.audience, excluded.variant)
            RETURNING xmax = 0 AS is_new
        )
        SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new) FROM put
        """

    /// Every campaign that is known, by app.
    package static func all(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [Known] {
        let result = try connection.statement(
            """
            SELECT app, campaign_id, name, provider, audience, variant,
                to_char(sent_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM tapline.campaign ORDER BY app COLLATE "C", campaign_id COLLATE "C"
            """)
        return (0..<result.rows).map { row in
            Known(
                app: result.string(row, 0) ?? "", id: result.string(row, 1) ?? "",
                values: Field.allCases.indices.map { result.string(row, 2 + $0) })
        }
    }
}
