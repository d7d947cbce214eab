import Postgres

/// An event that PostgreSQL refused, as it is kept.
package struct DeadLetter: Sendable {
    package let id: Int64
    /// Identity of the event, as a UUID's text.
    package let key: String
    package let app: String
    /// Why it was refused, when it was last tried.
    package let sqlstate: String
    package let reason: String
    /// The event as a JSON object, whose members are those of the line that was sent.
    package let line: String
    /// When the event came and when it was refused first: microseconds since 1970 UTC.
    package let receivedAt: Int64
    package let refusedAt: Int64
}

/// The table of dead letters.
package enum DeadLetters {
    /// Which of them.
    package enum Selection: Sendable {
        case all
        case ids([Int64])
        /// Refused before a time, in microseconds since 1970 UTC.
        case refused(before: Int64)
    }

    /// How many are read or loaded at once.
    package static let pageCount = 1_000

    /// The first dead letters after one, in the order in which they were refused.
    ///
    /// - Parameters:
    ///   - id: The last one that is known; 0 to begin with.
    ///   - app: Only of this app.
    /// - Returns: At most ``pageCount``; none when there are no more.
    package static func page(
        _ connection: borrowing PostgresConnection, after id: Int64, _ selection: Selection,
        app: String? = nil
    ) throws(LoadError) -> [DeadLetter] {
        let rows = try connection.statement(
            """
            SELECT id, key::text, app, sqlstate, reason, body, received_at, stored_at
            FROM tapline.dead_letter
            WHERE id > $1 AND ($2::text IS NULL OR app = $2)
                AND ($3::bigint[] IS NULL OR id = ANY ($3))
                AND ($4::timestamptz IS NULL OR stored_at < $4)
            ORDER BY id LIMIT \(pageCount)
            """, [.int64(id), app.map { .text($0) } ?? .null] + selection.parameters,
            format: .binary)
        return (0..<rows.rows).map { row in
            DeadLetter(
                id: rows.int64(row, 0) ?? 0, key: rows.string(row, 1) ?? "",
                app: rows.string(row, 2) ?? "", sqlstate: rows.string(row, 3) ?? "",
                reason: rows.string(row, 4) ?? "", line: rows.string(row, 5) ?? "",
                receivedAt: rows.timestamp(row, 6) ?? 0, refusedAt: rows.timestamp(row, 7) ?? 0)
        }
    }

    /// How many there are.
    package static func count(
        _ connection: borrowing PostgresConnection, _ selection: Selection
    ) throws(LoadError) -> Int64 {
        let row = try connection.statement(
            """
            SELECT count(*) FROM tapline.dead_letter
            WHERE ($1::bigint[] IS NULL OR id = ANY ($1))
                AND ($2::timestamptz IS NULL OR stored_at < $2)
            """, selection.parameters)
        return row.int64(0, 0) ?? 0
    }

    /// Removes some for good; they stay counted.
    ///
    /// - Returns: How many.
    package static func purge(
        _ connection: borrowing PostgresConnection, _ selection: Selection
    ) throws(LoadError) -> Int64 {
        try Removal.delete(
            connection, .deadLetter,
            which: """
                ($1::bigint[] IS NULL OR k.id = ANY ($1))
                    AND ($2::timestamptz IS NULL OR k.stored_at < $2)
                """, selection.parameters)
    }
}

extension DeadLetters.Selection {
    /// Two parameters: ids and time, null where that does not matter.
    fileprivate var parameters: [PostgresValue] {
        switch self {
        case .all: [.null, .null]
        case .ids(let ids): [.int64Array(ids), .null]
        case .refused(let time): [.null, .timestamp(time)]
        }
    }
}
