import JSONLines
import Testing

@testable import Event

struct UnitEventTests {
    private static let fixed: [EventColumn: Int] = [
        .key: 16, .unit: 16, .eventTime: 8, .receivedAt: 8, .type: 2, .timeRule: 2,
        .propertiesHash: 8, .inboxUnit: 16, .occurredAt: 8, .sentAt: 8, .opensApp: 1, .isTest: 1,
        .silent: 1,
    ]

    /// A row by the columns that it has, one bit each, and the fields' lengths where these are wrong.
    private static func row(
        _ present: UInt64, _ type: EventType, texts: [EventColumn: String] = [:],
        wrong: [EventColumn: Int32] = [:]
    ) -> [UInt8] {
        var row: [UInt8] = [0, UInt8(EventRow.fieldCount)]
        for column in EventColumn.allCases {
            var value: [UInt8] = []
            if column == .type {
                value = [0, UInt8(type.rawValue)]
            } else if column == .timeRule {
                value = [0, UInt8(TimeRule.corrected.rawValue)]
            } else if let width = fixed[column] {
                value = (1...width).map { UInt8(column.rawValue &* 5 &+ $0) }
            } else {
                value = Array((texts[column] ?? column.name).utf8)
            }
            let isThere = present >> UInt64(column.rawValue) & 1 != 0
            let length = wrong[column] ?? (isThere ? Int32(value.count) : -1)
            for shift in [24, 16, 8, 0] as [Int32] {
                row.append(UInt8(truncatingIfNeeded: length >> shift))
            }
            if isThere { row += value }
        }
        return row
    }

    private static func event(_ row: [UInt8]) -> UnitEvent? { UnitEvent(row: row.rawSpan) }

    /// All columns, and those that every row has.
    private static let all: UInt64 = 1 << UInt64(EventColumn.count) - 1
    private static let always: UInt64 = 63

    /// Few fields, many, and others.
    private static func patterns() -> [UInt64] {
        var patterns = [always, all]
        for column in 6..<UInt64(EventColumn.count) {
            patterns += [always | 1 << column, all & ~(1 << column)]
        }
        var state: UInt64 = 7
        for _ in 0..<300 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            patterns.append((state >> 20 & all) | always)
        }
        return patterns
    }

    /// Against the row as it is read field by field.
    @Test(
        arguments: [
            ([:], "{}"),
            ([.platform: "iOS", .typeRaw: "Push_Receive"], #"{"a":"a longer value","topic":"t"}"#),
            ([.platform: "ios", .typeRaw: "push_received"], #"{"push_group":"g"}"#),
        ] as [([EventColumn: String], String)])
    func everyFieldIsFoundWhicheverAreThere(
        texts: [EventColumn: String], properties: String
    ) throws {
        let texts = texts.merging([.properties: properties]) { _, new in new }
        for (number, present) in Self.patterns().enumerated() {
            let type = EventType.allCases[number % EventType.allCases.count]
            let bytes = Self.row(present, type, texts: texts)
            let row = EventRow(checked: bytes, 0..<bytes.count)
            let event = try #require(Self.event(bytes), "\(present)")
            func has(_ column: EventColumn) -> Bool { row.field(column) != nil }
            func place(_ column: EventColumn) -> Int {
                EventColumn.allCases.prefix(column.rawValue).reduce(2) {
                    $0 + 4 + (row.field($1)?.count ?? 0)
                }
            }
            #expect(event.key == row.key && event.unit == row.unit)
            #expect(event.time == row.eventTime && event.type == type)
            #expect(event.propertiesHash == row.propertiesHash)
            #expect(event.isLate == (row.receivedAt - row.eventTime > 86_400_000_000))
            #expect(event.app == place(.app)..<place(.campaignID))
            #expect(event.campaign == place(.campaignID)..<place(.messageUID))
            #expect(event.device == place(.platform)..<place(.sdkVersion))
            #expect(event.place == place(.locale)..<place(.personID))
            #expect(event.hasCampaign == has(.campaignID))
            #expect((event.inbox != nil) == has(.inboxUnit))
            if let inbox = row.field(.inboxUnit), let unit = event.inbox {
                let value = bytes[inbox].reduce(into: (0, 0) as (UInt64, UInt64)) {
                    $0 = ($0.0 << 8 | $0.1 >> 56, $0.1 << 8 | UInt64($1))
                }
                #expect(unit.message == value.0 && unit.device == value.1)
            }
            let dimensions: [EventColumn] = [
                .platform, .appVersion, .osVersion, .locale, .country, .provider,
            ]
            for (bit, column) in dimensions.enumerated() {
                #expect((event.pattern >> UInt8(bit) & 1 != 0) == has(column))
            }
            var states: UInt32 = 1 << UInt32(type.rawValue)
            if type == .clicked || type == .action && has(.opensApp) {
                states |= UnitEvent.click
            }
            if type == .action && has(.opensApp) { states |= UnitEvent.openingAction }
            if type != .action && has(.actionID) { states |= UnitEvent.strayAction }
            if has(.isTest) { states |= UnitEvent.test }
            if has(.silent) { states |= UnitEvent.silent }
            if type == .received, row.text(.platform)?.lowercased() == "ios",
                row.text(.typeRaw)?.lowercased() == "push_receive"
            {
                states |= UnitEvent.ambiguousReceipt
            }
            #expect(event.states == states)
            let namesGroup = has(.properties) && properties != "{}"
            #expect(event.hasDetail == (type == .action || has(.categoryID) || namesGroup))
            var detail: [UInt8] = []
            event.appendDetail(bytes.rawSpan, to: &detail)
            var expected: [UInt8] = []
            func append(_ text: String?) {
                guard let text else { return expected += [255, 255, 255, 255] }
                expected += [0, 0, 0, UInt8(text.utf8.count)] + Array(text.utf8)
            }
            append(type == .action ? row.text(.actionID) ?? "" : nil)
            append(row.text(.categoryID))
            append(namesGroup && properties.contains("push_group") ? "g" : nil)
            append(namesGroup && properties.contains("topic") ? "t" : nil)
            #expect(detail == expected)
        }
    }

    @Test func aFalseFlagIsNone() throws {
        for column in [EventColumn.opensApp, .isTest, .silent] {
            var bytes = Self.row(Self.all, .action)
            let field = try #require(EventRow(checked: bytes, 0..<bytes.count).field(column))
            let before = try #require(Self.event(bytes)).states
            bytes[field.lowerBound] = 0
            #expect(try #require(Self.event(bytes)).states != before)
        }
    }

    @Test(arguments: EventColumn.allCases) func anotherLengthIsRefused(column: EventColumn) {
        for present in [Self.all, Self.always | 1 << UInt64(column.rawValue)] {
            #expect(Self.event(Self.row(present, .received)) != nil)
            let width = Self.fixed[column] ?? column.name.utf8.count
            for length in [-2, 0, width - 1, width + 1, width + 4, 1 << 20, .max, .min]
            where length != width {
                let bytes = Self.row(present, .received, wrong: [column: Int32(clamping: length)])
                #expect(Self.event(bytes) == nil, "\(length) bytes")
            }
        }
    }

    @Test func whatEndsEarlyOrLateIsRefused() {
        let bytes = Self.row(Self.all, .received)
        for count in bytes.indices { #expect(Self.event(Array(bytes.prefix(count))) == nil) }
        #expect(Self.event(bytes + [0]) == nil)
        #expect(Self.event(bytes + [255, 255, 255, 255]) == nil)
        for column in EventColumn.allCases.prefix(6) {
            #expect(Self.event(Self.row(Self.all & ~(1 << UInt64(column.rawValue)), .sent)) == nil)
        }
    }

    /// Against the search of the standard library, at all places of texts of all lengths.
    @Test(arguments: [
        #""topic""#, #""push_group""#, #""topi""#, #""push_groups""#, #""to"#, #""pu"#, #""t"#, "",
    ])
    func groupsAreFoundAtAllPlaces(word: String) {
        for count in 0..<60 {
            for place in 0...count {
                let filler = { String(repeating: "\"", count: $0) }
                let text = filler(place) + word + filler(count - place)
                let isThere = text.contains("\"topic\"") || text.contains("\"push_group\"")
                #expect(EventDetail.isIn(Array(text.utf8).rawSpan) == isThere, "\(text)")
            }
        }
    }
}
