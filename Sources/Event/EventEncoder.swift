import JSONLines

/// Makes rows of decoded events; keeps its buffers from event to event.
package struct EventEncoder: ~Copyable {
    /// From 1970 to 2000, where PostgreSQL's timestamps begin.
    static let postgresEpoch: Int64 = 946_684_800_000_000

    private var hasher = EventHasher()

    package init() {}

    /// Identifies an event, decides its time and appends its row.
    ///
    /// - Parameters:
    ///   - event: Has what its identity rule needs.
    ///   - line: The line, and
    ///   - scratch: what the decoder wrote, into which the texts of `event` point.
    ///   - plain: The members of an object of the line, which may be the properties.
    ///   - app: The app of the body.
    ///   - receivedAt: When the body came.
    package mutating func append(
        _ event: borrowing EventFields, line: RawSpan, scratch: borrowing ByteBuffer,
        plain: borrowing PlainMembers, app: RawSpan, receivedAt: Int64,
        to builder: inout BodyRecord.Builder
    ) {
        let source = EventSource(line: line, scratch: scratch.rawSpan)
        let keys = hasher.keys(of: event, source, plain: plain, app: app)
        let time = EventTime(
            occurredAt: event.occurredAt, sentAt: event.sentAt, receivedAt: receivedAt)
        var size = 2 + 4 * EventColumn.count + 52 + app.byteCount
        size += Self.size(event) + (keys.propertiesHash == nil ? 0 : 8)
        if keys.inbox != nil { size += 16 }
        builder.appendRow(size) { row in
            row.begin(fields: Int16(EventRow.fieldCount))
            row.field(keys.identity.high, keys.identity.low)
            row.field(keys.unit.message, keys.unit.device)
            row.field(time.microseconds &- Self.postgresEpoch)
            row.field(receivedAt &- Self.postgresEpoch)
            row.field(event.type.rawValue)
            row.field(time.rule.rawValue)
            row.field(keys.propertiesHash)
            row.field(app)
            Self.texts(.campaignID, .inboxMessageUID, event, source, &row)
            if let inbox = keys.inbox {
                row.field(inbox.message, inbox.device)
            } else {
                row.null()
            }
            Self.texts(.collapseKey, .personID, event, source, &row)
            row.field(event.occurredAt.map { $0 &- Self.postgresEpoch })
            Self.texts(.occurredRaw, .occurredRaw, event, source, &row)
            row.field(event.sentAt.map { $0 &- Self.postgresEpoch })
            row.field(event.opensApp)
            row.field(event.isTest)
            row.field(event.silent)
            Self.texts(.typeRaw, .properties, event, source, &row)
        }
    }

    /// The bytes of all fields but those that every row has.
    private static func size(_ event: borrowing EventFields) -> Int {
        var size = 0
        var found = event.texts.present
        while found != 0 {
            size &+= event.texts.ranges[found.trailingZeroBitCount].count
            found &= found &- 1
        }
        if event.occurredAt != nil { size &+= 8 }
        if event.sentAt != nil { size &+= 8 }
        if event.opensApp != nil { size &+= 1 }
        if event.isTest != nil { size &+= 1 }
        if event.silent != nil { size &+= 1 }
        return size
    }

    @inline(__always)
    private static func texts(
        _ first: EventColumn, _ last: EventColumn, _ event: borrowing EventFields,
        _ source: EventSource,
        _ row: inout RowWriter
    ) {
        var found = event.texts.present(first, last)
        var next = first.index
        while found != 0 {
            let column = found.trailingZeroBitCount
            row.nulls(column &- next)
            row.field(source.bytes(of: event.texts.ranges[column]))
            next = column &+ 1
            found &= found &- 1
        }
        row.nulls(last.index &+ 1 &- next)
    }
}
