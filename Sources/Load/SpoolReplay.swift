import Event
import Postgres
import Spool

/// Why a spool cannot be replayed.
package enum SpoolReplayError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The directory has no spool.
    case noSpool(directory: String)
    /// The database knows nothing of this spool, so its daemon loads all of it without being asked.
    case nothingIsLoaded(SpoolID)
    /// The segment to begin with is not there, or not loaded yet; these are.
    case notKept(UInt64, kept: ClosedRange<UInt64>?)
    case load(LoadError)

    package var description: String {
        switch self {
        case .noSpool(let directory): "there is no spool in \"\(directory)\""
        case .nothingIsLoaded(let id): "nothing of spool \(id) is loaded into this database yet"
        case .notKept(let segment, let kept?):
            "loaded segment \(segment) is not kept; kept are \(kept.lowerBound) to \(kept.upperBound)"
        case .notKept(let segment, nil): "loaded segment \(segment) is not kept; none is"
        case .load(let error): "\(error)"
        }
    }

    /// A full sentence on what to do.
    package var hint: String? {
        switch self {
        case .noSpool: "Name the daemon's data directory with --data-dir."
        case .nothingIsLoaded: "Start its daemon: it loads everything that is in the spool."
        case .notKept: "How long loaded segments are kept is the setting spool.keep."
        case .load(let error): error.hint
        }
    }
}

/// Loads once more what a spool still holds of what was loaded: `tapline replay`.
///
/// It is a loader of its own beside the daemons, in one order with them, whose rows come from files that
/// the daemon has done with. So it needs none and harms none. Each line counts as received once more, and
/// has a verdict: what is stored is a duplicate. One whose row was lost is counted already, and its row takes
/// the place of that one. What is not loaded yet is left to the daemon.
package enum SpoolReplay {
    /// What was replayed, and what became of it.
    package struct Outcome: Equatable, Sendable {
        /// From the first to the last segment.
        package var segments: ClosedRange<UInt64>
        package var records = 0
        /// Lines, and those of them that were rejected when they came.
        package var received = 0
        package var rejected = 0
        package var verdicts = VerdictCounts([])
        /// Records that cannot be read: damaged, or of another version.
        package var unreadable = 0
        /// The damaged ones of them by segment; a segment of which nothing can be read counts as one.
        package var damaged: [UInt64: Int] = [:]
        /// Whether the spool has more, which is not loaded yet and so is the daemon's.
        package var isMoreSpooled = false

        fileprivate mutating func addDamage(_ segment: UInt64, _ records: Int) {
            unreadable += records
            damaged[segment, default: 0] += records
        }
    }

    /// Replays.
    ///
    /// - Parameters:
    ///   - database: The database, as libpq takes it.
    ///   - directory: The spool.
    ///   - first: The segment to begin with; nil for the oldest that is kept.
    ///   - progress: Called after each committed batch.
    /// - Throws: ``SpoolReplayError``; what was committed by then stays, and is a duplicate next time.
    package static func run(
        database: @escaping () throws(PostgresError) -> String, directory: String,
        from first: UInt64?, settings: LoadSettings = LoadSettings(),
        progress: (Outcome) -> Void = { _ in }
    ) throws(SpoolReplayError) -> Outcome {
        let (own, numbers) = try look(directory)
        guard let checkpoint = try checkpoint(database, own) else { throw .nothingIsLoaded(own) }
        let loaded = numbers.filter { $0 <= checkpoint.segment }
        guard let oldest = loaded.first, let newest = loaded.last else {
            throw .notKept(first ?? checkpoint.segment, kept: nil)
        }
        if let first, !loaded.contains(first) { throw .notKept(first, kept: oldest...newest) }
        var outcome = Outcome(segments: (first ?? oldest)...newest)
        outcome.isMoreSpooled = numbers.contains { $0 > checkpoint.segment }
        do throws(LoadError) {
            var run = try ReplayRun(database, directory, settings)
            try run.begin()
            for segment in loaded where segment >= outcome.segments.lowerBound {
                try run.load(segment, upTo: checkpoint, &outcome, progress)
            }
            try run.flush(&outcome, progress)
        } catch {
            throw .load(error)
        }
        return outcome
    }

    /// Who the spool is, and its segments.
    private static func look(
        _ directory: String
    ) throws(SpoolReplayError) -> (SpoolID, [UInt64]) {
        let own: SpoolID?
        let numbers: [UInt64]
        do throws(SpoolError) {
            own = try SpoolFiles.identity(directory: directory)?.id
            numbers = own == nil ? [] : try SpoolFiles.segments(directory: directory)
        } catch {
            throw .load(.spool(error))
        }
        guard let own else { throw .noSpool(directory: directory) }
        return (own, numbers)
    }

    /// How far the database has it.
    private static func checkpoint(
        _ database: () throws(PostgresError) -> String, _ own: SpoolID
    ) throws(SpoolReplayError) -> SpoolMark? {
        do throws(LoadError) {
            let connection = try PostgresConnection.open(
                database: database, applicationName: "tapline replay", settings: "")
            return try Books.checkpoint(connection, of: own)
        } catch {
            throw .load(error)
        }
    }
}

/// A loader's session, and what it loads next.
private struct ReplayRun: ~Copyable {
    private var session: LoadSession
    private var batch = LoadBatch()
    private let directory: String
    private let batchRowsMax: Int

    init(
        _ database: @escaping () throws(PostgresError) -> String, _ directory: String,
        _ settings: LoadSettings
    ) throws(LoadError) {
        session = try LoadSession.ofReplay(database, settings)
        self.directory = directory
        batchRowsMax = settings.batchRowsMax
    }

    /// Looks at what is lost, now that no other replay brings any of it back.
    mutating func begin() throws(LoadError) { try session.countLostRows() }

    /// Loads the records of a segment that are not after `checkpoint`; the last ones are left in the
    /// batch.
    mutating func load(
        _ segment: UInt64, upTo checkpoint: SpoolMark, _ outcome: inout SpoolReplay.Outcome,
        _ progress: (SpoolReplay.Outcome) -> Void
    ) throws(LoadError) {
        guard var records = try open(segment, &outcome) else { return }
        while let step = try next(&records) {
            let record: SpoolRecord
            switch step {
            case .record(let found): record = found
            case .damage(let offset, let count):
                // After the checkpoint it is the daemon's, which may be writing there.
                if segment < checkpoint.segment || offset < checkpoint.offset {
                    outcome.addDamage(segment, count)
                }
                continue
            }
            guard record.mark <= checkpoint else {
                outcome.isMoreSpooled = true
                return
            }
            do throws(BodyRecord.Failure) {
                try batch.append(record)
                outcome.records += 1
            } catch {
                outcome.unreadable += 1
            }
            if batch.count >= batchRowsMax { try flush(&outcome, progress) }
        }
    }

    /// Loads what is in the batch.
    mutating func flush(
        _ outcome: inout SpoolReplay.Outcome, _ progress: (SpoolReplay.Outcome) -> Void
    ) throws(LoadError) {
        guard !batch.isEmpty else { return }
        outcome.verdicts += VerdictCounts(try session.load(&batch))
        outcome.received += batch.received
        outcome.rejected += batch.rejected
        batch.removeAll()
        progress(outcome)
        try session.closeSegmentIfFull()
    }

    /// - Returns: Nil when a daemon has deleted it since it was listed, or nothing of it can be read.
    private func open(
        _ segment: UInt64, _ outcome: inout SpoolReplay.Outcome
    ) throws(LoadError) -> SegmentRecords? {
        do throws(SpoolError) {
            return try SegmentRecords.open(directory: directory, segment: segment)
        } catch .unreadable {
            outcome.addDamage(segment, 1)
            return nil
        } catch {
            throw .spool(error)
        }
    }

    private func next(
        _ records: inout SegmentRecords
    ) throws(LoadError) -> SegmentRecords.Step? {
        do throws(SpoolError) {
            return try records.next()
        } catch {
            throw .spool(error)
        }
    }
}
