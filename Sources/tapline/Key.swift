import Options

/// What is asked about keys.
enum KeyRequest: Equatable {
    case create(app: String, role: String)
    case list(app: String?, json: Bool)
    case revoke([String])
}

/// `tapline key create|list|revoke`.
func runKey(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    let app = parsed.value("app")
    switch parsed.path.last {
    case "create":
        guard let app, !app.isEmpty, app.utf8.count <= 128 else {
            throw .badValue(
                option: "--app", value: app ?? "", expected: "text of 1 to 128 bytes",
                command: "tapline key create")
        }
        return key(.create(app: app, role: parsed.value("role") ?? "ingest"), store)
    case "list": return key(.list(app: app, json: parsed.value("format") == "json"), store)
    default: return key(.revoke(parsed.operands), store)
    }
}
