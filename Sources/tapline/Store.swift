import Daemon
import Options

/// Where the events are, for the commands that look at them.
struct StoreOptions: Equatable {
    /// The data directory, which leads to the embedded database.
    let dataDirectory: String
    /// A libpq connection string; nil leaves it to `DATABASE_URL`, `PG…`, else the embedded one.
    let database: String?

    /// Resolves `--data-dir`, `--database` and `--config` as the daemon does.
    init(_ parsed: Parsed) throws(OptionsError) {
        let settings = try resolveSettings(flags: parsed, surroundings: surroundings).settings
        dataDirectory = settings.dataDirectory
        database = settings.database
    }

    /// The store itself; to be stopped after use.
    func makeDatabase() -> Database {
        Database(
            option: database, environment: surroundings.variables, dataDirectory: dataDirectory)
    }
}
