import Event
import JSONLines

/// Decodes the lines of bodies into rows.
///
/// One decoder serves one thread and any number of bodies; it keeps its buffers, so that a line costs no
/// allocation. Nothing a client sends traps it, and nothing is thrown away: what has no column, or does
/// not fit its column, is kept in the properties.
package struct EventDecoder: ~Copyable {
    /// Bytes of an identifier.
    package static let identifierBytesMax = 128
    /// Bytes of a `type`.
    package static let typeBytesMax = 64

    /// Bytes of one line.
    package let lineBytesMax: Int
    /// Lines so far in which a NUL or a lone surrogate became U+FFFD.
    package private(set) var sanitized = 0

    var members = GrowingTable<JSONMember>()
    /// The fields that have a member which is not null, one bit each by raw value.
    var present: UInt64 = 0
    /// Where among the members those fields are.
    var slots = FixedTable<Int32>(repeating: 0, count: EventField.count)
    /// Members that go into the properties.
    var extras = GrowingTable<Int32>()
    /// Members of the properties, where extras have to be merged into them.
    var inner = GrowingTable<JSONMember>()
    /// Texts that are not in the line as they are stored.
    var scratch = ByteBuffer()
    var event = EventFields()
    var isSanitized = false
    /// The type of the last line, for most lines of a body have one type.
    var lastType = KnownType(key: nil, type: .custom, isExact: false)
    private let names = FieldNames()
    /// The fields in the order of the lines before, by their raw value.
    private var expected = ExpectedKeys(EventField.allCases.map(\.name))
    /// The members of an object in the line, most often of its properties.
    private var plain = PlainMembers()
    private var encoder = EventEncoder()

    /// - Parameter lineBytesMax: A longer line is rejected unread.
    package init(lineBytesMax: Int = 65_536) {
        self.lineBytesMax = lineBytesMax
    }

    /// Decodes one line and appends its row, or counts it as rejected.
    ///
    /// - Parameters:
    ///   - line: One line without its line end, or one element of an array.
    ///   - receivedAt: When the request came, in microseconds since 1970 UTC.
    ///   - sentAtHeader: The time of the header `X-Sent-At`, if it could be read.
    ///   - app: The app of the key, the same that `builder` was made with.
    ///   - builder: Receives the row.
    package mutating func decode(
        line: RawSpan, receivedAt: Int64, sentAtHeader: Int64?, app: [UInt8],
        into builder: inout BodyRecord.Builder
    ) -> LineVerdict {
        do throws(Rejection) {
            try read(line, sentAtHeader)
        } catch {
            builder.countRejected()
            return .rejected(error)
        }
        if isSanitized { sanitized &+= 1 }
        encoder.append(
            event, line: line, scratch: scratch, plain: plain, app: app.rawSpan,
            receivedAt: receivedAt, to: &builder)
        return .accepted
    }

    /// Fills `event` from the line: the first half of ``decode(line:receivedAt:sentAtHeader:app:into:)``.
    package mutating func read(_ line: RawSpan, _ sentAtHeader: Int64?) throws(Rejection) {
        guard line.byteCount <= lineBytesMax else {
            throw Rejection(.lineTooLong, actual: line.byteCount, limit: lineBytesMax)
        }
        let failure = JSONObject.scan(
            line, 0..<line.byteCount, expecting: expected, into: &members, plain: &plain)
        if let failure { throw Self.rejection(failure) }
        event.clear()
        isSanitized = false
        scratch.truncate(to: 0)
        sortMembers(line)
        try readType(line)
        try readIdentifiers(line)
        readTimes(line, sentAtHeader)
        event.opensApp = try boolean(.opensApp)
        event.isTest = try boolean(.isTest)
        event.silent = try boolean(.silent)
        readDimensions(line)
        readProperties(line)
        if event.type.isCustom { try checkDevice(line) }
        try checkIdentity()
    }

    /// Whether a line would be taken, without a row.
    ///
    /// - Returns: Its type.
    package mutating func type(of line: RawSpan) throws(Rejection) -> EventType {
        try read(line, nil)
        return event.type
    }

    private static func rejection(_ failure: JSONObject.Failure) -> Rejection {
        switch failure {
        case .notAnObject: Rejection(.notAnObject)
        case .invalid(.syntax(let offset)): Rejection(.badJSON, actual: offset)
        case .invalid(.invalidUTF8(let offset)): Rejection(.invalidUTF8, actual: offset)
        case .invalid(.tooDeep): Rejection(.tooDeep, limit: JSONLimits.depthMax)
        case .invalid(.numberTooLarge): Rejection(.numberTooLarge)
        }
    }

    /// Gives each member its slot, the last of equal names, or lists it as an extra.
    private mutating func sortMembers(_ line: RawSpan) {
        present = 0
        extras.removeAll()
        var last = expected.start
        for index in 0..<members.count {
            let member = members[index]
            var field = member.keyNumber
            if field == expected.other {
                field = self.field(of: member, line)?.rawValue ?? expected.other
                expected.note(field, after: last)
            }
            last = field
            guard field != expected.other else {
                extras.append(Int32(truncatingIfNeeded: index))
                continue
            }
            slots[field] = Int32(truncatingIfNeeded: index)
            let bit: UInt64 = 1 &<< UInt64(field)
            if member.isNull { present &= ~bit } else { present |= bit }
        }
    }

    @inline(__always)
    private mutating func field(of member: JSONMember, _ line: RawSpan) -> EventField? {
        if !member.isKeyEscaped {
            return names.field(line.extracting(member.key))
        }
        let start = scratch.count
        JSONText.unescape(line, member.key, into: &scratch)
        let field = names.field(scratch.rawSpan.extracting(start..<scratch.count))
        scratch.truncate(to: start)
        return field
    }

    /// Rule 1 has all it needs; rule 2 needs a message, rule 3 a time and a device or a message.
    private func checkIdentity() throws(Rejection) {
        let hasMessage = event.texts[.messageUID].isPresent
        if event.type.isStatus {
            guard hasMessage else { throw Rejection(.missingMessageUID, .messageUID) }
        } else if !event.texts[.eventUID].isPresent {
            guard event.occurredAsSent.isPresent else { throw Rejection(.noIdentity, .occurredAt) }
            guard hasMessage || event.texts[.deviceID].isPresent else {
                throw Rejection(.noIdentity)
            }
        }
    }
}
