import Event
import Spool

/// The accepted rows of some spool records, in spool order: what one load transaction takes.
///
/// Rows stay where the spool reader put them; a row is a view of one of the payloads.
struct LoadBatch: Sendable {
    /// One spool record, which is one HTTP body.
    struct Record: Sendable {
        /// The position after the record.
        let mark: SpoolMark
        /// Lines of the body, and those of them that were refused.
        let received: Int
        let rejected: Int
        /// Its rows in ``LoadBatch/rows``.
        let rows: Range<Int>
    }

    private(set) var records: [Record] = []
    private(set) var rows: [EventRow] = []
    /// The identity of each row, and what tells its conflicts.
    private(set) var keys: [Identity] = []
    private(set) var contents: [EventContent] = []

    var isEmpty: Bool { records.isEmpty }

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
        let first = rows.count
        rows.append(contentsOf: body.rows)
        for row in body.rows {
            keys.append(row.key)
            contents.append(row.content)
        }
        records.append(
            Record(
                mark: record.mark, received: body.received, rejected: body.rejected,
                rows: first..<rows.count))
    }
}

extension EventRow {
    /// Calls `body` with the bytes of the row.
    func withBytes<E: Error>(_ body: (RawSpan) throws(E) -> Void) throws(E) {
        try unsafe body(payload.span.bytes.extracting(range))
    }

    /// What tells a conflict of this event from a duplicate.
    var content: EventContent {
        EventContent(
            campaign: field(.campaignID).map {
                unsafe contentHash(payload.span.bytes.extracting($0))
            },
            propertiesHash: propertiesHash)
    }
}
