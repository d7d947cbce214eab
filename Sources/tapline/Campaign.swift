import Client
import Import
import Load
import Options
import Platform

/// `tapline campaign import|list`.
func runCampaign(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    if parsed.path.last == "list" {
        return listCampaigns(
            app: parsed.value("app"), json: parsed.value("format") == "json", store)
    }
    var files: [CampaignFile] = []
    do throws(ClientError) {
        for path in parsed.operands {
            files.append(try CampaignFile(.file(path), app: parsed.value("app")))
        }
    } catch {
        complain("tapline campaign: \(error.message)")
        return 1
    }
    return importCampaigns(files, store)
}

private func importCampaigns(_ files: [CampaignFile], _ store: StoreOptions) -> Int32 {
    var code: Int32 = 0
    for file in files {
        for problem in file.problems {
            complain(problem.description)
            code = 1
        }
        for column in file.unused { complain("column \(quoted(column)) is not used") }
    }
    return withStore(store, command: "campaign") { connection throws(LoadError) in
        // Campaigns may be named before the daemon has ever run.
        _ = try Migrator.migrate(connection)
        var sum = Campaigns.Outcome()
        var count = 0
        for file in files {
            let rows = file.lines.map { line in
                var values: [Campaigns.Field: String?] = [:]
                for (name, value) in line.values {
                    if let field = Campaigns.Field(rawValue: name) { values[field] = value }
                }
                return Campaigns.Row(app: line.app, id: line.id, values: values)
            }
            let outcome = try Campaigns.put(connection, rows)
            count += rows.count
            sum.added += outcome.added
            sum.changed += outcome.changed
        }
        let bad = files.reduce(0) { $0 + $1.problems.count }
        complain(
            "\(count) campaigns: \(sum.added) added, \(sum.changed) changed, "
                + "\(count - sum.added - sum.changed) as they were"
                + (bad > 0 ? "; \(bad) lines are wrong and left out" : ""))
        return code
    }
}

private func listCampaigns(app: String?, json: Bool, _ store: StoreOptions) -> Int32 {
    withStore(store, command: "campaign") { connection throws(LoadError) in
        let rows = try Campaigns.all(connection).filter { app == nil || $0.app == app }
        let names = ["app", "id"] + Campaigns.Field.allCases.map(\.rawValue)
        if json {
            let items = rows.map { row in
                let values = [row.app, row.id] + row.values
                let members = zip(names, values).map { name, value in
                    "\"\(name)\":\(value.map(JSONString.quoted) ?? "null")"
                }
                return "{\(members.joined(separator: ","))}"
            }
            return print("[" + items.joined(separator: ",\n ") + "]\n")
        }
        return print(
            textTable(
                [names.map { $0.uppercased() }]
                    + rows.map { [$0.app, $0.id] + $0.values.map { $0 ?? "-" } }))
    }
}
