import Event
import Platform
import Postgres

/// What a load transaction writes beside the rows: conflicts, dead letters, the books, and its end.
extension LoadSession {
    /// Keeps a row that PostgreSQL refused, with its reason.
    mutating func recordDeadLetter(
        _ batch: borrowing LoadBatch, _ row: Int, _ report: ServerReport, _ turn: Turn
    ) throws(LoadError) {
        if batch.isReplay { return try refuseAgain(batch.letters[row], report) }
        let event = StoredEvent(batch.row(row), batch.contents[row])
        _ = try connection.statement(
            """
            INSERT INTO tapline.dead_letter
                (key, app, sqlstate, reason, body, received_at, stored_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            """,
            [
                .uuid(event.key), .utf8(event.app), .text(report.sqlstate), .text(report.message),
                .utf8(event.body), .timestamp(event.receivedAt), .timestamp(turn.storedAt),
            ])
        Log.error(
            "event refused by the database, kept as a dead letter: \(report.message)",
            hint: "\"tapline dlq list\" shows it; mend the cause, then \"tapline dlq replay\".",
            ["sqlstate": report.sqlstate, "table": report.table ?? ""])
    }

    /// Keeps each conflicting event once with its body, and counts it.
    mutating func recordConflicts(
        _ batch: borrowing LoadBatch, _ decision: borrowing Decision, _ turn: Turn
    ) throws(LoadError) {
        for row in 0..<batch.count where decision.verdicts[row] == .conflict {
            let event = StoredEvent(batch.row(row), batch.contents[row])
            _ = try connection.statement(
                """
                INSERT INTO tapline.conflict (key, content, app, body, received_at, stored_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (key, content) DO UPDATE SET times = conflict.times + 1
                """,
                [
                    .uuid(event.key), .uuid(event.content), .utf8(event.app), .utf8(event.body),
                    .timestamp(event.receivedAt), .timestamp(turn.storedAt),
                ])
        }
    }

    /// Counts the verdicts, moves the checkpoint and the turn, and commits.
    ///
    /// - Throws: ``LoadError/fenced`` when another session has claimed the spool.
    mutating func commit(
        _ batch: borrowing LoadBatch, _ decided: [StoredVerdict], _ turn: Turn
    ) throws(LoadError) {
        guard let mark = batch.mark else { return }
        let verdicts = VerdictCounts(decided)
        // A dead letter was received once, and its old verdict makes way for the new one.
        let (received, rejected) = batch.isReplay ? (0, 0) : (batch.received, batch.rejected)
        let deadLettered = verdicts.deadLettered - batch.letters.count
        // A row that takes the place of one that was lost was received, and counted as stored, before.
        let returned = Int(min(lostRows, Int64(verdicts.stored)))
        let moved = try connection.statement(
            """
            UPDATE tapline.spool SET segment = $3, "offset" = $4, chain = $5,
                received = received + $6, rejected = rejected + $7, stored = stored + $8,
                duplicate = duplicate + $9, conflict = conflict + $10,
                dead_lettered = dead_lettered + $11
            WHERE id = $1 AND epoch = $2
            RETURNING \(Turn.blocks(of: "\(turn.segment)"))
            """,
            [
                .uuid(spoolID.bytes), .uuid(epoch.bytes), .int64(Int64(mark.segment)),
                .int64(Int64(mark.offset)), .int64(Int64(mark.chain)),
                .int64(Int64(received - returned)), .int64(Int64(rejected)),
                .int64(Int64(verdicts.stored - returned)), .int64(Int64(verdicts.duplicate)),
                .int64(Int64(verdicts.conflict)), .int64(Int64(deadLettered)),
            ])
        try settleLetters(batch, decided)
        guard let blocks = moved.rows == 1 ? moved.int64(0, 0) : nil else { throw .fenced }
        // PostgreSQL goes on in the page where this session's last COPY into the table ended, or
        // in the last page of the table.
        var firstBlock = max(0, turn.blocks - 1)
        if let last = lastPage, last.segment == turn.segment {
            firstBlock = min(firstBlock, last.block)
        }
        lastPage = (turn.segment, blocks > turn.blocks ? blocks - 1 : firstBlock)
        // Small rows may also go to holes in earlier pages, which the free space map knows of: as a
        // rule not far from the end. Who finds too few rows from there on reads the whole segment.
        firstBlock = max(0, firstBlock - 128)
        _ = try connection.statement(
            """
            WITH stamp AS (SELECT $2::timestamptz AS at),
            moved AS (
                UPDATE tapline.turn SET batch = $1, stored_at = stamp.at,
                    segment_rows = segment_rows + $4
                FROM stamp)
            INSERT INTO tapline.batch (batch, stored_at, spool, rows, segment, first_block)
            SELECT $1, stamp.at, $3, $4, $5, $6 FROM stamp
            """,
            [
                .int64(turn.batch), .timestamp(turn.storedAt), .uuid(spoolID.bytes),
                .int32(Int32(verdicts.stored)), .int32(Int32(turn.segment)), .int64(firstBlock),
            ])
        do throws(SystemError) {
            try Failpoint.attempt("load.commit.before", "")
        } catch {
            throw .spool(.failed(error))
        }
        try connection.statement("COMMIT") { Failpoint.reach("load.commit.sent") }
        lostRows -= Int64(returned)
    }
}

/// Verdicts counted.
package struct VerdictCounts: Equatable, Sendable {
    package var stored = 0
    package var duplicate = 0
    package var conflict = 0
    package var deadLettered = 0

    static func += (counts: inout VerdictCounts, more: VerdictCounts) {
        counts.stored += more.stored
        counts.duplicate += more.duplicate
        counts.conflict += more.conflict
        counts.deadLettered += more.deadLettered
    }

    init(_ verdicts: some Sequence<StoredVerdict>) {
        for verdict in verdicts {
            switch verdict {
            case .stored: stored += 1
            case .duplicate: duplicate += 1
            case .conflict: conflict += 1
            case .deadLettered: deadLettered += 1
            }
        }
    }
}
