import Event
import Metrics
import Platform
import Postgres
import Spool

/// The background work on the tables, on a connection of its own: the upkeep of closed segments, and
/// publishing what this daemon still has spooled.
///
/// Any number of daemons may do it on one database: locks in the database let one at a time.
package final class Keeper: Sendable {
    private let database: @Sendable () throws(PostgresError) -> String
    private let spool: Spool
    private let ledger: Ledger
    private let specialUnits: Gauge
    private let detachedPartitions: Counter
    /// When the oldest body still spooled was received; nil when nothing is.
    private let oldestSpooled = Sync.Monitor<Microseconds?>(nil)
    private let isStopping = Sync.Monitor(false)
    private let thread = Sync.Monitor<Thread?>(nil)
    private static let intervalMilliseconds = 1_000
    private static let publicationIntervalMilliseconds = 5_000
    private static let statementMilliseconds = 10_000
    /// An hour: there may be the cells of many segments to merge.
    private static let sealMilliseconds = 3_600_000

    /// - Parameters:
    ///   - database: The database, as libpq takes it; called for each session, and may block.
    ///   - spool: Whose unloaded part is published for the checks of others.
    ///   - ledger: What that part holds.
    package init(
        database: @escaping @Sendable () throws(PostgresError) -> String, spool: Spool,
        ledger: Ledger, registry: Registry
    ) {
        self.database = database
        self.spool = spool
        self.ledger = ledger
        specialUnits = registry.gauge(
            "tapline_special_units",
            "Units that reports compute from their events, as the database estimates")
        detachedPartitions = registry.counter(
            "tapline_partitions_detached_total",
            "Times that a partition of the event table was found detached")
        let oldest = self.oldestSpooled
        registry.gauge(
            "tapline_spool_oldest_unloaded_seconds", "Age of the oldest event not loaded yet"
        ) {
            guard let since = oldest.withLock({ $0 }) else { return 0 }
            return Double(max(0, Clock.now() - since)) / 1_000_000
        }
    }

    /// When the oldest body still spooled was received, as of a few seconds ago; nil when none is.
    package var oldestUnloaded: Microseconds? { oldestSpooled.withLock { $0 } }

    /// Starts the thread.
    package func start() {
        thread.withLock {
            $0 = Thread.start(name: "keeper", niceness: Thread.behindAnswers) { self.run() }
        }
    }

    /// Ends the thread after the step under way, and waits for it.
    package func stop() {
        isStopping.withLock { $0 = true }
        isStopping.broadcast()
        thread.withLock { $0 }?.join()
    }

    private func run() {
        var backoff = Backoff()
        while !isStopping.withLock({ $0 }) {
            do throws(LoadError) {
                try runSession { backoff.reset() }
            } catch {
                Log.debug("background work waits: \(error)")
            }
            pause(milliseconds: backoff.next())
        }
    }

    private func pause(milliseconds: Int) {
        _ = isStopping.wait(until: Clock.deadline(inMilliseconds: milliseconds)) { $0 ? true : nil }
    }

    private func runSession(onProgress: () -> Void) throws(LoadError) {
        var connection = try PostgresConnection.open(
            database: database, applicationName: "tapline keep",
            settings: "SET jit = off; SET work_mem = '64MB'; "
                + "SET maintenance_work_mem = '256MB'; SET lock_timeout = '10s'",
            statementMilliseconds: Self.statementMilliseconds)
        var nextPublication: Microseconds = 0
        var nextLook: Microseconds = 0
        var attachFailures = Repeated()
        while !isStopping.withLock({ $0 }) {
            if try Segments.hasClosing(connection) {
                try connection.limitStatements(milliseconds: Self.sealMilliseconds)
                try Segments.sealClosing(connection)
                try connection.limitStatements(milliseconds: Self.statementMilliseconds)
            }
            if Clock.monotonic() >= nextLook {
                try attachDetached(&connection, &attachFailures)
                nextLook = Clock.deadline(inMilliseconds: Self.publicationIntervalMilliseconds)
            }
            // Soon after the spool's first claim, for by this other daemons see that it is there.
            if Clock.monotonic() >= nextPublication, try publish(connection) {
                nextPublication = Clock.deadline(
                    inMilliseconds: Self.publicationIntervalMilliseconds)
            }
            onProgress()
            pause(milliseconds: Self.intervalMilliseconds)
        }
        try publish(connection)
    }

    /// Attaches partitions that somebody has detached; where that cannot be, all else goes on.
    private func attachDetached(
        _ connection: inout PostgresConnection, _ failures: inout Repeated
    ) throws(LoadError) {
        let detached = try Segments.detached(connection)
        guard let first = detached.first else { return }
        detachedPartitions.add(detached.count)
        // Each row of them is looked at.
        try connection.limitStatements(milliseconds: Self.sealMilliseconds)
        do throws(LoadError) {
            _ = try Segments.attachDetached(connection)
        } catch {
            let text = "could not attach partition tapline.event_\(first) again: \(error)"
            if failures.isNews(text) {
                Log.error(
                    text,
                    hint: "Reports and \"tapline check\" do not see its events. Run \"ALTER TABLE "
                        + "tapline.event ATTACH PARTITION tapline.event_\(first) FOR VALUES IN "
                        + "(\(first))\".")
            }
        }
        try connection.limitStatements(milliseconds: Self.statementMilliseconds)
    }

    /// Writes down what this daemon has still spooled, for the checks of other machines.
    ///
    /// - Returns: Whether this daemon's claim of the spool holds, so that there is a place for it.
    @discardableResult
    func publish(_ connection: borrowing PostgresConnection) throws(LoadError) -> Bool {
        // First, so that nothing is published under a claim that is younger than the figures.
        let claim = ledger.claim
        let (received, rejected) = ledger.unloaded
        let statistics = spool.statistics
        let oldest = try oldest(connection)
        oldestSpooled.withLock { $0 = oldest }
        let special = try connection.statement(
            """
            SELECT greatest(reltuples, 0)::bigint FROM pg_class
            WHERE oid = 'tapline.special_unit'::regclass
            """)
        specialUnits.set(Double(special.int64(0, 0) ?? 0))
        // Nothing under an id that is somebody else's, or that the spool has no longer.
        guard let claim else { return false }
        return try connection.statement(
            """
            UPDATE tapline.spool SET published_at = clock_timestamp(), published_received = $2,
                published_rejected = $3, published_spooled = $4, published_quarantined = $5,
                published_oldest = $6
            WHERE id = $1 AND epoch = $7
            """,
            [
                .uuid(claim.spool.bytes), .int64(received), .int64(rejected),
                .int64(received - rejected), .int64(Int64(statistics.quarantinedRecords)),
                oldest.map { .timestamp($0) } ?? .null, .uuid(claim.epoch.bytes),
            ]
        ).affectedRows > 0
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
}
