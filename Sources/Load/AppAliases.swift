import Postgres

/// What vendors call the apps: each alias stands for one app of ours.
package enum AppAliases {
    /// Bytes of an alias, and of an app.
    package static let bytesMax = 128

    /// An alias as the database has it.
    package struct Row: Sendable {
        package let alias: String
        package let app: String
        /// Whether it lets calls in that have no key.
        package let isOpen: Bool
        /// Text, in UTC.
        package let createdAt: String
    }

    /// Adds an alias. One of the same app is opened or closed; one of another app stays as it is.
    ///
    /// - Parameter isOpen: Whether it lets calls in that have no key.
    /// - Returns: The app that the alias stands for now.
    package static func put(
        _ connection: borrowing PostgresConnection, alias: String, app: String, isOpen: Bool
    ) throws(LoadError) -> String {
        let result = try connection.statement(
            """
            INSERT INTO tapline.app_alias AS old (alias, app, is_open) VALUES ($1, $2, $3)
            ON CONFLICT (alias) DO UPDATE
                SET is_open = CASE WHEN old.app = excluded.app THEN excluded.is_open
                    ELSE old.is_open END
            RETURNING app
            """, [.text(alias), .text(app), .bool(isOpen)])
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
            SELECT alias, app, is_open,
                to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM tapline.app_alias ORDER BY app, alias
            """)
        var rows: [Row] = []
        for row in 0..<result.rows {
            guard let alias = result.string(row, 0), let app = result.string(row, 1) else {
                continue
            }
            rows.append(
                Row(
                    alias: alias, app: app, isOpen: result.bool(row, 2) ?? false,
                    createdAt: result.string(row, 3) ?? ""))
        }
        return rows
    }
}
