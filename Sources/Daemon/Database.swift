import Load
import Platform
import Postgres

/// The database of a daemon or a command: the one that was named, or the embedded one.
package final class Database: Sendable {
    /// Which one.
    package let target: DatabaseTarget
    private let cluster: EmbeddedCluster?

    /// - Parameters:
    ///   - option: The setting `database`; nil or empty leaves it to the environment.
    ///   - environment: The environment of the process.
    ///   - dataDirectory: Where the embedded database lives.
    package init(option: String?, environment: [String: String], dataDirectory: String) {
        target = DatabaseTarget.resolve(
            option: option, environment: environment, dataDirectory: dataDirectory)
        if case .embedded(let directory) = target {
            cluster = EmbeddedCluster(dataDirectory: directory)
        } else {
            cluster = nil
        }
    }

    /// The connection string for a daemon; starts the embedded database, or starts it again.
    package func start() throws(PostgresError) -> String {
        if let conninfo = target.conninfo { return conninfo }
        guard let cluster else { return "" }
        return try cluster.start()
    }

    /// A connection for a command: to a database that runs, or is started for the moment.
    ///
    /// - Throws: ``LoadError``, also when the schema is not there or of another version.
    package func connect(applicationName: String) throws(LoadError) -> PostgresConnection {
        let name = "tapline \(applicationName)"
        if let cluster {
            // Most often the server runs, and each look at it would be a session of its own.
            do throws(LoadError) {
                return try .open(
                    database: { () throws(PostgresError) in
                        try cluster.attach(isTrusting: true)
                    }, applicationName: name, settings: "")
            } catch {
                Log.debug("could not connect at once: \(error)")
            }
        }
        return try .open(database: attach, applicationName: name, settings: "")
    }

    /// The connection string for a command; starts the embedded database for the moment if need be.
    package func attach() throws(PostgresError) -> String {
        if let conninfo = target.conninfo { return conninfo }
        return try cluster?.attach() ?? ""
    }

    /// Ends the use of the embedded database; a daemon's is ended with it.
    package func stop() {
        do throws(PostgresError) {
            try cluster?.stop()
        } catch {
            Log.warn("\(error)")
        }
    }
}
