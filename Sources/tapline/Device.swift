import Load
import Options
import Platform

/// `tapline device list|show|apply|mark-test|unmark-test`.
func runDevice(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    let app = parsed.value("app")
    let isJSON = parsed.value("format") == "json"
    for device in parsed.operands {
        guard !device.isEmpty, device.utf8.count <= 128, !device.utf8.contains(0) else {
            throw .badValue(
                option: "DEVICE", value: device, expected: "text of 1 to 128 bytes",
                command: "tapline device")
        }
    }
    switch parsed.path.last {
    case "list":
        let count = parsed.value("top").flatMap { Int($0) } ?? 100
        return withStore(store, command: "device") { connection throws(LoadError) in
            let rows = try Devices.list(connection, device: nil, app: app, count: count)
            return print(isJSON ? devicesJSON(rows) : devicesTable(rows))
        }
    case "apply": return applyDevices(isJSON: isJSON, store)
    case "show":
        return showDevice(parsed.operands[0], app: app, isJSON: isJSON, store)
    case let word:
        return markDevices(parsed.operands, app: app, isTest: word == "mark-test", store)
    }
}

private func showDevice(_ device: String, app: String?, isJSON: Bool, _ store: StoreOptions)
    -> Int32
{
    withStore(store, command: "device") { connection throws(LoadError) in
        let rows = try Devices.list(connection, device: device, app: app, count: 1000)
        guard !rows.isEmpty else {
            complain("tapline device: device \"\(device)\" never registered")
            return 1
        }
        if isJSON { return print(devicesJSON(rows)) }
        let texts = rows.map { row in
            textTable(
                [["app", row.app], ["device_id", row.device]]
                    + row.values.map { [$0.name, $0.value] })
        }
        return print(texts.joined(separator: "\n"))
    }
}

private func applyDevices(isJSON: Bool, _ store: StoreOptions) -> Int32 {
    withStore(store, command: "device") { connection throws(LoadError) in
        let applied = try Devices.apply(connection, progress: noteSegments("device"))
        if applied.isHeld {
            complain(
                "the space of old versions of events is not free yet: a transaction that began before "
                    + "has not ended")
        }
        return print(
            isJSON
                ? "{\"events\":\(applied.events)}\n"
                : "\(applied.events) events have got what was known of their devices\n")
    }
}

private func markDevices(
    _ devices: [String], app: String?, isTest: Bool, _ store: StoreOptions
) -> Int32 {
    withStore(store, command: "device") { connection throws(LoadError) in
        // A device may be marked before the daemon has ever run.
        _ = try Migrator.migrate(connection)
        for device in devices {
            _ = try Devices.mark(connection, device, app: app, isTest: isTest)
        }
        return 0
    }
}

private func devicesTable(_ rows: [Devices.Row]) -> String {
    let columns = [
        "registered", "is_test", "platform", "app_version", "os_version", "locale", "country",
        "provider", "push_group", "changed_at",
    ]
    func cells(_ row: Devices.Row) -> [String] {
        [row.app, row.device]
            + columns.map { name in row.values.first { $0.name == name }?.value ?? "-" }
    }
    return textTable([["APP", "DEVICE"] + columns.map { $0.uppercased() }] + rows.map(cells))
}

private func devicesJSON(_ rows: [Devices.Row]) -> String {
    let items = rows.map { row in
        let members = [("app", row.app), ("device_id", row.device)] + row.values
        let texts = members.map { name, value in
            // Booleans and the array of topics are JSON as they are.
            let isJSON = name == "registered" || name == "is_test" || name == "topics"
            return "\"\(name)\":\(isJSON ? value : JSONString.quoted(value))"
        }
        return "{" + texts.joined(separator: ",") + "}"
    }
    return "[" + items.joined(separator: ",\n ") + "]\n"
}
