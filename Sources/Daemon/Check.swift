import Event
import Load
import Postgres
import Spool

/// `tapline check`: are the books balanced?
package enum Check {
    /// Counts the tables again and reads the spool of the data directory from the checkpoint on.
    ///
    /// The tables, the counters and the checkpoint are read in one snapshot; what the spool holds
    /// after that checkpoint is spooled, whatever is loaded or received meanwhile.
    ///
    /// - Returns: The books, or why the spool cannot be read.
    /// - Throws: ``LoadError`` when the database does not answer.
    package static func run(
        _ connection: borrowing PostgresConnection, dataDirectory: String
    ) throws(LoadError) -> Result<CheckOutcome, SpoolError> {
        let directory = dataDirectory + "/spool"
        let own: SpoolID?
        do throws(SpoolError) {
            own = try SpoolFiles.identity(directory: directory)?.id
        } catch {
            return .failure(error)
        }
        let recount = try Books.recount(connection, ownSpool: own)
        var books = recount.books
        if own != nil {
            do throws(SpoolError) {
                try add(directory, from: recount.checkpoint, to: &books)
            } catch {
                return .failure(error)
            }
        }
        return .success(
            CheckOutcome(books: books, spools: recount.spools, detached: recount.detached))
    }

    /// Adds what the spool holds after a checkpoint.
    private static func add(
        _ directory: String, from checkpoint: SpoolMark?, to books: inout Books
    ) throws(SpoolError) {
        var received = 0
        var rejected = 0
        let count = { (record: SpoolRecord) in
            guard let body = try? BodyRecord(payload: record.payload) else { return }
            received += body.received
            rejected += body.rejected
        }
        let scan: SpoolFiles.Scan
        do throws(SpoolError) {
            scan = try SpoolFiles.scan(directory: directory, from: checkpoint, body: count)
        } catch .notThisSpool {
            // The loader will load it again from the oldest segment.
            scan = try SpoolFiles.scan(directory: directory, body: count)
        }
        // What cannot be read stays spooled, as many events as its record says.
        books.received += Int64(received + scan.quarantinedEvents)
        books.rejected += Int64(rejected)
        books.spooled += Int64(received - rejected + scan.quarantinedEvents)
        books.quarantined += Int64(scan.quarantinedRecords)
    }
}

/// The books with what is to be said of them.
package struct CheckOutcome: Sendable {
    /// The terms.
    package let books: Books
    /// The spools of other daemons: what they last said, and when.
    package let spools: [Books.OtherSpool]
    /// Segments whose partition is detached, so that their events are missing.
    package let detached: [Int]

    /// One JSON object on a line.
    ///
    /// - Parameter reports: JSON of what reports from sums and from events are; nil if nobody asked.
    package func json(reports: String? = nil) -> String {
        let others = spools.map {
            "{\"id\":\"\($0.id)\",\"spooled\":\($0.spooled),\"age_seconds\":\($0.ageSeconds.map { "\($0)" } ?? "null")}"
        }
        return "{" + books.terms.map { "\"\($0.name)\":\($0.value)," }.joined()
            + "\"removed\":\(books.removed),\"quarantined\":\(books.quarantined),\"difference\":\(books.difference),"
            + "\"other_spools\":[\(others.joined(separator: ","))],"
            + "\"detached_segments\":\(detached),"
            + "\"balanced\":\(books.isBalanced)"
            + (reports.map { ",\"reports\":\($0)" } ?? "") + "}\n"
    }

    /// For people.
    package var table: String {
        let width = books.terms.map { "\($0.value)".count }.max() ?? 1
        func line(_ sign: String, _ name: String, _ value: Int64) -> String {
            let digits = "\(value)"
            let padding = String(repeating: " ", count: width - digits.count)
            return "  \(sign) \(padding)\(digits)  \(name)\n"
        }
        var text = line(" ", "received", books.received)
        for (index, term) in books.terms.dropFirst().enumerated() {
            text += line(index == 0 ? "=" : "+", term.name, term.value)
        }
        if books.removed > 0 {
            text += "\(books.removed) of these were removed on purpose and stay counted\n"
        }
        for spool in spools {
            let age = spool.ageSeconds.map { "\($0) s ago" } ?? "never"
            text += "spool \(spool.id) of another daemon said \(spool.spooled) spooled, \(age)\n"
        }
        for segment in detached {
            text +=
                "partition tapline.event_\(segment) is detached, its events are not counted; "
                + "a daemon attaches it again\n"
        }
        if books.quarantined > 0 {
            text +=
                "NOT BALANCED: \(books.quarantined) spool records cannot be read "
                + "(see spool/quarantine)\n"
        } else if books.difference > 0 {
            text +=
                "NOT BALANCED: \(books.difference) events that were received are missing from the "
                + "tables\n"
        } else if books.difference < 0 {
            text +=
                "NOT BALANCED: \(-books.difference) events are there that were never received\n"
        } else {
            text += "the books balance\n"
        }
        return text
    }
}
