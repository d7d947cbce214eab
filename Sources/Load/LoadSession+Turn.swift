import Platform
import Postgres

/// The order of the load transactions of all daemons.
extension LoadSession {
    /// The place of a load transaction in the order of all of them.
    struct Turn {
        /// This transaction's batch number, and the newest one committed before it.
        let batch: Int64
        var previous: Int64 { batch - 1 }
        /// Microseconds since 1970 UTC; later than that of every earlier batch.
        let storedAt: Int64
        /// The open segment and the rows it holds.
        let segment: Int
        let segmentRows: Int
        /// When the batch before it was stored.
        let previousStoredAt: Int64
        /// The size of the open segment in blocks before this transaction.
        let blocks: Int64
        /// Whether the database does not have the batch that the picture was of when this asked for the
        /// turn, or has another one by its number.
        let isOtherHistory: Bool
        /// See ``Picture/generation``.
        let generation: Int64
        /// Whether other daemons load into this database, or have just done so.
        let hasOthers: Bool
        /// Whether a partition is gone: then its rows are, and what is known of them here is not so.
        let lacksPartition: Bool
        /// When a device or person was last erased; nil if none ever was.
        let erasedUntil: Int64?

        /// SQL for the size of a segment in blocks.
        static func blocks(of segment: String) -> String {
            "pg_relation_size(format('tapline.event_%s', \(segment))::regclass)"
                + " / current_setting('block_size')::bigint"
        }
    }

    /// How long to wait for the turn before looking again what others have committed.
    private static let lookMilliseconds = 50

    /// Begins a transaction and waits for the turn.
    ///
    /// What others commit meanwhile is read as it comes, so that little is left to read within the turn.
    mutating func takeTurn() throws(LoadError) -> Turn {
        try begin("BEGIN", lock: "FOR UPDATE")
    }

    /// Reads everything as of one moment, without the turn: others load meanwhile, and what they do is
    /// all that is left to read within it.
    mutating func readAll() throws(LoadError) {
        do throws(LoadError) {
            try catchUp(with: try begin("BEGIN ISOLATION LEVEL REPEATABLE READ", lock: ""))
            _ = try connection.statement("COMMIT")
        } catch {
            rollback()
            throw error
        }
    }

    private mutating func begin(_ begin: String, lock: String) throws(LoadError) -> Turn {
        let known = (batch: picture.batch, storedAt: picture.storedAt)
        do throws(PostgresError) {
            try connection.send(
                """
                \(begin);
                SELECT batch + 1,
                    (extract(epoch FROM greatest(clock_timestamp(),
                        stored_at + interval '1 microsecond')) * 1000000)::bigint,
                    segment, segment_rows,
                    (extract(epoch FROM stored_at) * 1000000)::bigint,
                    \(Turn.blocks(of: "segment")),
                    (SELECT (extract(epoch FROM stored_at) * 1000000)::bigint
                        FROM tapline.batch WHERE batch = \(known.batch)),
                    generation,
                    EXISTS (SELECT FROM tapline.spool WHERE id <> '\(spoolID)'
                        AND published_at > clock_timestamp() - interval '1 minute'),
                    (extract(epoch FROM erased_until) * 1000000)::bigint,
                    \(Segments.isAnyMissing)
                FROM tapline.turn \(lock)
                """)
            var canReadAhead = true
            let deadline = connection.silenceDeadline
            while try !connection.hasAnswer(withinMilliseconds: Self.lookMilliseconds) {
                guard Clock.monotonic() < deadline else { throw connection.giveUp() }
                if canReadAhead { canReadAhead = readAhead() }
            }
            let result = try connection.answer()
            guard result.rows == 1 else { throw .misuse("table tapline.turn has no row") }
            seesOthers = result.bool(0, 8) ?? true
            return Turn(
                batch: result.int64(0, 0) ?? 0, storedAt: result.int64(0, 1) ?? 0,
                segment: Int(result.int64(0, 2) ?? 0), segmentRows: Int(result.int64(0, 3) ?? 0),
                previousStoredAt: result.int64(0, 4) ?? 0, blocks: result.int64(0, 5) ?? 0,
                isOtherHistory: known.batch > 0 && result.int64(0, 6) != known.storedAt,
                generation: result.int64(0, 7) ?? 0, hasOthers: seesOthers,
                lacksPartition: result.bool(0, 10) ?? true, erasedUntil: result.int64(0, 9))
        } catch {
            throw .postgres(error)
        }
    }

    /// Brings the picture forward by what others have committed, over the spare connection.
    ///
    /// Nothing hangs on it: what it leaves is read within the turn.
    ///
    /// - Returns: Whether it may be of use to call it again before that.
    @discardableResult
    mutating func readAhead() -> Bool {
        guard seesOthers || alwaysWritesNews, picture.openNumber != nil else { return false }
        do throws(LoadError) {
            if spare == nil {
                spare = try connectSpare()
                sparePrepared = []
            }
            swapConnections()
            defer { swapConnections() }
            return try catchUpAhead()
        } catch {
            Log.debug("cannot read what other daemons load before the turn: \(error)")
            spare = nil
            return false
        }
    }

    /// Lets all methods use the other connection.
    private mutating func swapConnections() {
        guard var other = spare.take() else { return }
        swap(&connection, &other)
        swap(&prepared, &sparePrepared)
        spare = consume other
    }
}
