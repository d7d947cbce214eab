import Event
import Postgres
import Spool

/// Dead letters that are tried once more: a load transaction like any other, but what it takes away
/// is not in a spool, it is rows of `tapline.dead_letter`.
extension LoadSession {
    /// Notes why a dead letter was refused this time.
    ///
    /// - Throws: ``LoadError/deadLettersChanged`` when it is not there any more.
    func refuseAgain(_ letter: Int64, _ report: ServerReport) throws(LoadError) {
        let noted = try connection.statement(
            "UPDATE tapline.dead_letter SET sqlstate = $2, reason = $3 WHERE id = $1",
            [.int64(letter), .text(report.sqlstate), .text(report.message)])
        guard noted.affectedRows == 1 else { throw .deadLettersChanged }
    }

    /// Takes away the dead letters of a batch that have another verdict now, in its transaction.
    ///
    /// - Throws: ``LoadError/deadLettersChanged`` when one of them is not there any more: then it is
    ///   counted elsewhere, and must not be stored.
    func settleLetters(
        _ batch: borrowing LoadBatch, _ verdicts: [StoredVerdict]
    ) throws(LoadError) {
        guard batch.isReplay else { return }
        var settled: [Int64] = []
        for (letter, verdict) in zip(batch.letters, verdicts) where verdict != .deadLettered {
            settled.append(letter)
        }
        let gone = try connection.statement(
            "DELETE FROM tapline.dead_letter WHERE id = ANY ($1)", [.int64Array(settled)])
        guard gone.affectedRows == settled.count else { throw .deadLettersChanged }
    }
}

extension LoadSession {
    /// A session whose rows come from elsewhere than a daemon's spool; one at a time.
    ///
    /// - Throws: ``LoadError/spoolIsLoadedElsewhere(_:)`` while there is another.
    static func ofReplay(
        _ database: @escaping () throws(PostgresError) -> String, _ settings: LoadSettings
    ) throws(LoadError) -> LoadSession {
        var session = try LoadSession(
            database: database, spoolID: .replay, picture: Picture(), settings: settings)
        _ = try session.claim()
        try session.readAll()
        return session
    }

    /// Looks how many rows are lost, which takes a look at all events.
    mutating func countLostRows() throws(LoadError) {
        // What is detached is not lost.
        _ = try Segments.attachDetached(connection)
        lostRows = try Books.lostRows(connection)
        guard lostRows > 0 else { return }
        // Files of identities may still say of them that they are stored, and what daemons know of the open
        // segment, too.
        _ = try connection.statement(
            """
            BEGIN;
            UPDATE tapline.turn SET generation = generation + 1;
            UPDATE tapline.segment SET closing = NULL;
            COMMIT
            """)
    }
}

extension SpoolID {
    /// Where replays are counted: a row of `tapline.spool` that is of no daemon.
    package static let replay = SpoolID(bytes: [UInt8](repeating: 0, count: 16))
}

/// Brings dead letters into the tables, beside the daemons of the database and in one order with them.
///
/// Each call is one transaction: it holds the new verdict of each letter, its row, and that the letter
/// is gone. So a replay that is killed has done all of a part or nothing of it.
package final class DeadLetterReplay {
    /// One dead letter.
    package struct Item: Sendable {
        package let id: Int64
        /// A ``BodyRecord`` of its one row.
        package let payload: [UInt8]

        package init(id: Int64, payload: [UInt8]) {
            self.id = id
            self.payload = payload
        }
    }

    private var session: LoadSession

    /// Connects, and keeps other replays out for as long as this value lives.
    ///
    /// - Throws: ``LoadError/spoolIsLoadedElsewhere(_:)`` while another replay runs.
    package init(
        database: @escaping () throws(PostgresError) -> String
    ) throws(LoadError) {
        session = try LoadSession.ofReplay(database, LoadSettings())
    }

    /// Loads some dead letters.
    ///
    /// - Returns: What became of each.
    /// - Throws: ``LoadError``; the value is of no further use then. Nothing is changed, unless the
    ///   connection was lost while committing: then what is gone has been loaded.
    package func load(_ items: [Item]) throws(LoadError) -> [StoredVerdict] {
        guard !items.isEmpty else { return [] }
        var batch = LoadBatch()
        for item in items {
            do throws(BodyRecord.Failure) {
                try batch.append(letter: item.id, payload: item.payload)
            } catch {
                preconditionFailure("a payload of this program cannot be read: \(error)")
            }
        }
        return try session.load(&batch)
    }
}
