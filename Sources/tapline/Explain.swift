import Explain
import Load
import Options

/// `tapline explain UID`: the whole life of one event or message.
func runExplain(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    let uid = parsed.operands.first ?? ""
    guard !uid.isEmpty, uid.utf8.count <= 128, !uid.utf8.contains(0) else {
        throw .badValue(
            option: "UID", value: uid, expected: "text of 1 to 128 bytes",
            command: "tapline explain")
    }
    return withStore(store, command: "explain") { connection throws(LoadError) in
        let explainer = Explainer(
            uid: uid, app: parsed.value("app"), dataDirectory: store.dataDirectory)
        let explanation = try explainer.explain(connection)
        let code = print(parsed.value("format") == "json" ? explanation.json : explanation.text)
        return explanation.events.isEmpty ? 1 : code
    }
}
