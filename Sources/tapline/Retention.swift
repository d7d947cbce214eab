import Load
import Options
import Platform

/// `tapline retention`: removes the content of events that are old.
func runRetention(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let days = Microseconds(parsed.number("keep") ?? 0)
    let horizon = Clock.now() - days * 86_400_000_000
    let isJSON = parsed.value("format") == "json"
    return withStore(
        try StoreOptions(parsed), command: "retention"
    ) { connection throws(LoadError) in
        // What it does hangs on the newest tables, and the daemon may not have been started anew yet.
        _ = try Migrator.migrate(connection)
        let outcome = try Retention.run(
            connection, receivedBefore: horizon, progress: noteSegments("retention"))
        if !outcome.notOwned.isEmpty {
            complain(
                "\(outcome.notOwned.count) segments were not made smaller: another role owns them",
                hint: "Run retention as the role that owns the tables of Tapline.")
        }
        let before = Clock.rfc3339(horizon, fractionDigits: 0)
        if isJSON {
            let busy = outcome.busy.map { "\($0)" }.joined(separator: ",")
            return print(
                "{\"received_before\":\"\(before)\",\"events\":\(outcome.events),"
                    + "\"conflicts\":\(outcome.conflicts),\"dead_letters\":\(outcome.deadLetters),"
                    + "\"compacted\":\(outcome.compacted),\"bytes\":\(outcome.bytes),"
                    + "\"busy\":[\(busy)]}\n")
        }
        var text = "received before \(before): "
        text += removalText(outcome.events, outcome.conflicts, outcome.deadLetters)
        if outcome.compacted > 0 {
            text += "\(outcome.compacted) segments made smaller by \(outcome.bytes) bytes\n"
        }
        if !outcome.busy.isEmpty {
            text += "\(outcome.busy.count) segments in use, to be made smaller by the next run\n"
        }
        return print(text)
    }
}
