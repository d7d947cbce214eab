import Event
import JSONLines
import Platform

/// Writes the events of a run: as lines that are sent, and as rows that must then be stored.
package struct EventMaker: Sendable {
    package let plan: BenchPlan
    private let prefix: [UInt8]
    private let app: [UInt8]

    /// - Parameter app: The app of the rows; lines do not have it.
    package init(_ plan: BenchPlan, app: String = "") {
        self.plan = plan
        prefix = Array(plan.prefix.utf8)
        self.app = Array(app.utf8)
    }

    /// The event of a number.
    package func event(_ number: Int) -> BenchEvent { BenchEvent(number, of: plan) }

    /// The lines of a body, each with its newline.
    package func lines(ofBody body: Int) -> [UInt8] {
        var output = ByteBuffer(capacity: plan.batch * 300)
        plan.forEachNumber(ofBody: body) { appendLine(event($0), to: &output) }
        return output.array
    }

    /// Appends a line with its newline.
    package func appendLine(_ event: BenchEvent, to output: inout ByteBuffer) {
        output.append(#"{"type":""# as StaticString)
        output.append(event.word)
        output.append(Ascii.quote)
        for field in BenchField.allCases {
            let start = output.count
            output.append(#",""# as StaticString)
            output.append(field.name)
            output.append(#"":""# as StaticString)
            if appendValue(field, of: event, to: &output) {
                output.append(Ascii.quote)
            } else {
                output.truncate(to: start)
            }
        }
        output.append(#","occurred_at":""# as StaticString)
        EventTime.format(event.occurredAt(plan), into: &output)
        output.append(Ascii.quote)
        if let opensApp = event.opensApp {
            output.append(#","opens_app":"# as StaticString)
            output.append(opensApp ? "true" : "false" as StaticString)
        }
        let start = output.count
        output.append(#","properties":"# as StaticString)
        if !appendProperties(of: event, to: &output) { output.truncate(to: start) }
        output.append("}\n" as StaticString)
    }

    /// Appends the fields of ``BenchRow`` but its last, as PostgreSQL's binary COPY has them: Int32
    /// length, -1 for null, and value, big-endian.
    package func appendRow(_ event: BenchEvent, to output: inout ByteBuffer) {
        let at = event.occurredAt(plan) - BenchRow.postgresEpoch
        output.append(bigEndian: 2)
        output.append(UInt8(0))
        output.append(UInt8(event.type.rawValue))
        output.append(bigEndian: 2)
        output.append(zeros: 2)  // The device's own time is believed.
        for _ in 0..<2 {
            output.append(bigEndian: 8)
            output.append(bigEndian: UInt32(truncatingIfNeeded: at >> 32))
            output.append(bigEndian: UInt32(truncatingIfNeeded: at))
        }
        Self.append(&output) { output in
            guard let opensApp = event.opensApp else { return false }
            output.append(opensApp ? UInt8(1) : 0)
            return true
        }
        Self.append(&output) { output in
            guard event.type.isCustom else { return false }
            output.append(event.word)
            return true
        }
        for field in BenchField.allCases {
            Self.append(&output) { appendValue(field, of: event, to: &$0) }
        }
        Self.append(&output) { output in
            for byte in app { output.append(byte) }
            return true
        }
        Self.append(&output) { appendProperties(of: event, to: &$0) }
        output.append(bigEndian: 4)
        output.append(zeros: 4)  // No other field is there.
    }

    /// Appends a field of a row: null if `value` has none.
    private static func append(
        _ output: inout ByteBuffer, _ value: (inout ByteBuffer) -> Bool
    ) {
        let start = output.count
        output.append(bigEndian: UInt32.max)
        guard value(&output) else { return }
        let count = UInt32(output.count - start - 4)
        for index in 0..<4 {
            output[start + index] = UInt8(truncatingIfNeeded: count >> (24 - 8 * UInt32(index)))
        }
    }

    /// Appends the text of a field, which needs no escapes; false if the event has none.
    private func appendValue(
        _ field: BenchField, of event: BenchEvent, to output: inout ByteBuffer
    ) -> Bool {
        func id(_ letter: StaticString, _ number: Int?) -> Bool {
            guard let number else { return false }
            for byte in prefix { output.append(byte) }
            output.append(letter)
            output.append("\(number)")
            return true
        }
        func phone(_ words: [StaticString], _ shift: UInt64) -> Bool {
            guard event.namesPhone else { return false }
            output.append(words[Int(event.phoneBits >> shift & 0xFF) % words.count])
            return true
        }
        switch field {
        case .campaignID: return id("c", event.namesCampaign ? event.campaignOfMessage : nil)
        case .messageUID: return id("m", event.message)
        case .deviceID: return id("d", event.device)
        case .eventUID: return id("e", event.hasEventUID ? event.number : nil)
        case .actionID:
            guard event.kind == .action else { return false }
            output.append("later" as StaticString)
            return true
        case .platform: return phone(["ios", "android", "web"], 0)
        case .appVersion: return phone(["4.2.0", "4.3.1", "5.0.0"], 8)
        case .osVersion: return phone(["13", "14", "17.5"], 16)
        case .locale: return phone(["de-DE", "en-GB", "fr-FR", "ja-JP"], 24)
        case .country: return phone(["DE", "GB", "FR", "JP"], 32)
        }
    }

    /// Appends the properties as they are sent and, unless they are rewritten, stored.
    private func appendProperties(of event: BenchEvent, to output: inout ByteBuffer) -> Bool {
        switch event.kind {
        case .screenView:
            output.append(
                #"{"screen":"caf\u00e9 \"Ø\" \\ 😀","depth":[1,2.5,{"x":null}],"# as StaticString)
            output.append(#""n":"# as StaticString)
        case .purchase:
            output.append(#"{"price":12.50,"currency":"EUR","items":["a","b"],"# as StaticString)
            output.append(#""n":"# as StaticString)
        case .clicked where event.ownBits & 2 == 0, .heartbeat, .launch:
            output.append(#"{"n":"# as StaticString)
        default: return false
        }
        output.append("\(event.number)")
        output.append(UInt8(ascii: "}"))
        return true
    }

    /// The number of the event that a row or a line has the identity of; nil if it is of no event of the
    /// run.
    ///
    /// - Parameter typeRaw: The word of a custom type, as it was sent.
    package func number(
        messageUID: RawSpan?, eventUID: RawSpan?, type: EventType, typeRaw: RawSpan?
    ) -> Int? {
        if let eventUID {
            guard let number = id(UInt8(ascii: "e"), eventUID), number < plan.events else {
                return nil
            }
            return event(number).hasEventUID ? number : nil
        }
        guard let messageUID, let story = id(UInt8(ascii: "m"), messageUID),
            story <= plan.events / BenchEvent.perStory
        else { return nil }
        let first = story * BenchEvent.perStory
        for number in first..<min(first + BenchEvent.perStory, plan.events) {
            let event = event(number)
            guard event.message != nil, !event.hasEventUID, event.type == type else { continue }
            guard type.isCustom else { return number }
            if let typeRaw, typeRaw.is(event.word) { return number }
        }
        return nil
    }

    /// The number in an id of the run.
    private func id(_ letter: UInt8, _ text: RawSpan) -> Int? {
        let head = prefix.count + 1
        guard text.byteCount > head, text.byteCount <= head + 15,
            prefix.indices.allSatisfy({ text.byte(at: $0) == prefix[$0] }),
            text.byte(at: head - 1) == letter
        else { return nil }
        var number = 0
        for index in head..<text.byteCount {
            let digit = Int(text.byte(at: index)) - 0x30
            // One number has one text.
            guard (0...9).contains(digit), digit > 0 || index > head || text.byteCount == head + 1
            else { return nil }
            number = number * 10 + digit
        }
        return number
    }
}

/// The fields of a line that are texts, in the order of ``BenchRow``.
enum BenchField: CaseIterable {
    case campaignID, messageUID, deviceID, eventUID, actionID, platform, appVersion, osVersion
    case locale, country

    /// Its name in a line and in the table.
    var name: StaticString {
        switch self {
        case .campaignID: "campaign_id"
        case .messageUID: "message_uid"
        case .deviceID: "device_id"
        case .eventUID: "event_uid"
        case .actionID: "action_id"
        case .platform: "platform"
        case .appVersion: "app_version"
        case .osVersion: "os_version"
        case .locale: "locale"
        case .country: "country"
        }
    }
}

/// What is read of a stored event.
enum BenchRow {
    /// Midnight of 2000-01-01 UTC, where PostgreSQL counts from, in microseconds since 1970.
    static let postgresEpoch: Microseconds = 946_684_800_000_000

    /// The columns in their order. The last two: how many of the fields that no event of a run has are
    /// there, and the identity, for messages.
    static let columns =
        ["type", "time_rule", "event_time", "occurred_at", "opens_app", "type_raw"]
        + BenchField.allCases.map { "\($0.name)" } + [
            "app", "properties",
            """
            num_nonnulls(category_id, inbox_message_uid, collapse_key, sdk_version, provider,
                person_id, sent_at, is_test, silent)
            """, "key",
        ]

    /// What the columns are called in messages.
    static let names = columns.map { $0.hasPrefix("num_nonnulls") ? "another field" : $0 }

    static let type = 0
    static let typeRaw = 5
    static let messageUID = 7
    static let eventUID = 9
    static let properties = columns.count - 3
    static let key = columns.count - 1
}
