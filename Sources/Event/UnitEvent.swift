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
    ///   - row: As ``EventRow`` is, or its columns up to ``EventColumn/typeRaw``.
    ///   - columns: How many it has.
    /// - Returns: Nil if it is no such row.
    package init?(row: RawSpan, columns: Int = EventColumn.count) {
        let count = row.byteCount
        guard count >= 82, columns > EventColumn.typeRaw.rawValue, columns <= EventColumn.count
        else { return nil }
        // The bytes of each column whose width is fixed; 0 for the others.
        let widths: InlineArray<33, UInt8> = [
            16, 16, 8, 8, 2, 2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 8,
            1, 1, 1, 0, 0,
        ]
        var starts = InlineArray<33, UInt32>(repeating: 0)
        var present: UInt64 = 0
        var index = 2
        for column in 0..<columns {
            guard count &- index >= 4 else { return nil }
            starts[column] = UInt32(truncatingIfNeeded: index)
            let length = Int(Int32(bitPattern: row.halfWord(at: index).byteSwapped))
            index &+= 4
            if length < 0 {
                guard length == -1 else { return nil }
                continue
            }
            guard length <= count &- index, widths[column] == 0 || length == Int(widths[column])
            else { return nil }
            present |= 1 &<< UInt64(truncatingIfNeeded: column)
            index &+= length
        }
        // The first six are never null, so they are at fixed places.
        guard index == count, present & 63 == 63 else { return nil }
        key = Identity(high: row.big(at: 6), low: row.big(at: 14))
        unit = Unit(message: row.big(at: 26), device: row.big(at: 34))
        time = Int64(bitPattern: row.big(at: 46)) &+ EventEncoder.postgresEpoch
        let received = Int64(bitPattern: row.big(at: 58)) &+ EventEncoder.postgresEpoch
        isLate = received &- time > 24 * 3600 * 1_000_000
        func has(_ column: EventColumn) -> Bool {
            present &>> UInt64(truncatingIfNeeded: column.index) & 1 != 0
        }
        func start(_ column: EventColumn) -> UInt32 { starts[column.index] }
        guard let type = EventType(rawValue: Int16(bitPattern: row.short(at: 70))),
            TimeRule(rawValue: Int16(bitPattern: row.short(at: 76))) != nil
        else { return nil }
        self.type = type
        hasProperties = has(.propertiesHash)
        propertiesBits = hasProperties ? Int64(bitPattern: row.big(at: 82)) : 0
        self.starts = (start(.app), start(.campaignID), start(.messageUID))
        hasCampaign = has(.campaignID)
        if has(.inboxUnit) {
            let at = Int(start(.inboxUnit)) &+ 4
            inboxUnit = Unit(message: row.big(at: at), device: row.big(at: at &+ 8))
        } else {
            inboxUnit = Unit(message: 0, device: 0)
        }
        devices = (start(.platform), start(.sdkVersion))
        places = (start(.locale), start(.personID))
        let bits = present &>> UInt64(truncatingIfNeeded: EventColumn.platform.index)
        // Without sdk_version, which is no dimension.
        pattern = UInt8(truncatingIfNeeded: bits & 7 | bits &>> 1 & 56)
        func isTrue(_ column: EventColumn) -> Bool {
            has(column) && row.byte(at: Int(start(column)) &+ 4) != 0
        }
        var states: UInt32 = 1 &<< UInt32(truncatingIfNeeded: type.rawValue)
        if type == .clicked { states |= Self.click }
        if type == .action, isTrue(.opensApp) { states |= Self.click | Self.openingAction }
        if type != .action, has(.actionID) { states |= Self.strayAction }
        if isTrue(.isTest) { states |= Self.test }
        if isTrue(.silent) { states |= Self.silent }
        if type == .received, has(.typeRaw), has(.platform),
            row.text(at: Int(start(.platform)), is: "ios"),
            row.text(at: Int(start(.typeRaw)), is: "push_receive")
        {
            states |= Self.ambiguousReceipt
        }
        self.states = states
        details = (start(.actionID), start(.properties))
        let mayNameGroup =
            columns > EventColumn.properties.index && has(.properties)
            && EventDetail.isIn(row.extracting(Int(start(.properties)) &+ 4..<count))
        hasDetail = type == .action || has(.categoryID) || mayNameGroup
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
