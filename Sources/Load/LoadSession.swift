import Event
import Platform
import Postgres
import Spool

/// One connection's hold on the load of one spool: from the claim of its checkpoint to the first
/// error, after which a new session starts from what the database says.
///
/// A load transaction, in order:
/// 1. lock the `turn` row, which puts the load transactions of all daemons into one order;
/// 2. read what other daemons appended since this session's newest batch, of which most was read while
///    waiting for the turn;
/// 3. decide each row: exact keys, then filters, then probes of the closed segments;
/// 4. write what the new rows say of devices, and give rows what was known of theirs;
/// 5. COPY the new rows; conflicts and dead letters, which are rare;
/// 6. fold the new rows into their units, and write what that changes in the cells;
/// 7. make anonymous what is of an erased device or person, if any was since the events came;
/// 8. counters, checkpoint and turn, and COMMIT.
struct LoadSession: ~Copyable {
    var connection: PostgresConnection
    /// A second connection, to read by while the first waits for the turn; made when it is needed.
    var spare: PostgresConnection?
    let picture: Picture
    let spoolID: SpoolID
    let segmentRowsMax: Int
    /// The bound of each statement, but for those of transactions that lift it.
    let statementMilliseconds: Int
    let heavyUnitEvents: Int
    let alwaysWritesNews: Bool
    /// Makes the spare connection.
    let connectSpare: () throws(LoadError) -> PostgresConnection
    /// Whether other daemons were seen in the newest turn.
    var seesOthers = false
    /// Memory for what is written for other daemons: of a full batch there are 5 MB.
    var newsBuffer: [UInt8] = []
    /// Written into the checkpoint row by this session; another value there fences it out.
    let epoch: SpoolID
    /// What the database had counted of the spool when it was claimed.
    var claimed = Books()
    /// Where this session's newest rows are, or an earlier page: its next ones may follow there.
    var lastPage: (segment: Int, block: Int64)?
    /// The statements that are planned on the connection, by name, and on the spare one.
    var prepared: Set<String> = []
    var sparePrepared: Set<String> = []
    /// A row that this session has stored, as it was spooled; see ``takesProvenRow(_:)``.
    var provenRow: [UInt8] = []
    /// Rows that are counted as stored and are in no table, which a replay of the spool brings back.
    var lostRows: Int64 = 0

    /// Stores a batch, or nothing of it.
    ///
    /// - Returns: What became of each row.
    /// - Throws: ``LoadError``. After a connection lost while committing only the checkpoint tells
    ///   whether the batch is stored.
    mutating func load(_ batch: inout LoadBatch) throws(LoadError) -> [StoredVerdict] {
        do throws(LoadError) {
            return try attempt(&batch, isolatingRows: false)
        } catch {
            rollback()
            guard error.blamesARow else { throw error }
        }
        do throws(LoadError) {
            return try attempt(&batch, isolatingRows: true)
        } catch {
            rollback()
            throw error
        }
    }

    /// Ends a failed transaction; a failure to do so means a lost connection, which ends it too.
    mutating func rollback() {
        do throws(PostgresError) { try connection.execute("ROLLBACK") } catch {}
    }

    private mutating func attempt(
        _ batch: inout LoadBatch, isolatingRows: Bool
    ) throws(LoadError) -> [StoredVerdict] {
        var turn = try takeTurn()
        if turn.lacksPartition {
            // Repeats are found without a look at their partition, so nothing else would tell.
            rollback()
            try Segments.mend(connection)
            turn = try takeTurn()
        }
        try catchUp(with: turn)
        // From its first change on the open segment is ahead of the database: it comes back only when
        // that has committed. After a failure before, it is as good as it was.
        guard let box = picture.takeOpen() else { throw .schema("no segment is open") }
        try fold(box.segment.unfolded.take(for: batch.events), into: &box.segment)
        let early = batch.inquiry.take()
        var stored: Stored
        do throws(LoadError) {
            stored = try decide(&batch, early, isolatingRows: isolatingRows, turn, box.segment)
        } catch {
            picture.putOpen(box)
            throw error
        }
        batch.press(picture.buttons)
        var fold = Fold(isWriting: true, testDevices: picture.testDevices)
        if turn.hasOthers || alwaysWritesNews {
            fold.news = BatchNews(capacity: batch.count, reusing: &newsBuffer)
        }
        var labels = BatchLabelMap(batch)
        if isolatingRows {
            for row in 0..<batch.count where stored.decision.verdicts[row] == .stored {
                box.add(row, of: batch, &labels, &stored.older, &fold)
            }
        } else {
            // While the server takes the rows that were sent, the ones that follow are folded.
            try copy(batch, rows: 0..<batch.count, stored.decision, turn) { row in
                box.add(row, of: batch, &labels, &stored.older, &fold)
            }
        }
        let verdicts = stored.decision.verdicts
        try write(&fold, &box.segment, turn)
        try eraseLoaded(batch, verdicts, turn)
        try commit(batch, verdicts, turn)
        picture.putOpen(box)
        picture.batch = turn.batch
        picture.storedAt = turn.storedAt
        if let row = verdicts.firstIndex(of: .stored) {
            provenRow = unsafe batch.bytes(row).withUnsafeBytes { unsafe [UInt8]($0) }
        }
        return verdicts
    }

    /// What became of each row, and what was found out on the way.
    private struct Stored: ~Copyable {
        var older: OlderUnits
        var decision: Decision
    }

    /// Decides each row, writes down the conflicts and what is said of devices, and gives rows what was
    /// known of theirs; the picture of the open segment stays as it is.
    ///
    /// - Parameters:
    ///   - early: What closed segments were asked about the batch before the turn.
    ///   - isolatingRows: Whether to store the rows too, and make dead letters of some.
    private mutating func decide(
        _ batch: inout LoadBatch, _ early: consuming Inquiry?, isolatingRows: Bool,
        _ turn: Turn, _ open: borrowing OpenSegment
    ) throws(LoadError) -> Stored {
        let older = try self.older(than: open, batch, early)
        var decision = Decision(batch, open, older)
        try writeDevices(batch, decision.verdicts, turn)
        try fillFromDevices(&batch, decision.verdicts)
        if isolatingRows {
            try copyIsolating(batch, &decision, turn)
            try forgetDevices(batch, decision.verdicts)
        }
        try markDevices(batch, decision.verdicts)
        try recordConflicts(batch, decision, turn)
        return Stored(older: older, decision: decision)
    }

    // MARK: COPY

    /// Sends the rows of `rows` that are to be stored to the open segment.
    ///
    /// - Parameter sent: Called with each of them.
    private mutating func copy(
        _ batch: borrowing LoadBatch, rows: Range<Int>, _ decision: borrowing Decision,
        _ turn: Turn, _ sent: (Int) -> Void = { _ in }
    ) throws(LoadError) {
        guard decision.verdicts[rows].contains(.stored) else { return }
        let head = Self.rowHead
        let tail = Self.rowTail(turn)
        let plain = tail + Self.notFilled
        do throws(PostgresError) {
            try connection.copyIn(Self.copyStatement(turn)) { writer throws(PostgresError) in
                try writer.writeBinaryHeader()
                try batch.forEach(rows) { row, bytes throws(PostgresError) in
                    guard decision.verdicts[row] == .stored else { return }
                    let fields = bytes.extracting(droppingFirst: 2)
                    let filled = batch.filledColumns(of: row)
                    if filled == 0 {
                        try writer.write(head.rawSpan, fields, plain.rawSpan)
                    } else {
                        let tail = tail + [0, 0, 0, 2, 0, filled]
                        try writer.write(head.rawSpan, fields, tail.rawSpan)
                    }
                    Failpoint.reach("load.copy")
                    sent(row)
                }
                try writer.writeBinaryTrailer()
            }
        } catch {
            throw .postgres(error)
        }
    }

    /// Stores what PostgreSQL takes and makes dead letters of the rows it refuses.
    ///
    /// - Throws: ``LoadError/everyRowFails(_:)`` when no row is stored, and one that was stored earlier
    ///   is refused now, too: then it is not a row's fault.
    private mutating func copyIsolating(
        _ batch: borrowing LoadBatch, _ decision: inout Decision, _ turn: Turn
    ) throws(LoadError) {
        var refused: [(row: Int, report: ServerReport)] = []
        var pending = [0..<batch.count]
        // A failed COPY gives up its lock: a constraint that is dropped in between must not make dead
        // letters of the rows that came before.
        _ = try connection.statement(
            "LOCK TABLE tapline.event_\(turn.segment) IN ROW EXCLUSIVE MODE")
        var copied = 0
        while let range = pending.popLast() {
            let count = decision.verdicts[range].count { $0 == .stored }
            guard count > 0 else { continue }
            _ = try connection.statement("SAVEPOINT part")
            do throws(LoadError) {
                try copy(batch, rows: range, decision, turn)
                _ = try connection.statement("RELEASE SAVEPOINT part")
                copied += count
            } catch .postgres(.refused(let report)) where LoadError.blamesARow(report) {
                _ = try connection.statement("ROLLBACK TO SAVEPOINT part")
                if count == 1 {
                    let row = range.first { decision.verdicts[$0] == .stored } ?? range.lowerBound
                    refused.append((row, report))
                } else {
                    let middle = range.lowerBound + range.count / 2
                    pending.append(middle..<range.upperBound)
                    pending.append(range.lowerBound..<middle)
                }
            }
        }
        // A dead letter that is refused again is where it was.
        if copied == 0, !batch.isReplay, let first = refused.first, try !takesProvenRow(turn) {
            throw .everyRowFails(.refused(first.report))
        }
        for (row, report) in refused {
            decision.deadLetter(row)
            try recordDeadLetter(batch, row, report, turn)
        }
    }
}
