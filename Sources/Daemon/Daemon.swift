import Event
import HTTPServer
import Ingest
import Load
import Metrics
import Platform
import Postgres
import Spool
import Web

/// What a daemon is made with; the executable fills it from flags, environment and file.
package struct DaemonSettings: Sendable {
    package var dataDirectory: String
    package var database: String?
    package var environment: [String: String] = [:]
    package var http = HTTPServerConfiguration()
    package var service = ServiceSettings()
    package var spool = SpoolOptions()
    package var load = LoadSettings()
    package var drainSeconds = 10
    /// How long a report over HTTP may keep the database busy.
    package var reportTimeoutMilliseconds = 30_000
    package var version: String

    package init(dataDirectory: String, version: String) {
        self.dataDirectory = dataDirectory
        self.version = version
    }
}

/// Why a daemon does not start.
package struct DaemonError: Error, CustomStringConvertible, Sendable {
    /// One line.
    package let description: String
    /// A full sentence on what to do.
    package let hint: String?
}

/// The daemon: HTTP in front, the spool behind it, the loader behind that.
///
/// It takes events as soon as the spool is open, whether or not the database is there.
package final class Daemon: Sendable {
    private let settings: DaemonSettings
    private let spool: Spool
    private let database: Database
    private let keys: KeyCache
    private let service: IngestService
    private let server: HTTPServer
    private let loader: Loader
    private let keeper: Keeper
    private let ledger: Ledger
    private let results: StoredResults
    private let web: Web
    private let starter = Sync.Monitor<Thread?>(nil)
    private let isStopping = Sync.Monitor(false)

    /// Opens the spool and listens.
    ///
    /// - Throws: ``DaemonError``: another daemon has the directory, the port is in use, ….
    package init(_ settings: DaemonSettings) throws(DaemonError) {
        self.settings = settings
        Memory.limitArenas(to: 2)
        let registry = Registry()
        ProcessMetrics.register(in: registry, version: settings.version)
        let database = Database(
            option: settings.database, environment: settings.environment,
            dataDirectory: settings.dataDirectory)
        let spool: Spool
        do throws(SpoolError) {
            spool = try Spool(
                directory: settings.dataDirectory + "/spool", options: settings.spool)
        } catch {
            throw DaemonError(description: "\(error)", hint: Self.hint(for: error))
        }
        SpoolMetrics.register(spool, in: registry, bytesMax: settings.spool.bytesMax)
        let connect: @Sendable () throws(PostgresError) -> String = { () throws(PostgresError) in
            try database.start()
        }
        let ledger = Ledger(registry: registry)
        let results = StoredResults()
        self.results = results
        let keeper = Keeper(
            database: connect, spool: spool, ledger: ledger,
            registry: registry)
        let loadMetrics = LoadMetrics(registry: registry)
        let scan = UnloadedScan(spool: spool, directory: settings.dataDirectory + "/spool")
        loader = Loader(
            database: connect, spool: spool, settings: settings.load,
            metrics: loadMetrics, ledger: ledger, notifier: results.notifier,
            identities: IdentityFiles(
                directory: settings.dataDirectory + "/identities",
                bytesMax: settings.load.identityFilesBytesMax),
            onClaim: { scan.start(from: $0, ledger) })
        keys = KeyCache(path: settings.dataDirectory + "/keys", database: connect)
        let web = Web(
            version: settings.version,
            reportTimeoutMilliseconds: settings.reportTimeoutMilliseconds, registry: registry,
            database: connect, keys: keys,
            dataThrough: { connection in
                // A database that cannot tell has more to say about the report itself.
                (try? DataThrough.oldestSpooled(
                    connection, dataDirectory: settings.dataDirectory)) ?? nil
            },
            counters: {
                let statistics = spool.statistics
                return LiveCounters(
                    books: ledger.books, unloaded: ledger.unloaded.received,
                    isDatabaseUp: loadMetrics.isDatabaseUp, oldestUnloaded: keeper.oldestUnloaded,
                    spoolBytes: statistics.bytes, spoolUnloadedBytes: statistics.unloadedBytes,
                    spoolBytesMax: settings.spool.bytesMax)
            })
        self.web = web
        var serviceSettings = settings.service
        serviceSettings.largeBodyThreads = settings.http.threads
        service = IngestService(
            settings: serviceSettings, spool: spool, keys: keys, registry: registry,
            storedWaiter: results,
            onDurable: { received, rejected in
                ledger.noteDurable(received: received, rejected: rejected)
            }, tap: web.tap, routes: { web.route($0) })
        do throws(HTTPServerError) {
            server = try HTTPServer(configuration: settings.http, handler: service)
        } catch {
            spool.close()
            throw DaemonError(description: "\(error)", hint: nil)
        }
        service.metrics.register(server, in: registry)
        self.spool = spool
        self.database = database
        self.keeper = keeper
        self.ledger = ledger
    }

    private static func hint(for error: SpoolError) -> String? {
        switch error {
        case .locked: "Stop the other daemon, or give this one another --data-dir."
        case .failed: "Check the owner and the permissions of the data directory."
        case .noSpace: "Free space on the disk of the data directory."
        case .unsupportedVersion:
            "Start the version of Tapline that wrote it; nothing was changed. Let it load the spool "
                + "before another version takes over."
        default: nil
        }
    }

    /// Where is listened, with the port that the system chose when 0 was asked for.
    private var address: String {
        let host = server.address.lastIndex(of: ":").map { server.address[..<$0] }
        return "\(host ?? server.address[...]):\(server.port)"
    }

    /// The port that is listened on.
    package var port: Int { server.port }

    /// What is received, stored and still spooled.
    package var books: Books { ledger.books }

    /// Starts the work behind the spool.
    package func start() {
        Log.info(
            "listening on \(address)",
            ["database": "\(database.target)", "spool": "\(spool.id)"])
        keys.start()
        web.start()
        starter.withLock { $0 = Thread.start(name: "database") { self.bringUpDatabase() } }
    }

    /// Waits for the database, brings its schema up to date, and starts what needs it.
    private func bringUpDatabase() {
        var backoff = Backoff()
        while !isStopping.withLock({ $0 }) {
            do throws(LoadError) {
                let outcome = try migrate()
                if !outcome.applied.isEmpty {
                    Log.info("migrated the schema to version \(outcome.version)")
                }
                loader.start()
                keeper.start()
                return
            } catch {
                backoff.report(error)
                pause(milliseconds: backoff.next())
            }
        }
    }

    /// Waits between two tries; those who wait for the database (`?ack=stored`) and whose time is
    /// over are let go meanwhile, as the loader does once it runs.
    private func pause(milliseconds: Int) {
        let deadline = Clock.deadline(inMilliseconds: milliseconds)
        repeat {
            results.notifier.expire()
            let slice = min(deadline, Clock.deadline(inMilliseconds: 250))
            if isStopping.wait(until: slice, for: { $0 ? true : nil }) != nil { return }
        } while Clock.monotonic() < deadline
    }

    private func migrate() throws(LoadError) -> Migrator.Outcome {
        let connection = try PostgresConnection.open(
            database: database.start, applicationName: "tapline migrate", settings: "")
        return try Migrator.migrate(connection)
    }

    /// Ends the daemon: no new bodies, those under way answered, what is spooled loaded if that
    /// takes no longer than the drain time, then everything is closed.
    package func stop() {
        Log.info("stopping: taking no more events")
        service.startDraining()
        server.stop(drainSeconds: settings.drainSeconds)
        service.largeBodies.close()
        isStopping.withLock { $0 = true }
        isStopping.broadcast()
        starter.withLock { $0 }?.join()
        web.stop()
        loader.stop(drainSeconds: settings.drainSeconds)
        keeper.stop()
        keys.stop()
        spool.close()
        database.stop()
        let left = ledger.books.spooled
        Log.info(
            left == 0 ? "stopped, everything is stored" : "stopped, \(left) events stay spooled")
    }

    /// Runs until SIGTERM or SIGINT.
    ///
    /// - Parameter reload: Called at SIGHUP.
    /// - Returns: The exit code.
    package static func run(
        _ settings: DaemonSettings, reload: () -> Void
    ) throws(DaemonError) -> Int32 {
        Signals.block()
        let daemon = try Daemon(settings)
        daemon.start()
        while Signals.wait() == .reload { reload() }
        daemon.stop()
        return 0
    }
}
