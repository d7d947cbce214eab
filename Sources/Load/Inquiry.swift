import Event
import Platform
import Postgres

/// What closed segments were asked about the events of a batch, and what they said.
///
/// Made within the turn, or before it by ``LookAhead``; segments that have been closed since are asked then.
struct Inquiry: ~Copyable, Sendable {
    /// What was found: keys, and what filters tell of messages.
    var older = OlderUnits()
    /// What was asked for, as far as it is of units.
    var requests = Requests()
    var messages = AskedMessages()
    /// The filters that were looked at: the number of their history, and of each slice how many segments.
    var history = -1
    var segments: [Int] = []
    /// The newest batch of the database after it was asked, and its time; 0 within the turn.
    var batch: Int64 = 0
    var storedAt: Int64 = 0

    /// Asks for the keys of the units of some events, in the segments that have not been asked yet.
    ///
    /// Most of what closed segments hold under the units of a batch are repeats: their keys are all that is
    /// needed.
    mutating func ask(
        _ closed: ClosedSegments, _ open: borrowing OpenSegment, _ events: [UnitEvent],
        _ contents: [EventContent], over connection: borrowing PostgresConnection,
        _ prepared: inout Set<String>
    ) throws(LoadError) {
        let fresh = try closed.requests(open, events[...], contents, &self, over: connection)
        guard !fresh.isEmpty else { return }
        messages.insert(fresh)
        let heavy = try SegmentQuestion.heavyUnits(of: fresh, over: connection)
        for unit in heavy.values.joined() { messages.setFound(unit.message) }
        let calls = SegmentQuestion.calls(fresh, without: heavy)
        try SegmentQuestion.keys.ask(calls, over: connection, &prepared) { _, answer in
            for row in 0..<answer.rows {
                older.addKey(answer, row)
                messages.setFound(Unit(uuid: answer.bytes(row, 0)).message)
            }
        }
        requests.insert(fresh)
    }
}

/// Asks closed segments about the next batch while the present one is loaded.
///
/// Of one thread; the connection is its own, made when it is first needed.
struct LookAhead: ~Copyable {
    private let closed: ClosedSegments
    private let connect: () throws(LoadError) -> PostgresConnection
    private var connection: PostgresConnection?
    private var prepared: Set<String> = []
    private static let backoffMin: Microseconds = 5_000_000
    private static let backoffMax: Microseconds = 600_000_000
    /// At first it is tried again at once: a connection ends when a server does.
    private var backoff: Microseconds = 0
    /// When it is tried again after an error.
    private var nextTry: Microseconds = 0
    /// Knows of nothing: what the open segment will hold by then is not known here.
    private let open = OpenSegment(number: 0)

    init(
        _ closed: ClosedSegments, connect: @escaping () throws(LoadError) -> PostgresConnection
    ) {
        self.closed = closed
        self.connect = connect
    }

    /// What closed segments hold of some events.
    ///
    /// - Parameter contents: Of each event.
    /// - Returns: Nil if they could not be asked: then the loader will.
    mutating func inquire(_ events: [UnitEvent], _ contents: [EventContent]) -> Inquiry? {
        guard closed.count > 0, Clock.monotonic() >= nextTry else { return nil }
        do throws(LoadError) {
            if connection == nil {
                prepared = []
                connection = try connect()
            }
            // After an error it is not put back.
            guard let session = connection.take() else { return nil }
            // Before the questions: who knows of a segment that it is closed has all of its rows.
            let closedThere = try session.statement(
                "SELECT coalesce(max(segment), 0)::bigint FROM tapline.segment WHERE state <> 'open'"
            ).int64(0, 0)
            var inquiry = Inquiry()
            try inquiry.ask(closed, open, events, contents, over: session, &prepared)
            // A standby that lags behind, or a segment that was closed meanwhile.
            guard let closedThere, closed.all.allSatisfy({ $0 <= Int(closedThere) }) else {
                connection = consume session
                return nil
            }
            // After the questions, so that all that was answered is of this batch or an earlier one.
            let newest = try session.statement(
                """
                SELECT batch, (extract(epoch FROM stored_at) * 1000000)::bigint FROM tapline.turn
                """)
            inquiry.batch = newest.int64(0, 0) ?? 0
            inquiry.storedAt = newest.int64(0, 1) ?? 0
            connection = consume session
            backoff = 0
            return inquiry
        } catch {
            // What it is for is to save time, so it does not take time again and again.
            Log.warn(
                "cannot ask closed segments about the next batch while one is loaded: \(error)",
                hint: "Loading goes on without it; it needs a connection more.")
            nextTry = Clock.monotonic() + backoff
            backoff = max(Self.backoffMin, min(backoff * 2, Self.backoffMax))
            return nil
        }
    }
}
