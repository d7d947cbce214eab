/// Which database to use, and who said so.
package enum DatabaseTarget: Equatable, Sendable {
    /// The option `--database` (or its setting), passed to libpq as it is.
    case option(String)
    /// The environment variable `DATABASE_URL`, passed to libpq as it is.
    case databaseURL(String)
    /// libpq's own environment variables.
    case environment
    /// The private PostgreSQL of a data directory.
    case embedded(dataDirectory: String)

    /// Variables that name a database. Others (`PGPASSWORD`, `PGSSLMODE`, `PGTZ`, …) only say how to
    /// use one, and `PGDATA` is set in every container of PostgreSQL.
    private static let variables = [
        "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE",
    ]

    /// Decides: the option, then `DATABASE_URL`, then `PG…`, then the data directory.
    ///
    /// - Parameters:
    ///   - option: The value of `--database`; empty counts as not given.
    ///   - environment: The environment; empty values count as not set.
    ///   - dataDirectory: Where the embedded database lives.
    package static func resolve(
        option: String?, environment: [String: String], dataDirectory: String
    ) -> DatabaseTarget {
        if let option, !option.isEmpty { return .option(option) }
        if let url = environment["DATABASE_URL"], !url.isEmpty { return .databaseURL(url) }
        if variables.contains(where: { environment[$0]?.isEmpty == false }) { return .environment }
        return .embedded(dataDirectory: dataDirectory)
    }

    /// What to give to libpq; nil for the embedded database, which gives it when it has started.
    package var conninfo: String? {
        switch self {
        case .option(let text), .databaseURL(let text): text
        case .environment: ""
        case .embedded: nil
        }
    }
}

extension DatabaseTarget: CustomStringConvertible {
    /// For logs and `--print-config`: without passwords.
    package var description: String {
        switch self {
        case .option(let text), .databaseURL(let text): Conninfo.redacted(text)
        case .environment: "as PG… of the environment says"
        case .embedded(let directory): "embedded in \(directory)"
        }
    }
}
