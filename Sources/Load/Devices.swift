import Postgres

/// The devices that registered, and the marks of test devices: `tapline device`.
package enum Devices {
    /// A device as it is now.
    package struct Row: Sendable {
        package let app: String
        package let device: String
        /// Name and value of each column that has one, in the order of `tapline.device`; times in UTC.
        package let values: [(name: String, value: String)]
    }

    /// What tokens of devices are signed with: 32 bytes.
    package static func tokenSecret(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [UInt8]? {
        let row = try connection.statement(
            "SELECT secret FROM tapline.token_secret", [], format: .binary)
        return row.rows == 1 ? row.array(0, 0) : nil
    }

    private static let columns = [
        "registered", "is_test", "platform", "app_version", "os_version", "sdk_version", "locale",
        "country", "time_zone", "provider", "push_group", "topics", "person_id",
    ]

    /// Devices, the last changed first.
    ///
    /// - Parameters:
    ///   - device: Only this one; nil for all.
    ///   - app: Only of this app.
    ///   - count: How many at most.
    package static func list(
        _ connection: borrowing PostgresConnection, device: String?, app: String?, count: Int
    ) throws(LoadError) -> [Row] {
        func time(_ column: String) -> String {
            "to_char(\(column) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        }
        let texts = columns.map { $0 == "topics" ? "to_json(topics)::text" : "\($0)::text" }
        let result = try connection.statement(
            """
            SELECT app, device_id, \(time("first_at")), \(time("changed_at")),
                \(texts.joined(separator: ", "))
            FROM tapline.device
            WHERE ($1::text IS NULL OR device_id = $1) AND ($2::text IS NULL OR app = $2)
            ORDER BY changed_at DESC, app, device_id LIMIT $3
            """,
            [
                device.map { .text($0) } ?? .null, app.map { .text($0) } ?? .null,
                .int64(Int64(count)),
            ])
        return (0..<result.rows).map { row in
            var values: [(name: String, value: String)] = []
            for (index, name) in (["first_at", "changed_at"] + columns).enumerated() {
                if let value = result.string(row, index + 2) { values.append((name, value)) }
            }
            return Row(
                app: result.string(row, 0) ?? "", device: result.string(row, 1) ?? "",
                values: values)
        }
    }

    /// Marks devices as test devices, or takes the mark away; reports follow at once.
    ///
    /// - Parameter app: Nil for every app that has a key or an alias.
    /// - Returns: In how many apps each is marked anew, or was; nil where there is no app at all.
    package static func mark(
        _ connection: borrowing PostgresConnection, _ device: String, app: String?, isTest: Bool
    ) throws(LoadError) -> Int {
        let apps = """
            SELECT $2::text WHERE $2 IS NOT NULL
            UNION SELECT app FROM tapline.api_key WHERE $2 IS NULL
            UNION SELECT app FROM tapline.app_alias WHERE $2 IS NULL
            """
        let result = try connection.statement(
            isTest
                ? """
                INSERT INTO tapline.test_device (app, device_id)
                SELECT a.app, $1 FROM (\(apps)) a (app) ON CONFLICT DO NOTHING
                """
                : "DELETE FROM tapline.test_device WHERE device_id = $1 AND app IN (\(apps))",
            [.text(device), app.map { .text($0) } ?? .null])
        return result.affectedRows
    }
}
