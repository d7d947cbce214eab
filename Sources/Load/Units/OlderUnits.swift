import Event
import Postgres

/// What closed segments hold of the units, messages and keys of a batch.
struct OlderUnits: ~Copyable {
    struct Known {
        /// Its events, with their rows.
        var events: [UnitEvent] = []
        var rows: [[UInt8]] = []
        /// The segments that these are from.
        var segments: Set<Int> = []
        /// Whether reports compute the unit from its events.
        var isSpecial = false
        /// Whether there are more events, too many to be read.
        var isHeavy = false
    }

    private(set) var units: [Unit: Known] = [:]
    /// The keys that were found, in units and outside of them.
    var keys = KeyTable()
    private var messages: [UInt64: UInt32] = [:]

    /// Takes an event from row `row` of an answer to a SELECT of ``UnitEvent/selection``.
    mutating func add(_ answer: borrowing PostgresResult, _ row: Int, segment: Int) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(384)
        bytes.append(0 as UInt8)
        bytes.append(0 as UInt8)
        for column in 0..<UnitEvent.columns {
            if answer.isNull(row, column) {
                bytes.append(UInt32.max)
            } else {
                let value = answer.bytes(row, column)
                bytes.append(UInt32(value.byteCount))
                unsafe value.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
            }
        }
        guard let event = UnitEvent(row: bytes.rawSpan, columns: UnitEvent.columns) else {
            preconditionFailure("a row of the event table that is none")
        }
        keys.insert(event.key, EventContent(event, bytes.rawSpan))
        var marks: UInt32 = 0
        if event.type == .sent, event.hasCampaign { marks |= MessageState.sender }
        if !event.hasCampaign { marks |= MessageState.orphan }
        if event.unit.device == 0 { marks |= MessageState.loose }
        mark(event.unit.message, marks)
        units[event.unit, default: Known()].events.append(event)
        units[event.unit]?.rows.append(bytes)
        units[event.unit]?.segments.insert(segment)
    }

    /// Takes a key with its content: columns unit, key, properties_hash, campaign_id.
    mutating func addKey(_ answer: borrowing PostgresResult, _ row: Int) {
        keys.insert(
            Identity(uuid: answer.bytes(row, 1)),
            EventContent(
                campaign: answer.isNull(row, 3) ? nil : contentHash(answer.bytes(row, 3)),
                propertiesHash: answer.int64(row, 2)))
    }

    /// Takes a unit out; nil if nothing is known of it.
    mutating func take(_ unit: Unit) -> Known? {
        units.isEmpty ? nil : units.removeValue(forKey: unit)
    }

    mutating func setSpecial(_ unit: Unit) { units[unit]?.isSpecial = true }

    /// Notes a unit that has too many events to be read; such ones are special.
    mutating func addHeavy(_ unit: Unit) {
        units[unit, default: Known()].isSpecial = true
        units[unit]?.isHeavy = true
    }

    func isHeavy(_ unit: Unit) -> Bool { units.isEmpty ? false : units[unit]?.isHeavy ?? false }

    /// Marks of ``MessageState``.
    func marks(of message: UInt64) -> UInt32 { messages.isEmpty ? 0 : messages[message] ?? 0 }

    mutating func mark(_ message: UInt64, _ marks: UInt32) {
        if marks != 0 { messages[message, default: 0] |= marks }
    }

    /// The content stored with a key that was found.
    func content(of key: Identity) -> EventContent? {
        keys.count == 0 ? nil : keys.content(of: key)
    }
}

extension [UInt8] {
    /// Appends an integer, most significant byte first.
    mutating func append(_ value: UInt32) {
        unsafe Swift.withUnsafeBytes(of: value.bigEndian) { unsafe append(contentsOf: $0) }
    }

    /// Appends a unit in the binary form of uuid.
    mutating func append(_ unit: Unit) {
        let halves = (unit.message.bigEndian, unit.device.bigEndian)
        unsafe Swift.withUnsafeBytes(of: halves) { unsafe append(contentsOf: $0) }
    }
}
