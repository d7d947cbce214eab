internal import CScan
import JSONLines

/// The push group and the topic of an event: members of its properties whose values are strings.
///
/// `tapline.group_properties` says the same in SQL.
enum EventDetail {
    /// Whether properties may name one: few do, and all events are asked.
    static func isIn(_ properties: RawSpan) -> Bool {
        // SAFETY: the bytes are only read, within the calls.
        unsafe properties.withUnsafeBytes { bytes in
            unsafe tapline_contains_start(bytes.baseAddress, bytes.count, "\"to", "\"pu")
                && (tapline_contains(bytes.baseAddress, bytes.count, "\"topic\"", 7)
                    || tapline_contains(bytes.baseAddress, bytes.count, "\"push_group\"", 12))
        }
    }

    /// Appends push group and topic of some properties as two fields of a COPY row.
    static func append(from properties: RawSpan, to output: inout [UInt8]) {
        var members = GrowingTable<JSONMember>()
        if isIn(properties) {
            _ = JSONObject.scan(properties, 0..<properties.byteCount, into: &members)
        }
        append("push_group", of: members, properties, to: &output)
        append("topic", of: members, properties, to: &output)
    }

    /// Of equal keys the last one counts, as for PostgreSQL's `->`; an empty text is none.
    private static func append(
        _ name: StaticString, of members: borrowing GrowingTable<JSONMember>,
        _ properties: RawSpan, to output: inout [UInt8]
    ) {
        var text = ByteBuffer(capacity: 64)
        for index in (0..<members.count).reversed() {
            let member = members[index]
            JSONText.unescape(properties, member.key, into: &text)
            let isNamed = text.rawSpan.is(name)
            text.truncate(to: 0)
            guard isNamed else { continue }
            guard member.isString, !member.text.isEmpty else { break }
            JSONText.unescape(properties, member.text, into: &text)
            output.append(field: text.rawSpan)
            return
        }
        output.appendNull()
    }
}

extension [UInt8] {
    /// Appends a field of a COPY row.
    mutating func append(field value: RawSpan) {
        append(bigEndian: Int32(value.byteCount))
        unsafe value.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }

    mutating func appendNull() { append(bigEndian: -1) }

    private mutating func append(bigEndian value: Int32) {
        unsafe Swift.withUnsafeBytes(of: value.bigEndian) { unsafe append(contentsOf: $0) }
    }
}
