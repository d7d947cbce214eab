import Event
import JSONLines

extension EventDecoder {
    /// The member that a field has, unless it is null.
    @inline(__always)
    private func member(_ field: EventField) -> JSONMember? {
        guard present &>> UInt64(field.rawValue) & 1 == 1 else { return nil }
        return members[Int(slots[field.rawValue])]
    }

    /// Keeps a member in the properties, under its own name.
    private mutating func keep(_ field: EventField) { extras.append(slots[field.rawValue]) }

    /// Of the spellings `first` to `last` the first that is there; the others go into the properties.
    @inline(__always)
    private mutating func pick(_ first: EventField, _ last: EventField) -> EventField? {
        var found = present & ((2 &<< UInt64(last.rawValue)) &- (1 &<< UInt64(first.rawValue)))
        guard found != 0 else { return nil }
        let picked = found.trailingZeroBitCount
        while case let others = found & (found &- 1), others != 0 {
            extras.append(slots[others.trailingZeroBitCount])
            found = others
        }
        return EventField.of(rawValue: picked)
    }

    /// The text of a string, as UTF-8.
    @inline(__always)
    private mutating func text(_ member: JSONMember, _ line: RawSpan) -> TextRange {
        guard member.isValueEscaped else {
            return .line(member.isString ? member.text : member.value)
        }
        let start = scratch.count
        JSONText.unescape(line, member.text, into: &scratch)
        return .scratch(start..<scratch.count)
    }

    /// What `body` says of the bytes of a text.
    @inline(__always)
    private func with<Result>(
        _ text: TextRange, _ line: RawSpan, _ body: (RawSpan) -> Result
    ) -> Result {
        body(EventSource(line: line, scratch: scratch.rawSpan).bytes(of: text))
    }

    // MARK: type

    mutating func readType(_ line: RawSpan) throws(Rejection) {
        guard let field = pick(.type, .kind), let member = member(field) else {
            throw Rejection(.missingType, .type)
        }
        guard member.isString else {
            throw Rejection(.invalidType, field, kind: member.kind)
        }
        let text = text(member, line)
        if let key = with(text, line, { KnownType.Key($0) }), key == lastType.key {
            event.type = lastType.type
            if !lastType.isExact { event.texts[.typeRaw] = text }
            return
        }
        guard text.count > 0 else { throw Rejection(.missingType, field) }
        guard text.count <= Self.typeBytesMax else {
            throw Rejection(.fieldTooLong, field, actual: text.count, limit: Self.typeBytesMax)
        }
        guard with(text, line, Self.isWord) else { throw Rejection(.invalidCharacter, field) }
        let type = with(text, line) { EventType(word: $0) }
        event.type = type
        let isExact = !type.isCustom && with(text, line) { $0.is(type.word) }
        if !isExact { event.texts[.typeRaw] = text }
        if let key = with(text, line, { KnownType.Key($0) }) {
            lastType = KnownType(key: key, type: type, isExact: isExact)
        }
    }

    private static func isWord(_ word: RawSpan) -> Bool {
        for index in 0..<word.byteCount where !isTypeByte(word.byte(at: index)) { return false }
        return true
    }

    /// Whether the byte is one of `[A-Za-z0-9_.:-]`.
    @inline(__always)
    private static func isTypeByte(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 <= 10 || byte == 0x5F || byte &- 0x2D <= 1
    }

    // MARK: identifiers

    mutating func readIdentifiers(_ line: RawSpan) throws(Rejection) {
        event.texts[.messageUID] = try identifier(.messageUID, line, foldsUUID: true)
        event.texts[.deviceID] = try identifier(.deviceID, line)
        if let field = pick(.eventUID, .insertID) {
            event.texts[.eventUID] = try identifier(field, line, foldsUUID: true)
        }
        event.texts[.actionID] = try identifier(.actionID, line)
        event.texts[.categoryID] = try identifier(.categoryID, line)
        event.texts[.personID] = try identifier(.personID, line)
        let inbox = try identifier(.inboxMessageUID, line, foldsUUID: true)
        event.texts[.inboxMessageUID] = inbox
        if event.type.isInboxStatus, !event.texts[.messageUID].isPresent {
            event.texts[.messageUID] = inbox
        }
        try readCampaign(line)
    }

    /// `campaign_id`, else `activity_type:activity_uid` where both are there.
    private mutating func readCampaign(_ line: RawSpan) throws(Rejection) {
        event.texts[.campaignID] = try identifier(.campaignID, line)
        if !event.texts[.campaignID].isPresent, isText(.activityType), isText(.activityUID) {
            let type = try identifier(.activityType, line)
            let uid = try identifier(.activityUID, line)
            if type.isPresent, uid.isPresent { return try joinActivity(type, uid, line) }
        }
        if member(.activityType) != nil { keep(.activityType) }
        if member(.activityUID) != nil { keep(.activityUID) }
    }

    private func isText(_ field: EventField) -> Bool {
        member(field).map { $0.isString || $0.isInteger } ?? false
    }

    private mutating func joinActivity(
        _ type: TextRange, _ uid: TextRange, _ line: RawSpan
    ) throws(Rejection) {
        let start = scratch.count
        appendToScratch(type, line)
        scratch.append(Ascii.colon)
        appendToScratch(uid, line)
        let count = scratch.count - start
        guard count <= Self.identifierBytesMax else {
            throw Rejection(
                .fieldTooLong, .activityUID, actual: count, limit: Self.identifierBytesMax)
        }
        event.texts[.campaignID] = .scratch(start..<scratch.count)
    }

    private mutating func appendToScratch(_ text: TextRange, _ line: RawSpan) {
        if let range = text.rangeInLine { return scratch.append(line, range) }
        for index in 0..<text.count { scratch.append(with(text, line) { $0.byte(at: index) }) }
    }

    /// A text of at most 128 bytes; a JSON integer is its text, and an empty text is none.
    private mutating func identifier(
        _ field: EventField, _ line: RawSpan, foldsUUID: Bool = false
    ) throws(Rejection) -> TextRange {
        guard let member = member(field) else { return .absent }
        guard member.isString else {
            guard member.isNumber, member.isInteger else {
                throw Rejection(.invalidType, field, kind: member.kind)
            }
            return try checkLength(.line(member.value), field)
        }
        guard !member.isValueRefused else {
            throw Rejection(.invalidCharacter, field)
        }
        let text = try checkLength(text(member, line), field)
        if text.count == 0 { return .absent }
        return foldsUUID && text.count == 36 ? foldUUID(text, line) : text
    }

    private func checkLength(
        _ text: TextRange, _ field: EventField
    ) throws(Rejection) -> TextRange {
        guard text.count <= Self.identifierBytesMax else {
            throw Rejection(
                .fieldTooLong, field, actual: text.count, limit: Self.identifierBytesMax)
        }
        return text
    }

    /// The text, of 36 bytes, in lower case if it has the shape of a UUID.
    private mutating func foldUUID(_ text: TextRange, _ line: RawSpan) -> TextRange {
        guard let lowered = with(text, line, { LoweredUUID(folding: $0) }) else { return text }
        let start = scratch.count
        lowered.append(to: &scratch)
        return .scratch(start..<scratch.count)
    }

    /// The text with A to Z in lower case.
    private mutating func lowered(_ text: TextRange, _ line: RawSpan) -> TextRange {
        if with(text, line, { $0.isSurelyLowerCase }) { return text }
        let start = scratch.count
        appendToScratch(text, line)
        for index in start..<scratch.count where scratch[index] &- 0x41 < 26 {
            scratch[index] |= 0x20
        }
        return .scratch(start..<scratch.count)
    }

    // MARK: times and flags

    mutating func readTimes(_ line: RawSpan, _ sentAtHeader: Int64?) {
        if let field = pick(.occurredAt, .time), let member = member(field) {
            if member.isString || member.isNumber {
                readOccurredAt(member, line)
            } else {
                keep(field)
            }
        }
        event.sentAt = sentAtHeader
        if let member = member(.sentAt), member.isString || member.isNumber {
            let text = text(member, line)
            if let time = with(text, line, EventTime.parse) { event.sentAt = time }
        }
    }

    private mutating func readOccurredAt(_ member: JSONMember, _ line: RawSpan) {
        let text = text(member, line)
        guard text.count > 0 else { return }
        if member.isValueRefused { isSanitized = true }
        event.occurredAsSent = text
        let time = with(text, line, EventTime.parse)
        event.occurredAt = time
        if time != nil, member.isString, with(text, line, EventTime.isAsFormatted) { return }
        event.texts[.occurredRaw] = text
    }

    mutating func boolean(_ field: EventField) throws(Rejection) -> Bool? {
        guard let member = member(field) else { return nil }
        switch member.kind {
        case .true: return true
        case .false: return false
        default: throw Rejection(.invalidType, field, kind: member.kind)
        }
    }

    // MARK: dimensions

    mutating func readDimensions(_ line: RawSpan) {
        dimension(.collapseKey, .collapseKey, line)
        dimension(.platform, .platform, line)
        if event.texts[.platform].isPresent {
            event.texts[.platform] = lowered(event.texts[.platform], line)
        }
        dimension(.appVersion, .appVersion, line)
        dimension(.osVersion, .osVersion, line)
        dimension(.sdkVersion, .sdkVersion, line)
        dimension(.locale, .locale, line)
        dimension(.country, .country, line)
        dimension(.provider, .provider, line)
    }

    /// A text or a number of at most 128 bytes; anything else stays in the properties.
    @inline(__always)
    private mutating func dimension(_ field: EventField, _ column: EventColumn, _ line: RawSpan) {
        guard let member = member(field) else { return }
        guard member.isString || member.isNumber else { return keep(field) }
        let text = text(member, line)
        guard text.count <= Self.identifierBytesMax else { return keep(field) }
        guard text.count > 0 else { return }
        if member.isValueRefused { isSanitized = true }
        event.texts[column] = text
    }

    // MARK: properties

    mutating func readProperties(_ line: RawSpan) {
        var object: JSONMember?
        if let field = pick(.properties, .props), let member = member(field) {
            if member.isObject { object = member } else { keep(field) }
        }
        if let object, extras.isEmpty, !object.isValueRefused {
            event.texts[.properties] = .line(object.value)
        } else if object != nil || !extras.isEmpty {
            event.texts[.properties] = mergedProperties(object, line)
        }
    }
}
