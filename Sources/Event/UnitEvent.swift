import JSONLines

/// What of a stored event its unit is made of, read from the bytes of its row.
///
/// Ranges are places in the row.
package struct UnitEvent: BitwiseCopyable, Sendable {
    /// The identity of the event.
    package let key: Identity
    /// Message and device; a message of 0 says that the event is in no unit.
    package let unit: Unit
    private let inboxUnit: Unit
    /// When it happened, in microseconds since 1970 UTC.
    package let time: Int64
    private let propertiesBits: Int64
    /// Bits that the event adds to the state of its unit: those of `tapline.event_states`, which says the
    /// same in SQL, and two that only cells have.
    package private(set) var states: UInt32
    /// Where the fields app, campaign_id and the next one begin, from the start of the row; then
    /// platform and what follows os_version; then locale and what follows provider.
    private let starts: (app: UInt32, campaign: UInt32, message: UInt32)
    private let devices: (first: UInt32, end: UInt32)
    private let places: (first: UInt32, end: UInt32)
    /// Where action_id begins, which category_id follows, and properties.
    private let details: (action: UInt32, properties: UInt32)
    package let type: EventType
    /// Which of platform, app_version, os_version, locale, country and provider, in this order from
    /// bit 0 on, have a value.
    package let pattern: UInt8
    /// Whether the event names an action, a category, a push group or a topic; or may name the last two.
    package let hasDetail: Bool
    /// Whether the event names a campaign.
    package let hasCampaign: Bool
    private let hasProperties: Bool
    /// Whether it came more than 24 hours after it happened (`tapline.event_is_late`).
    package let isLate: Bool

    /// The unit that the event's inbox message would be.
    package var inbox: Unit? { inboxUnit.message == 0 ? nil : inboxUnit }

    /// The hash of the canonical properties, of an event with an `event_uid` and properties.
    package var propertiesHash: Int64? { hasProperties ? propertiesBits : nil }

    /// The fields app and campaign_id, each with its length.
    package var app: Range<Int> { Int(starts.app)..<Int(starts.campaign) }
    package var campaign: Range<Int> { Int(starts.campaign)..<Int(starts.message) }

    /// The fields platform, app_version and os_version, then locale, country and provider.
    package var device: Range<Int> { Int(devices.first)..<Int(devices.end) }
    package var place: Range<Int> { Int(places.first)..<Int(places.end) }

    /// Whether the event is a click (`clicked`, or an `action` that opens the app).
    package var isClick: Bool { states & Self.click != 0 }

    /// An event that is no `action` and names one all the same.
    package static let strayAction: UInt32 = 1 << 17
    /// An `action` that opens the app.
    package static let openingAction: UInt32 = 1 << 18
    package static let click: UInt32 = 1 << 20
    package static let test: UInt32 = 1 << 21
    package static let silent: UInt32 = 1 << 22
    /// A receipt that is also reported on a tap: on iOS, sent as `push_receive`.
    package static let ambiguousReceipt: UInt32 = 1 << 19
    /// The types 10 to 13.
    package static let inboxStates: UInt32 = 15 << 10

    /// Reads a row and checks all its lengths.
    ///
    /// - Parameters:
    ///   - row: As ``EventRow`` is, with or without the columns of the loader.
    ///   - columns: How many it has: ``columns``.
    /// - Returns: Nil if it is no such row.
    package init?(row: RawSpan, columns: Int = EventColumn.count) {
        guard row.byteCount >= EventRow.bytesMin, columns == EventColumn.count else { return nil }
        // The first six are never null, so they are at fixed places.
        guard row.length(at: 2) == 16, row.length(at: 22) == 16, row.length(at: 42) == 8,
            row.length(at: 54) == 8, row.length(at: 66) == 2, row.length(at: 72) == 2,
            let type = EventType(rawValue: Int16(bitPattern: row.short(at: 70))),
            TimeRule(rawValue: Int16(bitPattern: row.short(at: 76))) != nil
        else { return nil }
        self.type = type
        key = Identity(high: row.big(at: 6), low: row.big(at: 14))
        unit = Unit(message: row.big(at: 26), device: row.big(at: 34))
        time = Int64(bitPattern: row.big(at: 46)) &+ EventEncoder.postgresEpoch
        let received = Int64(bitPattern: row.big(at: 58)) &+ EventEncoder.postgresEpoch
        isLate = received &- time > 24 * 3600 * 1_000_000
        var states: UInt32 = 1 &<< UInt32(truncatingIfNeeded: type.rawValue)
        if type == .clicked { states |= Self.click }
        // The others in their order, as `EventColumn` has it. Each is gone over once, for all rows come by here.
        var walk = FieldWalk(row, from: 78, fields: EventColumn.count - 6)
        hasProperties = walk.pass(row, width: 8)
        propertiesBits = hasProperties ? Int64(bitPattern: row.big(at: 82)) : 0
        let app = walk.place
        walk.pass(row)
        let campaign = walk.place
        hasCampaign = walk.pass(row)
        starts = (app, campaign, walk.place)
        for _ in 0..<3 { walk.pass(row) }  // message_uid, device_id, event_uid
        let action = walk.place
        if walk.pass(row), type != .action { states |= Self.strayAction }
        let hasCategory = walk.pass(row)
        walk.pass(row)  // inbox_message_uid
        let inbox = Int(walk.place)
        inboxUnit =
            walk.pass(row, width: 16)
            ? Unit(message: row.big(at: inbox &+ 4), device: row.big(at: inbox &+ 12))
            : Unit(message: 0, device: 0)
        walk.pass(row)  // collapse_key
        let platform = walk.place
        var pattern: UInt8 = 0
        for bit in 0..<3 as Range<UInt8> where walk.pass(row) { pattern |= 1 &<< bit }
        devices = (platform, walk.place)
        walk.pass(row)  // sdk_version, which is no dimension
        let locale = walk.place
        for bit in 3..<6 as Range<UInt8> where walk.pass(row) { pattern |= 1 &<< bit }
        self.pattern = pattern
        places = (locale, walk.place)
        walk.pass(row)  // person_id
        walk.pass(row, width: 8)  // occurred_at
        walk.pass(row)  // occurred_raw
        walk.pass(row, width: 8)  // sent_at
        if walk.isTrue(row), type == .action { states |= Self.click | Self.openingAction }
        if walk.isTrue(row) { states |= Self.test }
        if walk.isTrue(row) { states |= Self.silent }
        let typeRaw = walk.place
        if walk.pass(row), type == .received, row.text(at: Int(platform), is: "ios"),
            row.text(at: Int(typeRaw), is: "push_receive")
        {
            states |= Self.ambiguousReceipt
        }
        self.states = states
        details = (action, walk.place)
        let properties = Int(walk.place) &+ 4
        let mayNameGroup =
            walk.pass(row) && EventDetail.isIn(row.extracting(properties..<row.byteCount))
        hasDetail = type == .action || hasCategory || mayNameGroup
        guard walk.isAtEnd else { return nil }
    }

    /// An event without its texts, from what another daemon told of it.
    ///
    /// - Parameter states: Among them exactly one of a type.
    /// - Returns: Nil if they are of no type.
    package init?(
        key: Identity, unit: Unit, inbox: Unit?, time: Int64, propertiesHash: Int64?,
        states: UInt32, pattern: UInt8, hasCampaign: Bool, isLate: Bool
    ) {
        guard let type = EventType(rawValue: Int16(states.trailingZeroBitCount)) else { return nil }
        self.key = key
        self.unit = unit
        inboxUnit = inbox ?? Unit(message: 0, device: 0)
        self.time = time
        propertiesBits = propertiesHash ?? 0
        hasProperties = propertiesHash != nil
        self.states = states
        self.type = type
        self.pattern = pattern
        self.hasCampaign = hasCampaign
        self.isLate = isLate
        starts = (0, 0, 0)
        devices = (0, 0)
        places = (0, 0)
        details = (0, 0)
        hasDetail = false
    }

    /// Appends what the event says beside the six dimensions, as four fields of a COPY row: action, category,
    /// push group and topic.
    ///
    /// An `action` without an id has an empty one, so that it is told from no action at all.
    package func appendDetail(_ row: RawSpan, to output: inout [UInt8]) {
        let action = Int(details.action)
        if type != .action {
            output.appendNull()
        } else if row.length(at: action) < 0 {
            output.append(field: RawSpan())
        } else {
            output.append(field: row.field(at: action))
        }
        let category = action &+ 4 &+ max(0, row.length(at: action))
        if row.length(at: category) < 0 {
            output.appendNull()
        } else {
            output.append(field: row.field(at: category))
        }
        let properties = Int(details.properties)
        let hasProperties = properties > 0 && row.length(at: properties) >= 0
        EventDetail.append(
            from: hasProperties ? row.field(at: properties) : RawSpan(), to: &output)
    }

    /// How many columns ``selection`` has.
    package static let columns = EventColumn.count

    /// SQL for whether an event `e` opened the app.
    package static let opensApp =
        "tapline.opens_app(e.type, e.opens_app, e.app, e.category_id, e.action_id)"

    /// Says whether an action, which does not say so itself, opened the app.
    package mutating func setOpensApp(_ opensApp: Bool) {
        precondition(type == .action, "only an action may open the app")
        let bits = Self.click | Self.openingAction
        states = opensApp ? states | bits : states & ~bits
    }

    /// A SELECT list whose rows have the places of ``EventColumn``; what is not read here is null.
    package static let selection: String = {
        let read: Set<EventColumn> = [
            .key, .unit, .eventTime, .receivedAt, .type, .timeRule, .propertiesHash, .app,
            .campaignID, .inboxUnit, .platform, .appVersion, .osVersion, .locale, .country,
            .provider, .isTest, .silent, .typeRaw, .actionID, .categoryID,
        ]
        return EventColumn.allCases.map { column in
            switch column {
            case .opensApp: opensApp
            case .properties: "tapline.group_properties(e.properties)"
            default: read.contains(column) ? "e.\(column.name)" : "NULL"
            }
        }.joined(separator: ", ")
    }()
}

/// Goes over the fields of a row, one after the other, and checks their lengths.
private struct FieldWalk {
    /// Where the present field begins, with its length.
    private(set) var place: UInt32
    /// The last place where it may begin: each one from it on takes four bytes at least.
    private var last: UInt32
    /// The bytes of the row; 0 from the first field on that is none, and then nothing is at the end.
    private var count: UInt32

    /// - Parameter fields: How many there are; the row has room for as many nulls.
    init(_ row: RawSpan, from start: Int, fields: Int) {
        count = UInt32(row.byteCount)
        place = UInt32(start)
        last = count - UInt32(4 * fields)
        precondition(place <= last, "a row too short for its fields")
    }

    /// Whether all fields were gone over, and nothing follows.
    var isAtEnd: Bool { place == count }

    /// Goes over a field.
    ///
    /// - Parameter width: The bytes of its value, or 0 if they may be as many as there are.
    /// - Returns: Whether it has a value.
    @inline(__always) @discardableResult
    mutating func pass(_ row: RawSpan, width: UInt32 = 0) -> Bool {
        let length = row.halfWord(at: Int(place)).byteSwapped
        place = place &+ 4
        last = last &+ 4
        if length == .max { return false }
        guard length <= last &- place, width == 0 || length == width else {
            // What follows is read as if this were a null: it is within the row all the same.
            count = 0
            return false
        }
        place = place &+ length
        return true
    }

    /// Goes over a boolean field.
    @inline(__always)
    mutating func isTrue(_ row: RawSpan) -> Bool {
        let value = Int(place) &+ 4
        return pass(row, width: 1) && row.byte(at: value) != 0
    }
}

extension RawSpan {
    /// Whether the field at `start`, with its length, is `word` in any case; `word` is in lower case.
    fileprivate func text(at start: Int, is word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard halfWord(at: start).byteSwapped == UInt32(count) else { return false }
        return (0..<count).allSatisfy { index in
            let byte = self.byte(at: start &+ 4 &+ index)
            let isUpper = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            return unsafe (isUpper ? byte | 32 : byte) == word.utf8Start[index]
        }
    }

    /// The length of the field at `start`; -1 for a null.
    fileprivate func length(at start: Int) -> Int {
        Int(Int32(bitPattern: halfWord(at: start).byteSwapped))
    }

    /// The value of the field at `start`, which is no null.
    @_lifetime(copy self)
    fileprivate func field(at start: Int) -> RawSpan {
        extracting(start &+ 4..<start &+ 4 &+ length(at: start))
    }

    /// Eight bytes, most significant first.
    @inline(__always)
    fileprivate func big(at index: Int) -> UInt64 { word(at: index).byteSwapped }

    /// Two bytes, most significant first.
    @inline(__always)
    fileprivate func short(at index: Int) -> UInt16 {
        UInt16(truncatingIfNeeded: halfWord(at: index)).byteSwapped
    }
}
