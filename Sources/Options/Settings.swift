/// Where a setting's value came from.
package enum Provenance: Equatable, Sendable, CustomStringConvertible {
    case standard
    case file(place: String)
    case environment(variable: String)
    case flag(String)

    package var description: String {
        switch self {
        case .standard: "default"
        case .file(let place): "file \(place)"
        case .environment(let variable): "environment \(variable)"
        case .flag(let flag): "flag --\(flag)"
        }
    }
}

/// What surrounds the process; a value, so that tests can make one.
package struct Surroundings: Sendable {
    /// The environment.
    package var variables: [String: String]
    /// Whether the effective user is root.
    package var isRoot: Bool

    /// Makes surroundings.
    package init(variables: [String: String], isRoot: Bool) {
        self.variables = variables
        self.isRoot = isRoot
    }

    /// A variable; an empty one counts as absent.
    package func variable(_ name: String) -> String? {
        variables[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The data directory when nothing names one: docs/operations.md.
    package var standardDataDirectory: String {
        guard !isRoot, let home = variable("HOME") else { return "/var/lib/tapline" }
        return home + "/.local/share/tapline"
    }
}

/// Settings with where each came from.
package struct ResolvedSettings: Equatable, Sendable {
    /// The values.
    package var settings = ServeSettings()
    /// By key; a key that is absent has its default.
    package var provenance: [String: Provenance] = [:]

    /// One line a setting, in the syntax of the file, with its provenance as a comment.
    package var printed: String {
        let lines = SettingSpec.all.map { spec in
            var text = spec.text(of: settings)
            if let value = text, value.contains(where: { " \t#\"".contains($0) }) {
                text = quotedForFile(value)
            }
            let place = provenance[spec.key] ?? .standard
            let assignment =
                text.map { "\(spec.key) = \($0)" } ?? "# \(spec.key) ="
            return padded(assignment, to: 44) + "  # \(place)\n"
        }
        return lines.joined()
    }
}

/// Resolves settings: flags, then environment, then the file, then defaults.
///
/// - Parameters:
///   - flags: Values of flags by the flag's long name; `set` holds `KEY=VALUE` words.
///   - surroundings: The environment; `DATABASE_URL` and `PG…` count as environment.
/// - Throws: The first unknown key or value that does not fit, naming its place.
package func resolveSettings(
    flags: Parsed, surroundings: Surroundings
) throws(OptionsError) -> ResolvedSettings {
    var resolved = ResolvedSettings()
    resolved.settings.dataDirectory = surroundings.standardDataDirectory

    if let path = flags.value("config") ?? surroundings.variable("TAPLINE_CONFIG") {
        for entry in try readConfigFile(path) {
            try resolved.store(entry.value, key: entry.key, from: .file(place: entry.place))
        }
    }
    if let variable = libpqVariable(surroundings) {
        // A database of libpq's own variables stands above one of the file.
        resolved.settings.database =
            variable == "DATABASE_URL" ? surroundings.variable(variable) : nil
        resolved.provenance["database"] = .environment(variable: variable)
    }
    for spec in SettingSpec.all {
        guard let text = surroundings.variable(spec.variable) else { continue }
        try resolved.store(text, key: spec.key, from: .environment(variable: spec.variable))
    }
    for word in flags.all("set") {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            throw .badSetting(
                place: "--set", message: "\(quoted(word)) is not KEY=VALUE", hint: nil)
        }
        try resolved.store(String(parts[1]), key: String(parts[0]), from: .flag("set"))
    }
    for spec in SettingSpec.all {
        guard let flag = spec.flag, let text = flags.value(flag) else { continue }
        try resolved.store(text, key: spec.key, from: .flag(flag))
    }
    return resolved
}

/// The variable of libpq's own that names a database, if one does.
private func libpqVariable(_ surroundings: Surroundings) -> String? {
    ["DATABASE_URL", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"]
        .first { surroundings.variable($0) != nil }
}

extension ResolvedSettings {
    fileprivate mutating func store(
        _ text: String, key: String, from provenance: Provenance
    ) throws(OptionsError) {
        let place =
            switch provenance {
            case .standard: "default"
            case .file(let place): place
            case .environment(let variable): variable
            case .flag(let flag): "--\(flag)"
            }
        guard let spec = SettingSpec.named(key) else {
            let suggestion = nearest(to: key, among: SettingSpec.all.map(\.key))
            throw .badSetting(
                place: place,
                message: "unknown setting \(quoted(key))"
                    + (suggestion.map { " (did you mean \($0)?)" } ?? ""),
                hint: nil)
        }
        if let expected = spec.store(text, in: &settings) {
            throw .badSetting(
                place: place, message: "\(key) is \(quoted(text)), expected \(expected)",
                hint: nil)
        }
        self.provenance[key] = provenance
    }
}

/// Fills up with spaces on the right.
func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}
