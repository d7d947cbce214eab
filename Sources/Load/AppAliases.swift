import Postgres

/// What vendors call the apps: each alias stands for one app of ours.
package enum AppAliases {
    /// Bytes of an alias, and of an app.
    package static let bytesMax = 128

    /// An alias as the database has it.
    package struct Row: Sendable {
        package let alias: String
        package let app: String
        /// Text, in UTC.
        package let createdAt: String
    }

    /// Adds an alias, unless it is there; then it stays as it is.
    ///
    /// - Returns: The app that the alias stands for now.
    package static func insert(
        _ connection: borrowing PostgresConnection, alias: String, app: String
    ) throws(LoadError) -> String {
        let result = try connection.statement(
            """
            WITH added AS (
                INSERT INTO tapline.app_alias (alias, app) VALUES ($1, $2)
                ON CONFLICT (alias) DO NOTHING RETURNING app
            )
            SELECT app FROM added UNION ALL SELECT app FROM tapline.app_alias WHERE alias = $1
            """, [.text(alias), .text(app)])
        return result.string(0, 0) ?? app
    }

    /// Removes an alias.
    ///
    /// - Returns: Whether it was there.
    package static func remove(
        _ connection: borrowing PostgresConnection, alias: String
    ) throws(LoadError) -> Bool {
        let result = try connection.statement(
            "DELETE FROM tapline.app_alias WHERE alias = $1", [.text(alias)])
        return result.affectedRows == 1
    }

    /// Every alias, by app.
    package static func all(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [Row] {
        let result = try connection.statement(
            """
            SELECT alias, app, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM tapline.app_alias ORDER BY app, alias
            """)
        var rows: [Row] = []
        for row in 0..<result.rows {
            guard let alias = result.string(row, 0), let app = result.string(row, 1) else {
                continue
            }
            rows.append(Row(alias: alias, app: app, createdAt: result.string(row, 2) ?? ""))
        }
        return rows
    }
}
