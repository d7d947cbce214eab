import Event
import Metrics
import Platform
import Postgres
import Spool

/// The background work on the tables, on a connection of its own: folds new events into units,
/// seals full segments, publishes what this daemon still has spooled.
///
/// Any number of daemons may do it on one database: locks in the database let one at a time.
package final class Keeper: Sendable {
    private struct State {
        var isStopping = false
        var hasNews = true
    }

    private let database: @Sendable () throws(PostgresError) -> String
    private let spool: Spool
    private let ledger: Ledger
    private let settings: LoadSettings
    private let foldedEvents: Counter
    private let foldSeconds: Histogram
    private let foldLag: Gauge
    /// When the oldest body still spooled was received; nil when nothing is.
    private let oldestSpooled = Sync.Monitor<Microseconds?>(nil)
    private let state = Sync.Monitor(State())
    private let thread = Sync.Monitor<Thread?>(nil)
    private static let foldIntervalMilliseconds = 1_000
    private static let publicationIntervalMilliseconds = 5_000

    /// - Parameters:
    ///   - database: The database, as libpq takes it; called for each session, and may block.
    ///   - spool: Whose unloaded part is published for the checks of others.
    ///   - ledger: What that part holds.
    package init(
        database: @escaping @Sendable () throws(PostgresError) -> String, spool: Spool,
        ledger: Ledger, settings: LoadSettings, registry: Registry
    ) {
        self.database = database
        self.spool = spool
        self.ledger = ledger
        self.settings = settings
        foldedEvents = registry.counter(
            "tapline_fold_events_total", "Events folded into their units by this daemon")
        foldSeconds = registry.histogram("tapline_fold_seconds", "Time of one step of the fold")
        foldLag = registry.gauge(
            "tapline_fold_lag_batches", "Batches that are stored and not folded yet")
        let oldest = self.oldestSpooled
        registry.gauge(
            "tapline_spool_oldest_unloaded_seconds", "Age of the oldest event not loaded yet"
        ) {
            guard let since = oldest.withLock({ $0 }) else { return 0 }
            return Double(max(0, Clock.now() - since)) / 1_000_000
        }
    }

    /// Starts the thread.
    package func start() {
        thread.withLock { $0 = Thread.start(name: "keeper") { self.run() } }
    }

    /// Ends the thread after the step under way, and waits for it.
    package func stop() {
        state.withLock { $0.isStopping = true }
        state.broadcast()
        thread.withLock { $0 }?.join()
    }

    /// Tells that a batch was committed.
    package func noteCommit() {
        state.withLock { $0.hasNews = true }
    }

    private func run() {
        var backoff = Backoff()
        while !state.withLock({ $0.isStopping }) {
            do throws(LoadError) {
                try runSession { backoff.reset() }
            } catch {
                Log.debug("background work waits: \(error)")
            }
            pause(milliseconds: backoff.next())
        }
    }

    private func pause(milliseconds: Int) {
        _ = state.wait(until: Clock.deadline(inMilliseconds: milliseconds)) { state in
            state.isStopping ? true : nil
        }
    }

    private func runSession(onProgress: () -> Void) throws(LoadError) {
        let connection = try PostgresConnection.open(
            database: database, applicationName: "tapline keep",
            settings: "SET jit = off; SET work_mem = '64MB'; "
                + "SET maintenance_work_mem = '256MB'; SET lock_timeout = '10s'")
        var nextPublication: Microseconds = 0
        while !state.withLock({ $0.isStopping }) {
            let hasNews = state.withLock { state in
                defer { state.hasNews = false }
                return state.hasNews
            }
            if hasNews {
                try fold(connection)
                try Segments.sealClosing(connection)
            }
            if Clock.monotonic() >= nextPublication {
                try publish(connection)
                nextPublication = Clock.deadline(
                    inMilliseconds: Self.publicationIntervalMilliseconds)
            }
            onProgress()
            pause(milliseconds: Self.foldIntervalMilliseconds)
        }
        // What is not folded yet is computed from its events by reports, so the end need not wait.
        try publish(connection)
    }

    /// Writes down what this daemon has still spooled, for the checks of other machines.
    private func publish(_ connection: borrowing PostgresConnection) throws(LoadError) {
        let (received, rejected) = ledger.unloaded
        let statistics = spool.statistics
        let oldest = try oldest(connection)
        oldestSpooled.withLock { $0 = oldest }
        _ = try connection.statement(
            """
            UPDATE tapline.spool SET published_at = clock_timestamp(), published_received = $2,
                published_rejected = $3, published_spooled = $4, published_quarantined = $5,
                published_oldest = $6
            WHERE id = $1
            """,
            [
                .uuid(spool.id.bytes), .int64(received), .int64(rejected),
                .int64(received - rejected), .int64(Int64(statistics.quarantinedRecords)),
                oldest.map { .timestamp($0) } ?? .null,
            ])
        let lag = try connection.statement(
            "SELECT t.batch - f.batch FROM tapline.turn t, tapline.fold f")
        foldLag.set(Double(lag.int64(0, 0) ?? 0))
    }

    /// When the oldest body after the checkpoint was received.
    private func oldest(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> Microseconds? {
        let checkpoint = try Books.checkpoint(connection, of: spool.id)
        // A checkpoint that is not of this spool is the loader's business.
        guard let reader = try? spool.makeReader(from: checkpoint),
            let record = try? reader.next(timeoutMilliseconds: 0)
        else { return nil }
        return (try? BodyRecord(payload: record.payload))?.receivedAt
    }

    /// Brings the units up to the newest batch.
    private func fold(_ connection: borrowing PostgresConnection) throws(LoadError) {
        while !state.withLock({ $0.isStopping }) {
            let started = Clock.monotonic()
            let result = try connection.statement(
                "SELECT tapline.fold_units(\(settings.foldEventsMax))")
            guard let folded = result.int64(0, 0), folded > 0 else { return }
            foldedEvents.add(Int(folded))
            foldSeconds.observe(Double(Clock.monotonic() - started) / 1_000_000)
        }
    }
}
