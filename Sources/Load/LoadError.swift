import Postgres
import Spool

/// Why a batch is not stored; it stays in the spool in every case.
package enum LoadError: Error, Equatable, Sendable {
    /// The database refused, or could not be reached.
    case postgres(PostgresError)
    /// Another session has claimed this spool's checkpoint.
    case fenced
    /// The checkpoint is ahead of the spool, of another lineage, or missing though some was loaded.
    case otherHistory
    /// Another daemon loads a spool with this id.
    case spoolIsLoadedElsewhere(SpoolID)
    /// Every row of a batch is refused, so it is not a row's fault.
    case everyRowFails(PostgresError)
    /// Somebody else took dead letters away while they were replayed; nothing is changed.
    case deadLettersChanged
    /// Another erase or retention is under way.
    case removalIsRunning
    /// The schema is not as this version needs it.
    case schema(String)
    /// The spool could not be read.
    case spool(SpoolError)
    /// A record with a right checksum has a content that this version does not know.
    case unreadable(SpoolMark)

    /// Whether a row may be at fault, so that a search for it makes sense.
    var blamesARow: Bool {
        if case .postgres(.refused(let report)) = self { return Self.blamesARow(report) }
        return false
    }

    /// See ``blamesARow``.
    static func blamesARow(_ report: ServerReport) -> Bool {
        PostgresError.refused(report).errorClass == .isolateRow
    }
}

extension LoadError: CustomStringConvertible {
    /// One line in lower case without a period.
    package var description: String {
        switch self {
        case .postgres(let error): error.description
        case .otherHistory: "the database does not have the history of this spool"
        case .fenced: "another session has claimed the checkpoint of this spool"
        case .spoolIsLoadedElsewhere(let id): "another daemon loads spool \(id)"
        case .everyRowFails(let error): "every row of the batch is refused: \(error)"
        case .deadLettersChanged: "dead letters were taken away while they were replayed"
        case .removalIsRunning: "another erase or retention is under way"
        case .schema(let what): what
        case .spool(let error): "\(error)"
        case .unreadable(let mark):
            "record before offset \(mark.offset) of spool segment \(mark.segment) cannot be read"
        }
    }

    /// A full sentence on what to do, for faults that a person has to mend.
    package var hint: String? {
        switch self {
        case .postgres(let error): error.hint
        case .otherHistory:
            "The machine was cloned, or the database restored or replaced: start the daemon, which "
                + "loads again all that its spool keeps."
        case .fenced, .spoolIsLoadedElsewhere:
            "Two machines run with a copy of one spool: stop one, or give it an empty data directory."
        case .everyRowFails:
            "Look for a constraint, a trigger or a changed column of table tapline.event."
        case .deadLettersChanged: "Look what is left: \"tapline dlq list\"."
        case .removalIsRunning: "Wait until it has ended, then run this again."
        case .schema: "Run \"tapline migrate\"."
        case .spool: nil
        case .unreadable: "It was written by another version: start that one to load it."
        }
    }
}
