import Event
import Load
import Platform
import Postgres
import Spool

/// How far a report's data reaches: until when everything received is in the database.
package enum DataThrough {
    /// The oldest time of receipt that is still spooled: here, as the spool itself says, elsewhere,
    /// as other daemons last published it.
    ///
    /// - Returns: Microseconds since 1970 UTC; nil when nothing is spooled.
    package static func oldestSpooled(
        _ connection: borrowing PostgresConnection, dataDirectory: String
    ) throws(LoadError) -> Microseconds? {
        let directory = dataDirectory + "/spool"
        let own = (try? SpoolFiles.identity(directory: directory)) ?? nil
        let (published, checkpoint) = try Books.oldestSpooled(connection, except: own?.id)
        guard own != nil else { return published }
        // A spool that cannot be read is what `tapline check` is for.
        guard let first = (try? SpoolFiles.first(directory: directory, from: checkpoint)) ?? nil,
            let body = try? BodyRecord(payload: first.payload)
        else { return published }
        return min(body.receivedAt, published ?? body.receivedAt)
    }
}
