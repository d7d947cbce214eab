import Load
import Options

/// `tapline erase`: removes what is known of devices and persons.
func runErase(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let (devices, persons) = (parsed.all("device"), parsed.all("person"))
    guard !devices.isEmpty || !persons.isEmpty else {
        throw .missingOption(option: "--device or --person", command: "tapline erase")
    }
    for (option, values) in [("--device", devices), ("--person", persons)] {
        for value in values where value.isEmpty || value.utf8.count > 128 || value.utf8.contains(0)
        {
            throw .badValue(
                option: option, value: value, expected: "text of 1 to 128 bytes",
                command: "tapline erase")
        }
    }
    let subjects = Erasure.Subjects(
        devices: devices, persons: persons, app: parsed.value("app"))
    let isJSON = parsed.value("format") == "json"
    return withStore(try StoreOptions(parsed), command: "erase") { connection throws(LoadError) in
        // What it does hangs on the newest tables, and the daemon may not have been started anew yet.
        _ = try Migrator.migrate(connection)
        let outcome = try Erasure.run(connection, subjects, progress: noteSegments("erase"))
        if outcome.testDevices > 0 {
            complain(
                "\(outcome.testDevices) of the devices are marked as test devices; the mark stays",
                hint: "It is a row of tapline.test_device, which reports depend on.")
        }
        if outcome.isHeld {
            complain(
                "old versions of erased rows are still in the files of the database: "
                    + "a transaction that began before has not ended",
                hint: "Erase again when it has; no statement reads them.")
        }
        if isJSON {
            return print(
                "{\"events\":\(outcome.events),\"conflicts\":\(outcome.conflicts),"
                    + "\"dead_letters\":\(outcome.deadLetters),"
                    + "\"device_states\":\(outcome.deviceStates)}\n")
        }
        if outcome.deviceStates > 0 {
            _ = print("\(outcome.deviceStates) states of registered devices deleted\n")
        }
        return print(removalText(outcome.events, outcome.conflicts, outcome.deadLetters))
    }
}

/// What was removed, for people.
func removalText(_ events: Int64, _ conflicts: Int64, _ deadLetters: Int64) -> String {
    "\(events) events made anonymous, \(conflicts) conflicts and \(deadLetters) dead letters deleted; "
        + "all stay counted\n"
}

/// Shows on a terminal how far a command is with the segments of the event table.
func noteSegments(_ command: String) -> (Int, Int) -> Void {
    { done, count in
        guard standardErrorTerminal.isTerminal, count > 1 else { return }
        writeAll(Array("\rtapline \(command): segment \(done + 1) of \(count)".utf8), to: 2)
        if done + 1 == count { writeAll(Array("\n".utf8), to: 2) }
    }
}
