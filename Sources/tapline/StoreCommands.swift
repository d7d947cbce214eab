import Daemon
import Event
import Load
import Options
import Platform
import Postgres
import Spool

/// Runs `body` with a connection to the store, and says what is wrong in one line.
///
/// - Returns: The exit code of `body`, or 1.
func withStore(
    _ store: StoreOptions, command: String,
    _ body: (borrowing PostgresConnection) throws(LoadError) -> Int32
) -> Int32 {
    let database = store.makeDatabase()
    defer { database.stop() }
    do throws(LoadError) {
        return try body(try database.connect(applicationName: command))
    } catch {
        complain("tapline \(command): \(error)", hint: error.hint)
        return 1
    }
}

/// Creates or upgrades the schema.
func migrate(_ store: StoreOptions) -> Int32 {
    withStore(store, command: "migrate") { connection throws(LoadError) in
        let outcome = try Migrator.migrate(connection)
        for name in outcome.applied { _ = print("applied migration \(name)\n") }
        return print("schema is at version \(outcome.version)\n")
    }
}

/// Creates, lists or revokes keys.
func key(_ request: KeyRequest, _ store: StoreOptions) -> Int32 {
    withStore(store, command: "key") { connection throws(LoadError) in
        // A key may be made before the daemon has ever run.
        _ = try Migrator.migrate(connection)
        switch request {
        case .create(let app, let role):
            let key = "tl_" + Hex.encode(Random.bytes(32))
            _ = try APIKeys.insert(
                connection, hash: sha256(Array(key.utf8)), app: app,
                role: APIKeys.Role(rawValue: role) ?? .ingest)
            return print(key + "\n")
        case .list(let app, let json):
            let keys = try APIKeys.all(connection).filter { app == nil || $0.app == app }
            return print(json ? keyListJSON(keys) : keyListTable(keys))
        case .revoke(let words):
            var code: Int32 = 0
            for word in words where try !APIKeys.revoke(connection, named: word) {
                complain("tapline key: there is no key \"\(word)\"")
                code = 1
            }
            return code
        }
    }
}

private func keyListTable(_ keys: [APIKeys.Row]) -> String {
    var rows = [["ID", "APP", "ROLE", "CREATED", "REVOKED"]]
    rows += keys.map { ["\($0.id)", $0.app, $0.role.rawValue, $0.createdAt, $0.revokedAt ?? "-"] }
    return textTable(rows)
}

/// Rows under each other, in columns.
func textTable(_ rows: [[String]]) -> String {
    let widths = (0..<(rows.first?.count ?? 0)).map { column in
        rows.map { $0[column].count }.max() ?? 0
    }
    return rows.map { row in
        let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
        return cells.joined(separator: "  ").trimmedEnd + "\n"
    }.joined()
}

private func keyListJSON(_ keys: [APIKeys.Row]) -> String {
    let rows = keys.map { key in
        "{\"id\":\(key.id),\"app\":\(JSONString.quoted(key.app)),\"role\":\"\(key.role.rawValue)\","
            + "\"created_at\":\"\(key.createdAt)\","
            + "\"revoked_at\":\(key.revokedAt.map { "\"\($0)\"" } ?? "null")}"
    }
    return "[" + rows.joined(separator: ",\n ") + "]\n"
}

extension String {
    fileprivate var trimmedEnd: String {
        var text = self
        while text.last == " " { text.removeLast() }
        return text
    }
}
