import JSONLines

/// What an event says happened; the codes are those of `tapline.event_type`.
public enum EventType: Int16, CaseIterable, BitwiseCopyable, Sendable {
    /// A tracking event with a word of the client's own.
    case custom = 0
    case sent, failed, received, displayed, consumed, confirmed, clicked, action, dismissed
    case inboxReceived, inboxRead, inboxOpen, inboxDeleted
    case launch, inboxFetch, conversion

    /// Whether it is a custom tracking event.
    @inlinable @inline(__always)
    public var isCustom: Bool { if case .custom = self { true } else { false } }

    /// Whether it is a state of a message, and not a tracking event.
    package var isStatus: Bool { rawValue >= EventType.sent.rawValue && rawValue <= 13 }

    /// Whether it is a state of an inbox message.
    package var isInboxStatus: Bool { rawValue >= 10 && rawValue <= 13 }

    /// The known word; that of a custom event is `custom`.
    package var word: StaticString {
        switch self {
        case .custom: "custom"
        case .sent: "sent"
        case .failed: "failed"
        case .received: "received"
        case .displayed: "displayed"
        case .consumed: "consumed"
        case .confirmed: "confirmed"
        case .clicked: "clicked"
        case .action: "action"
        case .dismissed: "dismissed"
        case .inboxReceived: "inbox_received"
        case .inboxRead: "inbox_read"
        case .inboxOpen: "inbox_open"
        case .inboxDeleted: "inbox_deleted"
        case .launch: "launch"
        case .inboxFetch: "inbox_fetch"
        case .conversion: "conversion"
        }
    }

    /// The type that a word or one of its aliases names in any case, else `.custom`.
    package init(word bytes: RawSpan) {
        let word = LoweredWord(bytes)
        self =
            switch bytes.byteCount {
            case 4: word.is("sent") ? .sent : word.is("open") ? .clicked : .custom
            case 5: word.is("click") ? .clicked : .custom
            case 6: Self.ofSixBytes(word)
            case 7: word.is("clicked") ? .clicked : word.is("dismiss") ? .dismissed : .custom
            case 8: word.is("received") ? .received : word.is("consumed") ? .consumed : .custom
            case 9: Self.ofNineBytes(word)
            case 10: Self.ofTenBytes(word)
            case 11: word.is("inbox_fetch") ? .inboxFetch : .custom
            case 12: word.is("pushreceived") || word.is("push_receive") ? .received : .custom
            case 13: word.is("inbox_deleted") ? .inboxDeleted : .custom
            case 14: word.is("inbox_received") ? .inboxReceived : .custom
            default: .custom
            }
    }

    private static func ofSixBytes(_ word: LoweredWord) -> EventType {
        if word.is("action") || word.is("button") { return .action }
        if word.is("failed") { return .failed }
        if word.is("opened") { return .clicked }
        return word.is("launch") ? .launch : .custom
    }

    private static func ofNineBytes(_ word: LoweredWord) -> EventType {
        if word.is("displayed") { return .displayed }
        if word.is("confirmed") { return .confirmed }
        if word.is("dismissed") { return .dismissed }
        if word.is("clickthru") { return .clicked }
        if word.is("delivered") { return .received }
        return word.is("inboxopen") ? .inboxOpen : .custom
    }

    private static func ofTenBytes(_ word: LoweredWord) -> EventType {
        if word.is("inbox_open") { return .inboxOpen }
        if word.is("inbox_read") { return .inboxRead }
        return word.is("conversion") ? .conversion : .custom
    }
}

/// Up to 16 bytes with A to Z in lower case.
private struct LoweredWord {
    private var bytes = InlineArray<16, UInt8>(repeating: 0)

    @inline(__always)
    init(_ word: RawSpan) {
        for index in 0..<min(word.byteCount, 16) {
            let byte = word.byte(at: index)
            bytes[index] = byte &- 0x41 < 26 ? byte | 0x20 : byte
        }
    }

    /// Whether it is `text`, whose length the caller compared.
    @inline(__always)
    func `is`(_ text: StaticString) -> Bool {
        let span = bytes.span
        return unsafe span.bytes.matches(text, at: 0)
    }
}
