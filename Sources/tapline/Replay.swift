import Daemon
import Load
import Options

/// `tapline replay`: loads what the spool still holds of what was loaded.
func runReplay(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    let database = store.makeDatabase()
    defer { database.stop() }
    do throws(SpoolReplayError) {
        let outcome = try SpoolReplay.run(
            database: database.attach, directory: store.dataDirectory + "/spool",
            from: parsed.number("from").map { UInt64($0) })
        let isJSON = parsed.value("format") == "json"
        let code = print(isJSON ? outcome.json : outcome.text)
        return outcome.unreadable == 0 ? code : 1
    } catch .load(.spoolIsLoadedElsewhere) {
        complain("tapline replay: another replay is running")
        return 1
    } catch {
        complain("tapline replay: \(error)", hint: error.hint)
        return 1
    }
}

extension SpoolReplay.Outcome {
    private var terms: [(String, Int)] {
        [
            ("received", received), ("stored", verdicts.stored), ("duplicate", verdicts.duplicate),
            ("conflict", verdicts.conflict), ("rejected", rejected),
            ("dead_lettered", verdicts.deadLettered),
        ]
    }

    fileprivate var json: String {
        "{\"from\":\(segments.lowerBound),\"to\":\(segments.upperBound),\"records\":\(records),"
            + terms.map { "\"\($0.0)\":\($0.1)," }.joined() + "\"unreadable\":\(unreadable),"
            + "\"more_spooled\":\(isMoreSpooled)}\n"
    }

    fileprivate var text: String {
        let counts = terms.dropFirst().map { "\($0.1) \($0.0)" }.joined(separator: ", ")
        var text =
            "segments \(segments.lowerBound) to \(segments.upperBound): \(records) records, "
            + "\(received) lines\n\(counts)\n"
        for (segment, count) in damaged.sorted(by: { $0.key < $1.key }) {
            text += "\(count) records of segment \(segment) cannot be read: they are damaged\n"
        }
        let foreign = unreadable - damaged.values.reduce(0, +)
        if foreign > 0 {
            text += "\(foreign) records cannot be read: they are of another version\n"
        }
        if verdicts.stored > 0 {
            text +=
                "what is stored was missing: reports are right again after \"tapline rebuild\"\n"
        }
        if isMoreSpooled {
            text += "the spool has more, which is not loaded yet: its daemon does that\n"
        }
        return text
    }
}
