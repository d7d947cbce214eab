import Event
import Load
import Spool

/// Everything that is known of the events and messages under one id.
package struct Explanation: Sendable {
    /// The id as it was looked for.
    package let uid: String
    /// Its events, by time.
    package var events: [EventStory] = []
    /// The units of their messages, and of those that inbox events join to them.
    package var units: [UnitStory] = []
    /// What was not looked at, or could not be.
    package var notes: [String] = []

    package init(uid: String) { self.uid = uid }
}

/// The life of one event, or what is left of it.
package struct EventStory: Sendable {
    /// A body that it came in: a record of this machine's spool.
    package struct Arrival: Sendable {
        package let spool: String
        /// The position after the record.
        package let mark: SpoolMark
        /// Microseconds since 1970 UTC.
        package let receivedAt: Int64
        /// Lines of the body, and those of them that were rejected.
        package let lines: Int
        package let rejected: Int
        package let isLoaded: Bool
        /// How many of the lines are this event.
        package var times = 1
    }

    /// Its row in the database.
    package struct Stored: Sendable {
        package let batch: Int64
        /// When the batch was committed, in microseconds since 1970 UTC; nil where that is not kept.
        package let storedAt: Int64?
        /// The spool it was loaded from; nil for replayed dead letters.
        package let spool: String?
        /// The number and the state of the segment of the event table.
        package let segment: Int64
        package let segmentState: String
        /// PostgreSQL's id of the load transaction, and where in the segment the row is.
        package let transaction: String
        package let place: String
    }

    /// Another content that came under its identity.
    package struct Conflict: Sendable {
        package let times: Int64
        /// When it came first, in microseconds since 1970 UTC.
        package let receivedAt: Int64
        package let line: String
    }

    /// What became of it.
    package enum Outcome: String, Sendable {
        case stored
        case spooled
        case deadLetter = "dead_letter"
        /// Only another content of it is kept, and the row that was first is gone.
        case conflict
        /// A record of it is loaded, but there is no row: it was removed, or the database restored.
        case missing
    }

    package let app: String
    /// The event as it is stored, else as it came first.
    package let row: EventRow
    package var arrivals: [Arrival] = []
    package var stored: Stored?
    package var conflicts: [Conflict] = []
    package var deadLetters: [DeadLetter] = []

    init(_ row: EventRow) {
        self.row = row
        app = row.text(.app) ?? ""
    }

    package var outcome: Outcome {
        if stored != nil { return .stored }
        if arrivals.contains(where: { !$0.isLoaded }) { return .spooled }
        if !deadLetters.isEmpty { return .deadLetter }
        return conflicts.isEmpty ? .missing : .conflict
    }
}

/// A message on a device, as a report counts it.
package struct UnitStory: Sendable {
    /// The unit as a UUID's text.
    package let unit: String
    package let app: String
    /// Nil without a device.
    package var messageUID: String?
    package var deviceID: String?
    /// What the unit is attributed to; nil when to nothing.
    package let campaign: String?
    /// When it was first seen, by which it belongs to a period: microseconds since 1970 UTC.
    package let firstAt: Int64
    /// Bits of `tapline.event_states`.
    package let states: Int64
    package let isTest: Bool
    /// The value of each dimension that it has one of.
    package var dimensions: [(name: String, value: String)] = []
    /// The flags of reports that it raises.
    package var flags: [String] = []
    /// The columns of a report with what it adds there; nil where that is unknown.
    package var counts: [(name: String, value: Int64?)] = []
    /// Whether reports compute it from its events; else it is counted in a cell.
    package var isSpecial = false
    /// How many units its cell stands for; nil for a special one.
    package var unitsOfCell: Int64?

    /// The words of its states.
    package var stateWords: [String] {
        EventType.allCases.filter { $0 != .custom && states & (1 << Int64($0.rawValue)) != 0 }
            .map { "\($0.word)" }
            + [(20, "click"), (21, "test"), (22, "silent")]
            .filter { states & (1 << Int64($0.0)) != 0 }.map(\.1)
    }

    /// When the quarter of an hour of its cell begins, in microseconds since 1970 UTC.
    package var quarterAt: Int64 { quarter * Self.quarterMicroseconds }
    /// Its number since 1970.
    var quarter: Int64 {
        let (quotient, rest) = firstAt.quotientAndRemainder(dividingBy: Self.quarterMicroseconds)
        return rest < 0 ? quotient - 1 : quotient
    }
    private static let quarterMicroseconds: Int64 = 900_000_000
}
