import Event
import Ingest
import Load
import Postgres
import Spool

/// `tapline dlq replay`: dead letters, decoded once more and loaded.
package enum Replay {
    /// What became of a dead letter.
    package enum Outcome: Sendable {
        /// It has this verdict now and is a dead letter no more.
        case settled(StoredVerdict)
        /// It is still one, for this reason.
        case refused(sqlstate: String, reason: String)
        /// It is still one: this version does not take its line.
        case rejected(code: String)
        /// There is no such dead letter, or there was none any more when its turn came.
        case missing
    }

    /// How often a part is tried again when somebody else takes letters of it away.
    private static let triesMax = 5

    /// Tries dead letters once more, in the order in which they were refused.
    ///
    /// - Parameter report: Told of each once its verdict is committed.
    /// - Throws: ``LoadError``; what was reported is done, and of the rest nothing, or, where the
    ///   connection was lost while committing, at most ``DeadLetters/pageCount`` more.
    package static func run(
        _ database: Database, _ selection: DeadLetters.Selection,
        report: (Int64, Outcome) -> Void
    ) throws(LoadError) {
        let connection = try database.connect(applicationName: "dlq")
        var wanted: Set<Int64> = []
        if case .ids(let ids) = selection { wanted = Set(ids) }
        var last: Int64 = 0
        var tries = 0
        var session: DeadLetterReplay?
        while true {
            let letters = try DeadLetters.page(connection, after: last, selection)
            guard let end = letters.last?.id else { break }
            if session == nil {
                session = try DeadLetterReplay(database: database.attach)
            }
            do throws(LoadError) {
                try load(letters, &session, connection) { id, outcome in
                    wanted.remove(id)
                    report(id, outcome)
                }
            } catch .deadLettersChanged where tries < triesMax {
                tries += 1
                session = nil
                continue
            }
            tries = 0
            last = end
        }
        for id in wanted.sorted() { report(id, .missing) }
    }

    private static func load(
        _ letters: [DeadLetter], _ session: inout DeadLetterReplay?,
        _ connection: borrowing PostgresConnection, _ report: (Int64, Outcome) -> Void
    ) throws(LoadError) {
        var rejected: [Int64: String] = [:]
        var items: [DeadLetterReplay.Item] = []
        for letter in letters {
            let payload = KeptLine.payload(
                letter.line, app: letter.app, receivedAt: letter.receivedAt)
            switch payload {
            case .success(let payload): items.append(.init(id: letter.id, payload: payload))
            case .failure(let rejection): rejected[letter.id] = rejection.code.rawValue
            }
        }
        let verdicts = try session?.load(items) ?? []
        var settled: [Int64: StoredVerdict] = [:]
        for (item, verdict) in zip(items, verdicts) where verdict != .deadLettered {
            settled[item.id] = verdict
        }
        // Why it was refused this time is what the table says.
        let left = letters.map(\.id).filter { settled[$0] == nil && rejected[$0] == nil }
        var refused: [Int64: DeadLetter] = [:]
        for letter in try DeadLetters.page(connection, after: 0, .ids(left)) {
            refused[letter.id] = letter
        }
        for letter in letters {
            if let verdict = settled[letter.id] {
                report(letter.id, .settled(verdict))
            } else if let code = rejected[letter.id] {
                report(letter.id, .rejected(code: code))
            } else if let again = refused[letter.id] {
                report(letter.id, .refused(sqlstate: again.sqlstate, reason: again.reason))
            } else {
                report(letter.id, .missing)
            }
        }
    }
}
