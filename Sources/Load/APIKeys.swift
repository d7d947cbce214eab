import Event
import Platform
import Postgres

/// The keys in the database: hashed, one app and one role each.
package enum APIKeys {
    /// What a key is for.
    package enum Role: String, Sendable, CaseIterable {
        case ingest
        case read
        case admin
    }

    /// A key as the database has it.
    package struct Row: Sendable {
        package let id: Int64
        /// SHA-256 of the key, 32 bytes.
        package let hash: [UInt8]
        package let app: String
        package let role: Role
        /// Text, in UTC.
        package let createdAt: String
        package let revokedAt: String?
    }

    /// Adds a key by its hash.
    package static func insert(
        _ connection: borrowing PostgresConnection, hash: [UInt8], app: String, role: Role
    ) throws(LoadError) -> Int64 {
        let result = try connection.statement(
            "INSERT INTO tapline.api_key (hash, app, role) VALUES ($1, $2, $3) RETURNING id",
            [.bytes(hash), .text(app), .text(role.rawValue)])
        return result.int64(0, 0) ?? 0
    }

    /// Revokes a key.
    ///
    /// - Parameter name: Its id, or the key itself.
    /// - Returns: Whether there is such a key; a second time changes nothing.
    package static func revoke(
        _ connection: borrowing PostgresConnection, named name: String
    ) throws(LoadError) -> Bool {
        let result = try connection.statement(
            """
            UPDATE tapline.api_key SET revoked_at = coalesce(revoked_at, clock_timestamp())
            WHERE id = $1 OR hash = $2
            """, [Int64(name).map { .int64($0) } ?? .null, .bytes(sha256(Array(name.utf8)))])
        return result.affectedRows == 1
    }

    /// Every key, oldest first.
    package static func all(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> [Row] {
        let result = try connection.statement(
            """
            SELECT id, encode(hash, 'hex'), app, role,
                to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                to_char(revoked_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM tapline.api_key ORDER BY id
            """)
        var rows: [Row] = []
        for row in 0..<result.rows {
            guard let id = result.int64(row, 0), let app = result.string(row, 2),
                let hash = result.string(row, 1).flatMap({ Hex.decode($0) }),
                let role = result.string(row, 3).flatMap({ Role(rawValue: $0) })
            else { continue }
            rows.append(
                Row(
                    id: id, hash: hash, app: app, role: role,
                    createdAt: result.string(row, 4) ?? "", revokedAt: result.string(row, 5)))
        }
        return rows
    }
}
