import Daemon
import Load
import Options
import Platform

/// `tapline dlq list|show|replay|purge`: events that PostgreSQL refused.
func runDlq(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    let format = DlqFormat(rawValue: parsed.value("format") ?? "") ?? .table
    let ids = parsed.operands.compactMap { Int64($0) }
    switch parsed.path.last {
    case "list": return listDeadLetters(store, app: parsed.value("app"), format)
    case "show": return showDeadLetter(store, ids.first ?? 0, format)
    case "replay":
        let selection = try selection(parsed, ids, olderThan: nil)
        return replayDeadLetters(store, selection, format)
    default:
        let olderThan = parsed.milliseconds("older-than")
        let selection = try selection(parsed, ids, olderThan: olderThan)
        return purgeDeadLetters(store, selection, isSure: parsed.flag("yes"))
    }
}

/// How dead letters are printed.
enum DlqFormat: String {
    case table, json, ndjson
}

/// Exactly one way of saying which.
private func selection(
    _ parsed: Parsed, _ ids: [Int64], olderThan milliseconds: Int?
) throws(OptionsError) -> DeadLetters.Selection {
    let command = (["tapline"] + parsed.path).joined(separator: " ")
    let ways = [!ids.isEmpty, parsed.flag("all"), milliseconds != nil].count { $0 }
    guard ways == 1 else {
        let others = parsed.path.last == "purge" ? " or --older-than" : ""
        throw .missingOperand("either ids, or --all\(others)", command: command)
    }
    if let milliseconds {
        return .refused(before: Clock.now() - Microseconds(milliseconds) * 1_000)
    }
    return ids.isEmpty ? .all : .ids(ids)
}

// MARK: list and show

private func listDeadLetters(_ store: StoreOptions, app: String?, _ format: DlqFormat) -> Int32 {
    withStore(store, command: "dlq") { connection throws(LoadError) in
        var output = ListOutput(format)
        var last: Int64 = 0
        var code: Int32 = 0
        while case let page = try DeadLetters.page(connection, after: last, .all, app: app),
            let end = page.last?.id, code == 0
        {
            last = end
            for letter in page where code == 0 {
                code = output.add(format == .table ? summary(letter) : json(letter))
            }
        }
        return code == 0 ? output.end() : code
    }
}

private func showDeadLetter(_ store: StoreOptions, _ id: Int64, _ format: DlqFormat) -> Int32 {
    withStore(store, command: "dlq") { connection throws(LoadError) in
        guard let letter = try DeadLetters.page(connection, after: 0, .ids([id])).first else {
            complain("tapline dlq: there is no dead letter \(id)")
            return 1
        }
        return print((format == .table ? page(letter) : json(letter)) + "\n")
    }
}

/// Two lines of at most 80 columns.
private func summary(_ letter: DeadLetter) -> String {
    let head =
        "\(letter.id)  \(Clock.rfc3339(letter.refusedAt, fractionDigits: 0))  "
        + "\(letter.app)  \(letter.sqlstate)  \(letter.reason)"
    return oneLine(head, columns: 80) + "\n" + oneLine("    " + letter.line, columns: 80)
}

private func page(_ letter: DeadLetter) -> String {
    """
    dead letter \(letter.id)
      app       \(letter.app)
      received  \(Clock.rfc3339(letter.receivedAt, fractionDigits: 6))
      refused   \(Clock.rfc3339(letter.refusedAt, fractionDigits: 6))
      sqlstate  \(letter.sqlstate)
      reason    \(letter.reason)
      identity  \(letter.key)
    \(letter.line)
    """
}

private func json(_ letter: DeadLetter) -> String {
    "{\"id\":\(letter.id),\"app\":\(JSONString.quoted(letter.app)),"
        + "\"received_at\":\"\(Clock.rfc3339(letter.receivedAt, fractionDigits: 6))\","
        + "\"refused_at\":\"\(Clock.rfc3339(letter.refusedAt, fractionDigits: 6))\","
        + "\"sqlstate\":\"\(letter.sqlstate)\",\"reason\":\(JSONString.quoted(letter.reason)),"
        + "\"identity\":\"\(letter.key)\",\"line\":\(JSONString.quoted(letter.line))}"
}

/// A text on one line of a terminal, without control characters, cut where it is too long.
func oneLine(_ text: String, columns: Int) -> String {
    let shown = String(
        text.unicodeScalars.prefix(columns + 1).map { scalar -> Character in
            scalar.properties.generalCategory == .control ? " " : Character(scalar)
        })
    return shown.count > columns ? shown.prefix(columns - 1) + "…" : shown
}

/// Items as they come: lines, or the elements of one JSON array.
struct ListOutput {
    private let format: DlqFormat
    private var isEmpty = true

    init(_ format: DlqFormat) { self.format = format }

    /// Prints an item.
    ///
    /// - Returns: 0, or 1 when the reader is gone.
    mutating func add(_ text: String) -> Int32 {
        defer { isEmpty = false }
        switch format {
        case .json: return print((isEmpty ? "[" : ",\n ") + text)
        case .table, .ndjson: return print(text + "\n")
        }
    }

    /// Prints the end.
    func end() -> Int32 {
        guard format == .json else { return 0 }
        return print(isEmpty ? "[]\n" : "]\n")
    }
}

// MARK: replay and purge

private func replayDeadLetters(
    _ store: StoreOptions, _ selection: DeadLetters.Selection, _ format: DlqFormat
) -> Int32 {
    let database = store.makeDatabase()
    defer { database.stop() }
    var output = ListOutput(format)
    var counts: [String: Int] = [:]
    var code: Int32 = 0
    do throws(LoadError) {
        try Replay.run(database, selection) { id, outcome in
            counts[outcome.word, default: 0] += 1
            code |= output.add(format == .table ? outcome.line(id) : outcome.json(id))
        }
    } catch .spoolIsLoadedElsewhere {
        complain("tapline dlq: another replay is running")
        code = 1
    } catch {
        complain("tapline dlq: \(error)", hint: error.hint)
        code = 1
    }
    code |= output.end()
    let text = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    complain("replayed: " + (text.isEmpty ? "none" : text.joined(separator: ", ")))
    let good = ["stored", "duplicate", "conflict"]
    return counts.keys.allSatisfy(good.contains) ? code : 1
}

extension Replay.Outcome {
    /// What it is called.
    fileprivate var word: String {
        switch self {
        case .settled(.stored): "stored"
        case .settled(.duplicate): "duplicate"
        case .settled(.conflict): "conflict"
        case .settled(.deadLettered), .refused, .rejected: "dead letter again"
        case .missing: "not there"
        }
    }

    private var reason: (sqlstate: String?, text: String)? {
        switch self {
        case .refused(let sqlstate, let reason): (sqlstate, reason)
        case .rejected(let code): (nil, "this version rejects the line: \(code)")
        case .settled, .missing: nil
        }
    }

    fileprivate func line(_ id: Int64) -> String {
        guard let reason else { return "\(id)  \(word)" }
        let state = reason.sqlstate.map { "\($0) " } ?? ""
        return oneLine("\(id)  \(word): \(state)\(reason.text)", columns: 80)
    }

    fileprivate func json(_ id: Int64) -> String {
        var text = "{\"id\":\(id),\"outcome\":\"\(word.replacing(" ", with: "_"))\""
        if let reason {
            if let state = reason.sqlstate { text += ",\"sqlstate\":\"\(state)\"" }
            text += ",\"reason\":\(JSONString.quoted(reason.text))"
        }
        return text + "}"
    }
}

private func purgeDeadLetters(
    _ store: StoreOptions, _ selection: DeadLetters.Selection, isSure: Bool
) -> Int32 {
    withStore(store, command: "dlq") { connection throws(LoadError) in
        guard isSure else {
            let count = try DeadLetters.count(connection, selection)
            complain(
                "tapline dlq: would remove \(count) dead letters for good",
                hint: "Give --yes to do it.")
            return 2
        }
        let count = try DeadLetters.purge(connection, selection)
        return print("removed \(count) dead letters; they stay counted\n")
    }
}
