import Event
import Spool

/// A button of an interactive notification.
struct ButtonKey: Hashable, Sendable {
    let app: String
    let category: String
    let action: String

    init(app: String, category: String, action: String) {
        self.app = app
        self.category = category
        self.action = action
    }

    /// The button of a row; nil if it names none.
    init?(_ row: EventRow) {
        guard let app = row.text(.app), let category = row.text(.categoryID),
            let action = row.text(.actionID)
        else { return nil }
        self.init(app: app, category: category, action: action)
    }
}

/// The accepted rows of some spool records, in spool order: what one load transaction takes.
///
/// Rows stay where the spool reader put them; here is where each is, and all that can be said of
/// it without knowing what is stored, so that it is found out before the batch has its turn.
struct LoadBatch: ~Copyable, Sendable {
    /// One spool record, which is one HTTP body.
    struct Record: Sendable {
        /// The position after the record.
        let mark: SpoolMark
        /// Lines of the body, and those of them that were refused.
        let received: Int
        let rejected: Int
        /// When it came, in microseconds since 1970 UTC.
        let receivedAt: Int64
        /// Its rows in the batch.
        let rows: Range<Int>
        fileprivate let payload: [UInt8]
    }

    /// Where a row is.
    private struct Place: BitwiseCopyable {
        /// The record; from ``filledFirst`` on one of `filled`.
        let record: UInt32
        let start: UInt32
        let end: UInt32

        static let filledFirst: UInt32 = 1 << 31
    }

    /// What closed segments were asked about the rows before they have their turn.
    var inquiry: Inquiry?
    private(set) var records: [Record] = []
    /// Of each row the id of the dead letter that it is, in a batch of these; else none.
    private(set) var letters: [Int64] = []
    /// Bytes of the records.
    private(set) var bytes = 0
    private var places: [Place] = []
    /// What of each row its unit is made of.
    private(set) var events: [UnitEvent] = []
    /// What tells a conflict of each row from a duplicate.
    private(set) var contents: [EventContent] = []
    /// Of each row the labels of its texts, which are numbers of this batch.
    private(set) var labels: [(campaign: UInt32, profile: UInt32)] = []
    private var texts = Labels()
    /// Of each row the first one with its key.
    private var firstRows: [UInt32] = []
    private var isPressed = false
    /// Rows that got values of their devices, and where each was as it came.
    private var filled: [[UInt8]] = []
    private var originals: [Int: (place: Place, filled: UInt8)] = [:]
    private var rowsOfKeys = FlatTable<Identity, UInt32>()

    var isEmpty: Bool { records.isEmpty }

    /// Whether the rows are dead letters that are tried once more, and none is of the spool.
    var isReplay: Bool { !letters.isEmpty }

    /// How many rows there are.
    var count: Int { events.count }

    /// The position up to which the spool is loaded once this batch is committed.
    var mark: SpoolMark? { records.last?.mark }

    /// Lines received and refused in all.
    var received: Int { records.reduce(0) { $0 + $1.received } }
    var rejected: Int { records.reduce(0) { $0 + $1.rejected } }

    /// When the first of the records came, in microseconds since 1970 UTC.
    var oldestReceivedAt: Int64 { records.reduce(.max) { min($0, $1.receivedAt) } }

    /// Adds the rows of a record.
    ///
    /// - Throws: ``BodyRecord/Failure`` when the payload is not a body record; nothing is added then.
    mutating func append(_ record: SpoolRecord) throws(BodyRecord.Failure) {
        let body = try BodyRecord(payload: record.payload)
        let first = events.count
        let number = UInt32(records.count)
        do throws(BodyRecord.Failure) {
            let payload = record.payload.rawSpan
            try body.forEachEvent { event, range in
                contents.append(EventContent(event, payload.extracting(range)))
                events.append(event)
                let row = payload.extracting(range)
                labels.append((texts.campaign(of: event, row), texts.profile(of: event, row)))
                places.append(
                    Place(
                        record: number, start: UInt32(truncatingIfNeeded: range.lowerBound),
                        end: UInt32(truncatingIfNeeded: range.upperBound)))
            }
        } catch {
            contents.removeSubrange(first...)
            events.removeSubrange(first...)
            places.removeSubrange(first...)
            labels.removeSubrange(first...)
            throw error
        }
        findRepeats(from: first)
        bytes += record.payload.count
        records.append(
            Record(
                mark: record.mark, received: body.received, rejected: body.rejected,
                receivedAt: body.receivedAt, rows: first..<events.count, payload: record.payload))
    }

    /// Adds a dead letter that is to be tried once more: a record of one row.
    ///
    /// A batch has rows of the spool or dead letters, never both.
    ///
    /// - Throws: ``BodyRecord/Failure`` when the payload is not a record; nothing is added then.
    mutating func append(letter: Int64, payload: [UInt8]) throws(BodyRecord.Failure) {
        precondition(letters.count == count, "a batch of events and of dead letters")
        try append(
            SpoolRecord(
                payload: payload, events: 1, mark: SpoolMark(segment: 0, offset: 0, chain: 0)))
        letters.append(letter)
        precondition(letters.count == count, "a dead letter is one row")
    }

    private mutating func findRepeats(from first: Int) {
        for row in first..<events.count {
            if row &+ Decision.lookAhead < events.count {
                rowsOfKeys.prefetch(events[row &+ Decision.lookAhead].key)
            }
            let (slot, _) = rowsOfKeys.slot(
                adding: events[row].key, UInt32(truncatingIfNeeded: row))
            firstRows.append(rowsOfKeys[slot])
        }
    }

    /// Forgets all rows and keeps the memory.
    mutating func removeAll() {
        inquiry = nil
        isPressed = false
        filled.removeAll(keepingCapacity: true)
        originals.removeAll(keepingCapacity: true)
        records.removeAll(keepingCapacity: true)
        letters.removeAll(keepingCapacity: true)
        bytes = 0
        places.removeAll(keepingCapacity: true)
        contents.removeAll(keepingCapacity: true)
        events.removeAll(keepingCapacity: true)
        labels.removeAll(keepingCapacity: true)
        texts = Labels()
        firstRows.removeAll(keepingCapacity: true)
        rowsOfKeys.removeAll()
    }

    /// Gives a row values of its device for dimensions that it does not have itself.
    ///
    /// - Parameter values: Of the columns ``filledColumns``, in their order.
    mutating func fill(_ row: Int, _ values: [[UInt8]?]) {
        let content = EventRow.filled(bytes(row), Self.filledColumns, values)
        guard let event = UnitEvent(row: content.rawSpan) else {
            preconditionFailure("a filled row is none")
        }
        precondition(originals[row] == nil, "a row is filled once")
        originals[row] = (places[row], event.pattern & ~events[row].pattern)
        places[row] = Place(
            record: Place.filledFirst | UInt32(filled.count), start: 0, end: UInt32(content.count))
        events[row] = event
        labels[row].profile = texts.profile(of: event, content.rawSpan)
        filled.append(content)
    }

    /// Which of ``filledColumns`` a row has of its device, as bits from the lowest on.
    func filledColumns(of row: Int) -> UInt8 {
        originals.isEmpty ? 0 : originals[row]?.filled ?? 0
    }

    /// The dimensions of units, in the order of ``UnitEvent/pattern``.
    static let filledColumns: [EventColumn] = [
        .platform, .appVersion, .osVersion, .locale, .country, .provider,
    ]

    /// Makes all rows what they were when they came.
    mutating func restore() {
        for (row, original) in originals {
            places[row] = original.place
            let content = unsafe bytes(row).withUnsafeBytes { unsafe [UInt8]($0) }
            guard let event = UnitEvent(row: content.rawSpan) else { continue }
            events[row] = event
            labels[row].profile = texts.profile(of: event, content.rawSpan)
        }
        originals.removeAll(keepingCapacity: true)
        filled.removeAll(keepingCapacity: true)
    }

    /// Says of the actions that do not say it themselves whether they opened the app.
    mutating func press(_ buttons: [ButtonKey: Bool]) {
        guard !buttons.isEmpty || isPressed else { return }
        isPressed = !buttons.isEmpty
        for number in 0..<count where events[number].type == .action {
            let row = row(number)
            guard row.flag(.opensApp) == nil, let key = ButtonKey(row) else { continue }
            events[number].setOpensApp(buttons[key] ?? false)
        }
    }

    /// The first row with the key of a row: the row itself, unless it is a repeat.
    func firstRow(withKeyOf row: Int) -> Int { Int(firstRows[row]) }

    /// How many campaigns and profiles the labels of the rows count up to.
    var labelCounts: (campaigns: Int, profiles: Int) { texts.counts }

    /// The fields of a label of this batch, as COPY takes them.
    func campaignFields(_ label: UInt32) -> [UInt8] { texts.campaignFields(label) }
    func profileFields(_ label: UInt32) -> [UInt8] { texts.profileFields(label) }

    /// The bytes of a row.
    @_lifetime(borrow self)
    func bytes(_ row: Int) -> RawSpan {
        let place = places[row]
        // SAFETY: the payload is held, and not changed, for as long as this value is borrowed.
        let payload = unsafe source(place.record).withUnsafeBytes { unsafe $0 }
        let span = unsafe RawSpan(_unsafeBytes: payload)
        return unsafe _overrideLifetime(
            span.extracting(Int(place.start)..<Int(place.end)), borrowing: self)
    }

    /// Calls `body` with some rows, in their order, and the bytes of each.
    func forEach<Failure: Error>(
        _ rows: Range<Int>, _ body: (_ row: Int, _ bytes: RawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        var row = rows.lowerBound
        while row < rows.upperBound {
            // Held once for all rows of a record: what holds it is counted by steps that all threads see.
            let record = places[row].record
            let source = source(record)
            let bytes = source.rawSpan
            repeat {
                let place = places[row]
                try body(row, bytes.extracting(Int(place.start)..<Int(place.end)))
                row += 1
            } while row < rows.upperBound && places[row].record == record
        }
    }

    /// What the rows of a record are in.
    private func source(_ record: UInt32) -> [UInt8] {
        record >= Place.filledFirst
            ? filled[Int(record & ~Place.filledFirst)] : records[Int(record)].payload
    }

    /// A row by itself, as it came.
    func row(_ row: Int) -> EventRow {
        let place = originals[row]?.place ?? places[row]
        return EventRow(
            checked: records[Int(place.record)].payload, Int(place.start)..<Int(place.end))
    }
}
