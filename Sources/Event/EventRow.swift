import JSONLines

/// One event as PostgreSQL's binary COPY takes it, a view of a record's payload.
///
/// Int16 count of fields (35, those of the loader too), then the 33 fields of ``EventColumn``, each as
/// Int32 bytes or -1 and its value, all big-endian. The loader appends batch and segment. The first six
/// fields are never null, so these are at fixed offsets: key 6, unit 26, event_time 46, received_at 58,
/// type 70, time_rule 76, the length of properties_hash 78. Times are in microseconds since 2000 UTC.
package struct EventRow: Sendable {
    /// Fields of the table, with batch and segment.
    package static let fieldCount = 35
    /// A row of nulls.
    package static let bytesMin = 2 + 4 * EventColumn.count + 52

    /// What the row is part of.
    package let payload: [UInt8]
    /// Where in it the row is.
    package let range: Range<Int>

    /// The row at `range`, which ``UnitEvent/init(row:columns:)`` has checked.
    package init(checked payload: [UInt8], _ range: Range<Int>) {
        self.payload = payload
        self.range = range
    }

    /// The identity of the event.
    package var key: Identity {
        Identity(high: UInt64(bitPattern: integer(6, 8)), low: UInt64(bitPattern: integer(14, 8)))
    }

    /// Message and device of the event.
    package var unit: Unit {
        Unit(
            message: UInt64(bitPattern: integer(26, 8)), device: UInt64(bitPattern: integer(34, 8)))
    }

    /// When it happened, in microseconds since 1970 UTC.
    package var eventTime: Int64 { integer(46, 8) &+ EventEncoder.postgresEpoch }

    /// When it came, in microseconds since 1970 UTC.
    package var receivedAt: Int64 { integer(58, 8) &+ EventEncoder.postgresEpoch }

    /// What happened.
    package var type: EventType { EventType(rawValue: Int16(truncatingIfNeeded: integer(70, 2)))! }

    /// What made the time.
    package var timeRule: TimeRule {
        TimeRule(rawValue: Int16(truncatingIfNeeded: integer(76, 2)))!
    }

    /// The hash of the canonical properties, of an event with an `event_uid` and properties.
    package var propertiesHash: Int64? { length(at: 78) < 0 ? nil : integer(82, 8) }

    /// Where in `payload` the value of a column is, or nil for a null.
    package func field(_ column: EventColumn) -> Range<Int>? {
        var index = 2
        for _ in 0..<column.rawValue { index += 4 + max(length(at: index), 0) }
        let count = length(at: index)
        let start = range.lowerBound + index + 4
        return count < 0 ? nil : start..<start + count
    }

    /// The value of a text column.
    package func text(_ column: EventColumn) -> String? {
        field(column).map { String(decoding: payload[$0], as: UTF8.self) }
    }

    /// The value of a time column, in microseconds since 1970 UTC.
    package func time(_ column: EventColumn) -> Int64? {
        field(column).map {
            integer($0.lowerBound - range.lowerBound, 8) &+ EventEncoder.postgresEpoch
        }
    }

    /// The value of a boolean column.
    package func flag(_ column: EventColumn) -> Bool? {
        field(column).map { payload[$0.lowerBound] != 0 }
    }

    /// A row with values for some text columns where it has none.
    ///
    /// - Parameters:
    ///   - row: A row that ``UnitEvent/init(row:columns:)`` has checked.
    ///   - columns: In their order in the row.
    ///   - values: Of each of them; nil leaves it as it is.
    package static func filled(
        _ row: RawSpan, _ columns: [EventColumn], _ values: [[UInt8]?]
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(row.byteCount + values.reduce(0) { $0 + ($1?.count ?? 0) })
        func copy(_ range: Range<Int>) {
            let part = row.extracting(range)
            unsafe part.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        }
        var index = 2
        var copied = 0
        for column in EventColumn.allCases {
            let length = Int(Int32(bitPattern: row.halfWord(at: index).byteSwapped))
            if length < 0, let place = columns.firstIndex(of: column), let value = values[place] {
                copy(copied..<index)
                for shift in [24, 16, 8, 0] {
                    bytes.append(UInt8(truncatingIfNeeded: value.count >> shift))
                }
                bytes += value
                copied = index + 4
            }
            index += 4 + max(length, 0)
        }
        copy(copied..<row.byteCount)
        return bytes
    }

    private func length(at offset: Int) -> Int {
        Int(Int32(truncatingIfNeeded: integer(offset, 4)))
    }

    /// The big-endian integer of `count` bytes at `offset` of the row.
    private func integer(_ offset: Int, _ count: Int) -> Int64 {
        let start = range.lowerBound + offset
        precondition(start >= 0 && start + count <= payload.count, "a field out of the payload")
        return unsafe payload.withUnsafeBytes { bytes in
            // SAFETY: within the payload, checked above; a count is 1, 2, 4 or 8.
            switch count {
            case 8:
                unsafe Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: Int64.self))
            case 4:
                Int64(
                    unsafe UInt32(
                        bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
            case 2:
                Int64(
                    unsafe UInt16(
                        bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt16.self)))
            default: Int64(unsafe bytes[start])
            }
        }
    }
}

extension EventRow {
    /// The event as a JSON object whose members are those of a line, so that it can be sent again.
    ///
    /// Decoded with the same app and time of receipt it gives this row again. App and time of receipt
    /// are not part of it.
    package func json() -> [UInt8] {
        var output = ByteBuffer(capacity: range.count + 256)
        output.append(#"{"type":"# as StaticString)
        string(text(.typeRaw) ?? "\(type.word)", to: &output)
        for column in EventColumn.allCases {
            switch column {
            case .campaignID, .messageUID, .deviceID, .eventUID, .actionID, .categoryID,
                .inboxMessageUID, .collapseKey, .platform, .appVersion, .osVersion, .sdkVersion,
                .locale, .country, .provider, .personID:
                guard let text = text(column) else { continue }
                name(column, to: &output)
                string(text, to: &output)
            case .occurredAt:
                // As it was sent, where that is known.
                guard text(.occurredRaw) == nil, let time = time(column) else { continue }
                name(column, to: &output)
                timeString(time, to: &output)
            case .occurredRaw:
                guard let text = text(column) else { continue }
                name(.occurredAt, to: &output)
                string(text, to: &output)
            case .sentAt:
                guard let time = time(column) else { continue }
                name(column, to: &output)
                timeString(time, to: &output)
            case .opensApp, .isTest, .silent:
                guard let flag = flag(column) else { continue }
                name(column, to: &output)
                output.append(flag ? "true" : "false" as StaticString)
            case .properties:
                guard let range = field(column) else { continue }
                name(column, to: &output)
                output.append(payload.rawSpan, range)
            case .key, .unit, .eventTime, .receivedAt, .type, .timeRule, .propertiesHash, .app,
                .inboxUnit, .typeRaw:
                continue
            }
        }
        output.append(Ascii.rightBrace)
        return output.array
    }

    private func name(_ column: EventColumn, to output: inout ByteBuffer) {
        output.append(Ascii.comma)
        string(column.name, to: &output)
        output.append(Ascii.colon)
    }

    private func string(_ text: String, to output: inout ByteBuffer) {
        output.append(Ascii.quote)
        let start = output.count
        output.append(text)
        JSONText.escape(from: start, in: &output)
        output.append(Ascii.quote)
    }

    private func timeString(_ time: Int64, to output: inout ByteBuffer) {
        output.append(Ascii.quote)
        EventTime.format(time, into: &output)
        output.append(Ascii.quote)
    }
}
