import Event
import Platform
import Postgres
import Spool
import Synchronization

/// The thread that brings the spool into the database: exactly once, for as long as it takes.
///
/// Nothing here is ever dropped: a batch stays in the spool until it is committed, and after every
/// error the loader goes on from the checkpoint that the database has.
package final class Loader: Sendable {
    private struct State {
        var isStopping = false
        var drainDeadline: Microseconds = 0
        /// That of the present session.
        var reader: BatchReader?
    }

    private let database: @Sendable () throws(PostgresError) -> String
    private let spool: Spool
    private let settings: LoadSettings
    private let metrics: LoadMetrics
    private let ledger: Ledger
    private let notifier: StoredNotifier
    private let identities: IdentityFiles?
    private let onClaim: @Sendable (SpoolMark?) -> Void
    private let onCommit: @Sendable () -> Void
    private let state = Sync.Monitor(State())
    private let thread = Sync.Monitor<Thread?>(nil)

    /// - Parameters:
    ///   - database: The database, as libpq takes it; called for each session, and may block while
    ///     the database starts.
    ///   - identities: Files of identities of closed segments; without, the database is asked for each repeat.
    ///   - onClaim: Called on the loader's thread with the checkpoint that each session starts from.
    ///   - onCommit: Called on the loader's thread after each committed batch.
    package init(
        database: @escaping @Sendable () throws(PostgresError) -> String, spool: Spool,
        settings: LoadSettings, metrics: LoadMetrics,
        ledger: Ledger, notifier: StoredNotifier, identities: IdentityFiles? = nil,
        onClaim: @escaping @Sendable (SpoolMark?) -> Void = { _ in },
        onCommit: @escaping @Sendable () -> Void = {}
    ) {
        self.database = database
        self.spool = spool
        self.settings = settings
        self.metrics = metrics
        self.ledger = ledger
        self.notifier = notifier
        self.identities = identities
        self.onClaim = onClaim
        self.onCommit = onCommit
    }

    /// Starts the thread.
    package func start() {
        thread.withLock {
            $0 = Thread.start(name: "loader", niceness: Thread.behindAnswers) { self.run() }
        }
    }

    /// Loads what is spooled for up to `drainSeconds`, then ends the thread and waits for it.
    package func stop(drainSeconds: Int) {
        let reader = state.withLock { state in
            state.isStopping = true
            state.drainDeadline = Clock.deadline(inMilliseconds: drainSeconds * 1000)
            return state.reader
        }
        state.broadcast()
        reader?.drain()
        thread.withLock { $0 }?.join()
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    var isOutOfTime: Bool {
        state.withLock { $0.isStopping && Clock.monotonic() >= $0.drainDeadline }
    }

    /// Rows of the next batch that are read while the present one is loaded.
    var rowsReadAhead: Int { state.withLock { $0.reader }?.rowsWaiting ?? 0 }

    // MARK: The thread

    private func run() {
        let picture = Picture(identities: identities)
        var backoff = Backoff()
        var isNewID = false
        while !isOutOfTime {
            do throws(LoadError) {
                try runSession(picture, &isNewID) { backoff.reset() }
                return  // Stopping, and the spool is loaded.
            } catch .otherHistory {
                metrics.noteFailure(.otherHistory)
                isNewID = takeNewID()
            } catch {
                metrics.noteFailure(error)
                backoff.report(error)
                notifier.expire()
                if isStopping { return }
                pause(milliseconds: backoff.next())
            }
        }
    }

    /// Waits, unless the loader has run out of time; those whose time is over are let go meanwhile.
    private func pause(milliseconds: Int) {
        let deadline = Clock.deadline(inMilliseconds: milliseconds)
        repeat {
            notifier.expire()
            let slice = min(deadline, Clock.deadline(inMilliseconds: 250))
            let isOver = state.wait(until: slice) { state in
                state.isStopping && Clock.monotonic() >= state.drainDeadline ? true : nil
            }
            if isOver != nil { return }
        } while Clock.monotonic() < deadline
    }

    /// Loads until stopped, or until the first error.
    ///
    /// - Parameter isNewID: Whether nothing was loaded yet under the id that the spool has now.
    private func runSession(
        _ picture: Picture, _ isNewID: inout Bool, onProgress: () -> Void
    ) throws(LoadError) {
        var session = try LoadSession(
            database: database, spoolID: spool.id, picture: picture, settings: settings)
        let checkpoint = try session.claim()
        // The database knows less of the spool than was loaded once: it is restored, or another one.
        let isOlder = !isNewID && checkpoint?.segment ?? 0 < spool.loadedEnd.segment
        if isOlder, checkpoint == nil {
            try session.disclaim()
            throw .otherHistory
        }
        let reader: BatchReader
        do throws(LoadError) {
            reader = try startReader(from: checkpoint, asking: picture.closed)
        } catch .otherHistory {
            if isOlder { try session.disclaim() }
            throw .otherHistory
        } catch {
            // What cannot be read waits, and others are told of it.
            ledger.claim = (spool.id, session.epoch)
            throw error
        }
        // Not before: what another history has counted is not of this spool.
        ledger.setLoaded(session.claimed, of: spool.id)
        ledger.claim = (spool.id, session.epoch)
        // Whatever it has read ahead is read again by the next session, from the checkpoint on.
        defer { endReader(reader) }
        onClaim(checkpoint)
        var released = checkpoint
        var nextRelease: Microseconds = 0
        var nextMarks: Microseconds = 0
        metrics.databaseUp.set(1)
        var batch = LoadBatch()
        while !isOutOfTime {
            guard try reader.take(&batch) else { return }
            notifier.expire()
            guard let mark = batch.mark else {
                onProgress()
                if let released, Clock.monotonic() >= nextRelease {
                    // Loaded segments grow old while nothing is loaded, too.
                    spool.released(upTo: released)
                    nextRelease = Clock.deadline(inMilliseconds: 60_000)
                }
                try session.keepAlive()
                if Clock.monotonic() >= nextMarks {
                    try session.applyMarks()
                    nextMarks = Clock.deadline(inMilliseconds: 1_000)
                }
                continue
            }
            let started = Clock.monotonic()
            let verdicts = try session.load(&batch)
            Failpoint.reach("load.commit.after")
            spool.released(upTo: mark)
            released = mark
            isNewID = false
            metrics.batches.add()
            metrics.batchSeconds.observe(Double(Clock.monotonic() - started) / 1_000_000)
            ledger.noteLoaded(
                VerdictCounts(verdicts), received: batch.received, rejected: batch.rejected)
            metrics.noteConflicts(verdicts, of: batch)
            publish(verdicts, of: batch)
            onProgress()
            onCommit()
            let closing = Clock.monotonic()
            if try session.closeSegmentIfFull() {
                metrics.closeSeconds.observe(Double(Clock.monotonic() - closing) / 1_000_000)
            }
            if Clock.monotonic() >= nextMarks {
                try session.applyMarks()
                nextMarks = Clock.deadline(inMilliseconds: 1_000)
            }
        }
    }

    private func publish(_ verdicts: [StoredVerdict], of batch: borrowing LoadBatch) {
        guard notifier.isAwaited else { return }
        for record in batch.records {
            notifier.publish(VerdictCounts(verdicts[record.rows]), for: record.mark)
        }
    }

    // MARK: The checkpoint

    /// Starts a reader from the checkpoint on; ``endReader(_:)`` ends it.
    ///
    /// - Throws: ``LoadError/otherHistory`` when the checkpoint is not of this spool's history.
    private func startReader(
        from checkpoint: SpoolMark?, asking closed: ClosedSegments
    ) throws(LoadError) -> BatchReader {
        let reader = try BatchReader(
            spool, from: checkpoint, settings: settings, metrics: metrics
        ) { [database, settings] in
            LookAhead(closed) { () throws(LoadError) in
                try LoadSession.connect(database, settings, "tapline ahead")
            }
        }
        let isStopping = state.withLock { state in
            state.reader = reader
            return state.isStopping
        }
        if isStopping { reader.drain() }
        return reader
    }

    private func endReader(_ reader: BatchReader) {
        state.withLock { $0.reader = nil }
        reader.end()
    }

    /// Goes on under a new id, from the oldest segment: the old id's checkpoint is somebody else's, or is
    /// missing though some was loaded.
    ///
    /// - Returns: Whether it has one.
    private func takeNewID() -> Bool {
        Log.error(
            "the database does not have the history of spool \(spool.id), "
                + "loading again from the oldest segment under a new id",
            hint: "The machine was cloned, or the database restored or replaced. All that the "
                + "spool keeps is loaded again; what is stored already counts as a duplicate.")
        do throws(SpoolError) {
            try spool.resetID()
            return true
        } catch {
            Log.error("could not give the spool a new id: \(error)")
            pause(milliseconds: 1_000)
            return false
        }
    }
}
