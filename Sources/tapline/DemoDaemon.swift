import Daemon
import Demo
import Event
import Load
import Options
import Platform
import Postgres
import Report

/// The parts that the demo puts together.
func makeDemoBackend() -> any DemoBackend { DemoDaemon() }

/// A daemon in this process, with the embedded database of the demo's directory.
private final class DemoDaemon: DemoBackend {
    private var daemon: Daemon?
    private var database: Database?

    func start(
        dataDirectory: String, isCancelled: () -> Bool
    ) throws(DemoError) -> String {
        Log.level = .warn
        var settings = DaemonSettings(dataDirectory: dataDirectory, version: taplineVersion)
        settings.http.listen = "127.0.0.1:0"
        let daemon: Daemon
        do throws(DaemonError) {
            daemon = try Daemon(settings)
        } catch {
            throw DemoError(error.description, hint: error.hint)
        }
        self.daemon = daemon
        // The environment may name a database; the demo's own is the embedded one.
        let database = Database(option: nil, environment: [:], dataDirectory: dataDirectory)
        self.database = database
        daemon.start()
        _ = try ask { connection throws(LoadError) in try Migrator.migrate(connection) }
        return "http://127.0.0.1:\(daemon.port)"
    }

    /// Runs `body` with a connection.
    private func ask<Result>(
        _ body: (borrowing PostgresConnection) throws(LoadError) -> Result
    ) throws(DemoError) -> Result {
        guard let database else { throw DemoError("the demo's database was not started") }
        do throws(LoadError) {
            return try body(try database.connect(applicationName: "demo"))
        } catch {
            throw DemoError("\(error)", hint: error.hint)
        }
    }

    func createKey(app: String) throws(DemoError) -> String {
        try ask { connection throws(LoadError) in
            let key = "tl_" + Hex.encode(Random.bytes(32))
            _ = try APIKeys.insert(
                connection, hash: sha256(Array(key.utf8)), app: app, role: .ingest)
            return key
        }
    }

    func waitingEvents() throws(DemoError) -> Int { Int(daemon?.books.spooled ?? 0) }

    func report() throws(DemoError) -> String {
        try ask { connection throws(LoadError) in
            do throws(ReportError) {
                let report = try CampaignReport.load(ReportOptions(), on: connection)
                return String(decoding: report.render(.table), as: UTF8.self)
            } catch {
                throw .schema("\(error)")
            }
        }
    }

    func stop() {
        daemon?.stop()
        daemon = nil
        database?.stop()
        database = nil
    }
}
