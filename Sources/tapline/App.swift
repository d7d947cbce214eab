import Load
import Options
import Platform

/// `tapline app alias|aliases|unalias`.
func runApp(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    switch parsed.path.last {
    case "alias":
        for word in parsed.operands {
            guard !word.isEmpty, word.utf8.count <= AppAliases.bytesMax else {
                throw .badValue(
                    option: "APP VENDOR_ID", value: word,
                    expected: "text of 1 to \(AppAliases.bytesMax) bytes",
                    command: "tapline app alias")
            }
        }
        return makeAlias(
            app: parsed.operands[0], alias: parsed.operands[1],
            isOpen: parsed.flag("without-key"), store)
    case "aliases":
        return listAliases(
            app: parsed.value("app"), json: parsed.value("format") == "json", store)
    default: return removeAliases(parsed.operands, store)
    }
}

private func makeAlias(
    app: String, alias: String, isOpen: Bool, _ store: StoreOptions
) -> Int32 {
    withStore(store, command: "app") { connection throws(LoadError) in
        // An alias may be made before the daemon has ever run.
        _ = try Migrator.migrate(connection)
        let holder = try AppAliases.put(connection, alias: alias, app: app, isOpen: isOpen)
        guard holder == app else {
            complain(
                "tapline app: \"\(alias)\" is an alias of app \"\(holder)\" already",
                hint: "Remove it first: tapline app unalias \(alias)")
            return 1
        }
        return 0
    }
}

private func listAliases(app: String?, json: Bool, _ store: StoreOptions) -> Int32 {
    withStore(store, command: "app") { connection throws(LoadError) in
        let rows = try AppAliases.all(connection).filter { app == nil || $0.app == app }
        if json {
            let items = rows.map { row in
                "{\"alias\":\(JSONString.quoted(row.alias)),"
                    + "\"app\":\(JSONString.quoted(row.app)),"
                    + "\"without_key\":\(row.isOpen),\"created_at\":\"\(row.createdAt)\"}"
            }
            return print("[" + items.joined(separator: ",\n ") + "]\n")
        }
        return print(
            textTable(
                [["ALIAS", "APP", "WITHOUT KEY", "CREATED"]]
                    + rows.map { [$0.alias, $0.app, $0.isOpen ? "yes" : "no", $0.createdAt] }))
    }
}

private func removeAliases(_ aliases: [String], _ store: StoreOptions) -> Int32 {
    withStore(store, command: "app") { connection throws(LoadError) in
        var code: Int32 = 0
        for alias in aliases where try !AppAliases.remove(connection, alias: alias) {
            complain("tapline app: there is no alias \"\(alias)\"")
            code = 1
        }
        return code
    }
}
