import Event
import Spool

/// The accepted rows of some spool records, in spool order: what one load transaction takes.
///
/// Rows stay where the spool reader put them; here is only where each is.
struct LoadBatch: ~Copyable, Sendable {
    /// One spool record, which is one HTTP body.
    struct Record: Sendable {
        /// The position after the record.
        let mark: SpoolMark
        /// Lines of the body, and those of them that were refused.
        let received: Int
        let rejected: Int
        /// Its rows in the batch.
        let rows: Range<Int>
        fileprivate let payload: [UInt8]
    }

    /// Where a row is.
    private struct Place: BitwiseCopyable {
        let record: UInt32
        let start: UInt32
        let end: UInt32
    }

    private(set) var records: [Record] = []
    private var places: [Place] = []
    /// What of each row its unit is made of.
    private(set) var events: [UnitEvent] = []
    /// What tells a conflict of each row from a duplicate.
    private(set) var contents: [EventContent] = []

    var isEmpty: Bool { records.isEmpty }

    /// How many rows there are.
    var count: Int { events.count }

    /// The position up to which the spool is loaded once this batch is committed.
    var mark: SpoolMark? { records.last?.mark }

    /// Lines received and refused in all.
    var received: Int { records.reduce(0) { $0 + $1.received } }
    var rejected: Int { records.reduce(0) { $0 + $1.rejected } }

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
                places.append(
                    Place(
                        record: number, start: UInt32(truncatingIfNeeded: range.lowerBound),
                        end: UInt32(truncatingIfNeeded: range.upperBound)))
            }
        } catch {
            contents.removeSubrange(first...)
            events.removeSubrange(first...)
            places.removeSubrange(first...)
            throw error
        }
        records.append(
            Record(
                mark: record.mark, received: body.received, rejected: body.rejected,
                rows: first..<events.count, payload: record.payload))
    }

    /// Forgets all rows and keeps the memory.
    mutating func removeAll() {
        records.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        contents.removeAll(keepingCapacity: true)
        events.removeAll(keepingCapacity: true)
    }

    /// The bytes of a row.
    @_lifetime(borrow self)
    func bytes(_ row: Int) -> RawSpan {
        let place = places[row]
        // SAFETY: the payload is held, and not changed, for as long as this value is borrowed.
        let payload = unsafe records[Int(place.record)].payload.withUnsafeBytes { unsafe $0 }
        let span = unsafe RawSpan(_unsafeBytes: payload)
        return unsafe _overrideLifetime(
            span.extracting(Int(place.start)..<Int(place.end)), borrowing: self)
    }

    /// A row by itself.
    func row(_ row: Int) -> EventRow {
        let place = places[row]
        return EventRow(
            checked: records[Int(place.record)].payload, Int(place.start)..<Int(place.end))
    }
}
