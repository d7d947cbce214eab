internal import CPostgres

/// Connection strings of libpq: `host=… dbname=…`, a URI, or the bare name of a database.
package enum Conninfo {
    /// Writes one setting: `dbname='it\'s'`.
    ///
    /// - Parameters:
    ///   - keyword: A keyword of libpq.
    ///   - value: Any text without NUL.
    package static func setting(_ keyword: String, _ value: String) -> String {
        var quoted = keyword + "='"
        for character in value.unicodeScalars {
            if character == "'" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "'"
    }

    /// Whether libpq reads the text as settings, not as the bare name of a database.
    static func hasSettings(_ text: String) -> Bool {
        text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") || text.contains("=")
    }

    /// The settings a connection string names, without passwords, fit for a log.
    ///
    /// - Returns: `host=db.example port=5432 dbname=tapline`; never any part of a string that
    ///   libpq cannot read, since a password might be anywhere in it.
    package static func redacted(_ text: String) -> String {
        guard hasSettings(text) else { return text.isEmpty ? "" : "dbname=" + text }
        guard case .success(let settings) = parse(text) else { return "(unreadable)" }
        return settings.filter { !$0.isSecret }.map { $0.keyword + "=" + $0.value }
            .joined(separator: " ")
    }

    /// - Throws: ``PostgresError/unreadableConninfo(reason:)``, without any secret in it.
    static func check(_ text: String) throws(PostgresError) {
        guard !text.utf8.contains(0) else {
            throw .unreadableConninfo(reason: "it has a NUL in it")
        }
        guard hasSettings(text), case .failure(let failure) = parse(text) else { return }
        throw .unreadableConninfo(reason: failure.reason)
    }

    private struct Setting {
        let keyword: String
        let value: String
        let isSecret: Bool
    }

    private struct Unreadable: Error { let reason: String }

    private static func parse(_ text: String) -> Result<[Setting], Unreadable> {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = unsafe PQconninfoParse(text, &message) else {
            // SAFETY: libpq allocates the message, if any, and leaves it to the caller.
            defer { unsafe PQfreemem(message) }
            let reason = unsafe message.map { unsafe String(cString: $0) } ?? "out of memory"
            // Other messages quote the string itself, and with it perhaps the password.
            let isHarmless =
                reason.hasPrefix("invalid connection option")
                || reason.hasPrefix("invalid URI query parameter")
            let shown = isHarmless ? String(reason.prefix { !$0.isNewline }) : "it is malformed"
            return .failure(Unreadable(reason: shown))
        }
        defer { unsafe PQconninfoFree(options) }
        var settings: [Setting] = []
        var index = 0
        // SAFETY: the array ends with an element whose keyword is null; a value may be null.
        while let keyword = unsafe options[index].keyword {
            if let value = unsafe options[index].val {
                let mark = unsafe options[index].dispchar.map { unsafe String(cString: $0) }
                unsafe settings.append(
                    Setting(
                        keyword: String(cString: keyword), value: String(cString: value),
                        isSecret: mark == "*"))
            }
            index += 1
        }
        return .success(settings)
    }
}
