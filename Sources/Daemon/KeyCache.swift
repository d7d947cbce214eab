import Event
import Ingest
import Load
import Platform
import Postgres

/// The keys of the database, kept in memory and in a file of the data directory, so that a daemon
/// whose database is away still takes events.
///
/// A thread reads them again every two seconds, which is how a revoked key stops. A key that is not
/// known is looked up before it is refused; that it is unknown then holds for a second. The aliases of
/// apps are read with the keys, and so are the secret of the tokens that devices are issued and the
/// categories of notifications that devices are told.
package final class KeyCache: KeyStore {
    private struct Entry {
        let app: [UInt8]
        let role: KeyRole
        let isRevoked: Bool
    }

    private struct Alias: Equatable {
        let app: [UInt8]
        let isOpen: Bool
    }

    private struct Question {
        let hash: [UInt8]
        let completion: @Sendable (KeyVerdict) -> Void
    }

    private struct State {
        var entries: [[UInt8]: Entry] = [:]
        var aliases: [String: Alias] = [:]
        /// What ``DeviceToken``s are signed with; nil until it was read once.
        var secret: [UInt8]?
        /// By app: see ``KeyStore/categories(app:)``.
        var categories: [[UInt8]: String] = [:]
        /// Whether the last look into the database succeeded.
        var isCurrent = false
        /// Hashes of unknown keys, with the time (monotonic) until which that is believed.
        var unknown: [[UInt8]: Microseconds] = [:]
        var questions: [Question] = []
        var isStopping = false
    }

    private let database: @Sendable () throws(PostgresError) -> String
    private let path: String
    private let state: Sync.Monitor<State>
    private let thread = Sync.Monitor<Thread?>(nil)
    private static let refreshMilliseconds = 2_000
    private static let statementMilliseconds = 5_000
    private static let unknownMicroseconds: Microseconds = 1_000_000
    /// Beyond it a flood of made-up keys would fill the memory: they are looked up again instead.
    private static let unknownMax = 10_000

    /// Reads the keys of the last run.
    ///
    /// - Parameters:
    ///   - path: The file of hashes; readable by the owner only.
    ///   - database: Where to connect; may block while the database starts.
    package init(path: String, database: @escaping @Sendable () throws(PostgresError) -> String) {
        self.path = path
        self.database = database
        state = Sync.Monitor(State())
        let entries = Self.read(path)
        let aliases = Self.readAliases(path + ".aliases")
        let secret = (try? File.contents(of: path + ".secret")).flatMap {
            Hex.decode(String(decoding: $0, as: UTF8.self))
        }
        let categories = Self.readCategories(path + ".categories")
        state.withLock { state in
            state.secret = secret?.count == 32 ? secret : nil
            state.categories = categories
            state.entries = entries
            state.aliases = aliases
        }
    }

    /// Starts the thread.
    package func start() {
        thread.withLock { $0 = Thread.start(name: "keys") { self.run() } }
    }

    /// Ends the thread; questions are answered as unavailable.
    package func stop() {
        state.withLock { $0.isStopping = true }
        state.broadcast()
        thread.withLock { $0 }?.join()
    }

    // MARK: KeyStore

    package func lookup(_ key: [UInt8]) -> KeyVerdict {
        if DeviceToken.isToken(key) {
            guard let secret = state.withLock({ $0.secret }) else { return .unavailable }
            guard let token = DeviceToken(key, secret: secret) else { return .unknown }
            return .device(app: token.app, device: token.device)
        }
        let hash = sha256(key)
        return state.withLock { state in
            if let entry = state.entries[hash] { return Self.verdict(entry) }
            if let until = state.unknown[hash], Clock.monotonic() < until { return .unknown }
            return .ask
        }
    }

    package func ask(_ key: [UInt8], _ completion: @escaping @Sendable (KeyVerdict) -> Void) {
        let hash = sha256(key)
        let isStopping = state.withLock { state in
            if !state.isStopping {
                state.questions.append(Question(hash: hash, completion: completion))
            }
            return state.isStopping
        }
        if isStopping { completion(.unavailable) } else { state.broadcast() }
    }

    package func lookup(alias: String) -> AliasVerdict {
        state.withLock { state in
            if let found = state.aliases[alias] {
                return .known(app: found.app, isOpen: found.isOpen)
            }
            return state.isCurrent ? .unknown : .unavailable
        }
    }

    package func issueToken(app: [UInt8], device: String) -> String? {
        state.withLock { $0.secret }.map {
            DeviceToken.make(app: app, device: device, secret: $0, issuedAt: Clock.now())
        }
    }

    package func categories(app: [UInt8]) -> String {
        state.withLock { $0.categories[app] } ?? "[]"
    }

    private static func verdict(_ entry: Entry) -> KeyVerdict {
        entry.isRevoked ? .revoked : .known(app: entry.app, role: entry.role)
    }

    // MARK: The thread

    private func run() {
        while true {
            do throws(LoadError) {
                try runSession()
            } catch {
                state.withLock { $0.isCurrent = false }
                answer(takeQuestions(), isCurrent: false)
                Log.debug("could not read the keys: \(error)")
            }
            guard pause() else { break }
        }
        answer(takeQuestions(), isCurrent: false)
    }

    /// Waits for the next refresh or a question; false when stopping.
    private func pause() -> Bool {
        let deadline = Clock.deadline(inMilliseconds: Self.refreshMilliseconds)
        let isStopping = state.wait(until: deadline) { state -> Bool? in
            if state.isStopping { return true }
            return state.questions.isEmpty ? nil : false
        }
        return isStopping != true
    }

    private func runSession() throws(LoadError) {
        let connection = try PostgresConnection.open(
            database: database, applicationName: "tapline keys", settings: "",
            statementMilliseconds: Self.statementMilliseconds)
        repeat {
            // Only who asked before the keys are read may hear that a key is unknown.
            let questions = takeQuestions()
            let rows: [APIKeys.Row]
            let aliases: [AppAliases.Row]
            let secret: [UInt8]?
            let categories: [(app: String, json: String)]
            do throws(LoadError) {
                rows = try APIKeys.all(connection)
                aliases = try AppAliases.all(connection)
                secret = try Devices.tokenSecret(connection)
                categories = try Categories.json(connection)
            } catch {
                answer(questions, isCurrent: false)
                throw error
            }
            var entries: [[UInt8]: Entry] = [:]
            for row in rows {
                guard let role = KeyRole(rawValue: row.role.rawValue) else { continue }
                entries[row.hash] = Entry(
                    app: Array(row.app.utf8), role: role, isRevoked: row.revokedAt != nil)
            }
            store(entries)
            store(secret: secret)
            store(categories)
            store(aliases)
            answer(questions, isCurrent: true)
        } while pause()
    }

    private func store(_ entries: [[UInt8]: Entry]) {
        Failpoint.reach("keys.reload")
        let text = Self.text(of: entries)
        let isChanged = state.withLock { state in
            let isChanged = Self.text(of: state.entries) != text
            state.entries = entries
            return isChanged
        }
        if isChanged { keep(text, path, "keys") }
    }

    private func store(secret: [UInt8]?) {
        let isChanged = state.withLock { state in
            defer { state.secret = secret ?? state.secret }
            return secret != nil && state.secret != secret
        }
        if isChanged, let secret { keep(Hex.encode(secret), path + ".secret", "secret of tokens") }
    }

    private func store(_ rows: [(app: String, json: String)]) {
        var categories: [[UInt8]: String] = [:]
        for row in rows { categories[Array(row.app.utf8)] = row.json }
        let isChanged = state.withLock { state in
            defer { state.categories = categories }
            return state.categories != categories
        }
        if isChanged { keep(Self.text(of: categories), path + ".categories", "categories") }
    }

    private func store(_ rows: [AppAliases.Row]) {
        var aliases: [String: Alias] = [:]
        for row in rows {
            aliases[row.alias] = Alias(app: Array(row.app.utf8), isOpen: row.isOpen)
        }
        let isChanged = state.withLock { state in
            let isChanged = state.aliases != aliases
            state.aliases = aliases
            state.isCurrent = true
            return isChanged
        }
        if isChanged { keep(Self.text(of: aliases), path + ".aliases", "aliases") }
    }

    private func keep(_ text: String, _ path: String, _ what: String) {
        do throws(SystemError) {
            try File.replace(path, with: Array(text.utf8).span, permissions: 0o600)
        } catch {
            Log.warn("could not keep the \(what) for a start without the database: \(error)")
        }
    }

    private func takeQuestions() -> [Question] {
        state.withLock { state in
            defer { state.questions = [] }
            return state.questions
        }
    }

    private func answer(_ questions: [Question], isCurrent: Bool) {
        let now = Clock.monotonic()
        let verdicts = state.withLock { state in
            if state.unknown.count > Self.unknownMax { state.unknown = [:] }
            return questions.map { question -> KeyVerdict in
                guard isCurrent else { return .unavailable }
                if let entry = state.entries[question.hash] { return Self.verdict(entry) }
                state.unknown[question.hash] = now + Self.unknownMicroseconds
                return .unknown
            }
        }
        for (question, verdict) in zip(questions, verdicts) { question.completion(verdict) }
    }

    // MARK: The file of aliases: a line each, `HEX-OF-ALIAS open|keyed APP`, sorted.

    private static func text(of aliases: [String: Alias]) -> String {
        aliases.map { alias, value in
            "\(Hex.encode(Array(alias.utf8))) \(value.isOpen ? "open" : "keyed") "
                + String(decoding: value.app, as: UTF8.self) + "\n"
        }.sorted().joined()
    }

    private static func readAliases(_ path: String) -> [String: Alias] {
        guard let bytes = try? File.contents(of: path) else { return [:] }
        var aliases: [String: Alias] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 2)
            guard parts.count == 3, let alias = Hex.decode(String(parts[0])) else { continue }
            aliases[String(decoding: alias, as: UTF8.self)] = Alias(
                app: Array(parts[2].utf8), isOpen: parts[1] == "open")
        }
        return aliases
    }

    // MARK: The file of categories: a line an app, `HEX-OF-APP JSON`, sorted.

    private static func text(of categories: [[UInt8]: String]) -> String {
        categories.map { "\(Hex.encode($0)) \($1)\n" }.sorted().joined()
    }

    private static func readCategories(_ path: String) -> [[UInt8]: String] {
        guard let bytes = try? File.contents(of: path) else { return [:] }
        var categories: [[UInt8]: String] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let app = Hex.decode(parts[0]) else { continue }
            categories[app] = String(parts[1])
        }
        return categories
    }

    // MARK: The file of keys: a line a key, `HASH ROLE good|revoked APP`, sorted.

    private static func text(of entries: [[UInt8]: Entry]) -> String {
        entries.map { hash, entry in
            "\(Hex.encode(hash)) \(entry.role.rawValue) "
                + "\(entry.isRevoked ? "revoked" : "good") "
                + String(decoding: entry.app, as: UTF8.self) + "\n"
        }.sorted().joined()
    }

    private static func read(_ path: String) -> [[UInt8]: Entry] {
        guard let bytes = try? File.contents(of: path) else { return [:] }
        var entries: [[UInt8]: Entry] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 3)
            guard parts.count == 4, let hash = Hex.decode(String(parts[0])),
                let role = KeyRole(rawValue: String(parts[1]))
            else { continue }
            entries[hash] = Entry(
                app: Array(parts[3].utf8), role: role, isRevoked: parts[2] == "revoked")
        }
        return entries
    }
}
