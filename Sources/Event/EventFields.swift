import JSONLines

/// The columns of `tapline.event` that the daemon writes, in their order.
public enum EventColumn: Int, CaseIterable, Sendable {
    case key, unit, eventTime, receivedAt, type, timeRule, propertiesHash
    case app, campaignID, messageUID, deviceID, eventUID, actionID, categoryID, inboxMessageUID
    case inboxUnit, collapseKey, platform, appVersion, osVersion, sdkVersion, locale, country
    case provider, personID, occurredAt, occurredRaw, sentAt, opensApp, isTest, silent, typeRaw
    case properties

    /// How many there are.
    public static let count = 33

    /// Its place in a row, from 0.
    // Inlined, unlike the raw value, which other modules have to call.
    @inlinable @inline(__always)
    var index: Int { unsafe Int(unsafeBitCast(self, to: UInt8.self)) }

    /// The name of the column.
    public var name: String { Self.names[rawValue] }

    private static let names = [
        "key", "unit", "event_time", "received_at", "type", "time_rule", "properties_hash",
        "app", "campaign_id", "message_uid", "device_id", "event_uid", "action_id", "category_id",
        "inbox_message_uid", "inbox_unit", "collapse_key", "platform", "app_version", "os_version",
        "sdk_version", "locale", "country", "provider", "person_id", "occurred_at", "occurred_raw",
        "sent_at", "opens_app", "is_test", "silent", "type_raw", "properties",
    ]
}

/// Where the text of a field is: in the line, or where the decoder put what it had to change.
public struct TextRange: Sendable, BitwiseCopyable {
    @usableFromInline let start: UInt32
    @usableFromInline let bytes: Int32
    @usableFromInline let isScratch: Bool

    @inlinable @inline(__always)
    init(start: UInt32, bytes: Int32, isScratch: Bool) {
        self.start = start
        self.bytes = bytes
        self.isScratch = isScratch
    }

    @inlinable @inline(__always)
    init(_ range: Range<Int>, isScratch: Bool) {
        self.init(
            start: UInt32(truncatingIfNeeded: range.lowerBound),
            bytes: Int32(truncatingIfNeeded: range.count), isScratch: isScratch)
    }

    /// No text.
    @inlinable public static var absent: TextRange {
        TextRange(start: 0, bytes: -1, isScratch: false)
    }

    /// Bytes of the line.
    @inlinable @inline(__always)
    public static func line(_ range: Range<Int>) -> TextRange {
        TextRange(range, isScratch: false)
    }

    /// Bytes that the decoder wrote.
    @inlinable @inline(__always)
    public static func scratch(_ range: Range<Int>) -> TextRange {
        TextRange(range, isScratch: true)
    }

    /// Whether there is a text; an empty one is a text.
    @inlinable @inline(__always)
    public var isPresent: Bool { bytes >= 0 }

    /// Its bytes; 0 when absent.
    @inlinable @inline(__always)
    public var count: Int { Int(Swift.max(bytes, 0)) }

    /// Where it is in the line, if it is there.
    @inlinable @inline(__always)
    public var rangeInLine: Range<Int>? { isScratch || bytes < 0 ? nil : range }

    @inlinable @inline(__always)
    var range: Range<Int> { Int(start)..<Int(start) &+ count }
}

/// What ``TextRange``s point into.
public struct EventSource: ~Escapable {
    @usableFromInline let line: RawSpan
    @usableFromInline let scratch: RawSpan

    /// - Parameters:
    ///   - line: The line as it came.
    ///   - scratch: What the decoder wrote.
    @inlinable @inline(__always) @_lifetime(copy line, copy scratch)
    public init(line: RawSpan, scratch: RawSpan) {
        self.line = line
        self.scratch = scratch
    }

    /// The bytes of a text.
    @inlinable @inline(__always) @_lifetime(copy self)
    public func bytes(of text: TextRange) -> RawSpan {
        text.isScratch ? scratch.extracting(text.range) : line.extracting(text.range)
    }
}

/// One text a column; those that hold no text stay absent.
public struct EventTexts: ~Copyable {
    @usableFromInline var ranges = FixedTable<TextRange>(
        repeating: .absent, count: EventColumn.count)
    /// The columns that have a text, one bit each by index; what `ranges` has of others is old.
    @usableFromInline var present: UInt64 = 0

    /// The text of a column.
    @inlinable @inline(__always)
    public subscript(column: EventColumn) -> TextRange {
        get { present &>> UInt64(column.index) & 1 == 1 ? ranges[column.index] : .absent }
        set {
            let bit: UInt64 = 1 &<< UInt64(column.index)
            if newValue.isPresent {
                ranges[column.index] = newValue
                present |= bit
            } else {
                present &= ~bit
            }
        }
    }

    mutating func clear() { present = 0 }

    /// The columns `first` to `last` that have a text, as in `present`.
    @inline(__always)
    func present(_ first: EventColumn, _ last: EventColumn) -> UInt64 {
        present & ((2 &<< UInt64(last.index)) &- (1 &<< UInt64(first.index)))
    }
}

/// One event as decoded: what the client said, checked and named.
package struct EventFields: ~Copyable {
    /// The known type, or `.custom` with the word in `texts[.typeRaw]`.
    package var type = EventType.custom
    /// The texts of the columns from campaign to properties.
    package var texts = EventTexts()
    /// `occurred_at` as the client sent it, for identity rule 3.
    package var occurredAsSent = TextRange.absent
    /// `occurred_at`, if it could be read.
    package var occurredAt: Int64?
    /// `sent_at` of the line, else of the request.
    package var sentAt: Int64?
    package var opensApp: Bool?
    package var isTest: Bool?
    package var silent: Bool?

    package init() {}

    /// Makes it what it was at first, but for its memory.
    package mutating func clear() {
        type = .custom
        texts.clear()
        occurredAsSent = .absent
        occurredAt = nil
        sentAt = nil
        opensApp = nil
        isTest = nil
        silent = nil
    }
}
