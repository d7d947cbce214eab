import JSONLines

/// What makes two events the same, always within an app.
///
/// The first 128 bits of the SHA-256 of the rule's number in one byte and then app, device, type,
/// `message_uid` and
/// 1. with an `event_uid`: the `event_uid`;
/// 2. else for a status type: `action_id`;
/// 3. else `occurred_at` as it was sent and the canonical properties.
///
/// Each field is its length in four bytes, big-endian, and its bytes; an absent one is the length
/// 0xFFFFFFFF alone. The type is the known word, that of a custom event the word as sent.
package struct Identity: Hashable, Comparable, BitwiseCopyable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package static func < (left: Identity, right: Identity) -> Bool {
        left.high != right.high ? left.high < right.high : left.low < right.low
    }
}

/// What engagement is counted by: a message on a device, within an app.
package struct Unit: Hashable, BitwiseCopyable, Sendable {
    /// The first 64 bits of the SHA-256 of app and `message_uid`, as fields of ``Identity``; 0 without
    /// a message.
    package let message: UInt64
    /// The same of app and `device_id`; 0 without a device.
    package let device: UInt64

    package init(message: UInt64, device: UInt64) {
        self.message = message
        self.device = device
    }
}

/// What an event is found and counted by.
struct EventKeys {
    let identity: Identity
    /// The hash of the properties, under rule 1.
    let propertiesHash: Int64?
    let unit: Unit
    /// The unit that the inbox message of the event would be.
    let inbox: Unit?
}

/// Computes the keys of events; keeps its buffers and the last device.
package struct EventHasher: ~Copyable {
    /// The rules of ``Identity``.
    private enum Rule: UInt8 { case eventUID = 1, status, content }

    private var input = HashInput()
    private var messageInput = HashInput()
    private var deviceInput = HashInput()
    private var canonical = CanonicalJSON()
    private var canonicalBytes = ByteBuffer()
    /// Many bodies come from one device, so its hash is kept.
    private var lastDeviceInput = HashInput()
    private var lastDevice: UInt64 = 0

    package init() {}

    /// The keys by rule 1, 2 or 3.
    ///
    /// The caller has made sure that rule 3 has what it needs.
    mutating func keys(
        of event: borrowing EventFields, _ source: EventSource, plain: borrowing PlainMembers,
        app: RawSpan
    ) -> EventKeys {
        let propertiesHash = fillInput(of: event, source, plain, app)
        let message = event.texts[.messageUID]
        let device = event.texts[.deviceID]
        let inbox = event.texts[.inboxMessageUID]
        messageInput.fill(message, source, app)
        deviceInput.fill(device, source, app)
        let isLastDevice = deviceInput.isEqual(to: lastDeviceInput)
        if isLastDevice { deviceInput.clear() }
        let digests = Digest.three(
            input.rawSpan, messageInput.rawSpan, deviceInput.rawSpan)
        if !isLastDevice, device.isPresent {
            lastDevice = Self.nonZero(digests.2)
            swap(&deviceInput, &lastDeviceInput)
        }
        let deviceHash = device.isPresent ? lastDevice : 0
        var inboxUnit: Unit?
        if inbox.isPresent {
            messageInput.fill(inbox, source, app)
            let none = RawSpan()
            let digest = Digest.three(messageInput.rawSpan, none, none).0
            inboxUnit = Unit(message: Self.nonZero(digest), device: deviceHash)
        }
        return EventKeys(
            identity: Identity(high: digests.0.high, low: digests.0.low),
            propertiesHash: propertiesHash,
            unit: Unit(
                message: message.isPresent ? Self.nonZero(digests.1) : 0, device: deviceHash),
            inbox: inboxUnit)
    }

    /// Puts what the identity is the hash of into `input`.
    ///
    /// - Returns: The hash of the properties, under rule 1.
    private mutating func fillInput(
        of event: borrowing EventFields, _ source: EventSource, _ plain: borrowing PlainMembers,
        _ app: RawSpan
    ) -> Int64? {
        let rule: Rule =
            event.texts[.eventUID].isPresent
            ? .eventUID : event.type.isStatus ? .status : .content
        let properties = event.texts[.properties]
        let hasCanonical = properties.isPresent && rule != .status
        if hasCanonical {
            canonicalBytes.truncate(to: 0)
            if properties.rangeInLine == plain.object {
                canonical.append(source.line, plain, to: &canonicalBytes)
            } else {
                let bytes = source.bytes(of: properties)
                canonical.append(bytes, 0..<bytes.byteCount, to: &canonicalBytes)
            }
        }
        input.clear()
        input.append(rule.rawValue)
        input.append(app)
        input.append(event.texts[.deviceID], source)
        if event.type == .custom {
            input.append(event.texts[.typeRaw], source)
        } else {
            input.append(event.type.word)
        }
        input.append(event.texts[.messageUID], source)
        var hash: Int64?
        switch rule {
        case .eventUID:
            input.append(event.texts[.eventUID], source)
            if hasCanonical {
                // No identity: it only tells whether a duplicate says something else, and who
                // forges a collision hides the conflict with an event of their own.
                hash = Int64(bitPattern: FastHash.hash(canonicalBytes.rawSpan))
            }
        case .status:
            input.append(event.texts[.actionID], source)
        case .content:
            input.append(event.occurredAsSent, source)
            if hasCanonical {
                input.append(canonicalBytes)
            } else {
                input.append(.absent, source)
            }
        }
        input.pad()
        return hash
    }

    private static func nonZero(_ digest: Digest) -> UInt64 { digest.high == 0 ? 1 : digest.high }
}

/// The text that a hash is taken of.
struct HashInput: ~Copyable {
    private var bytes = ByteBuffer()

    var rawSpan: RawSpan {
        @_lifetime(borrow self)
        get { bytes.rawSpan }
    }

    /// Makes it whole blocks, as SHA-256 wants them.
    mutating func pad() {
        let count = bytes.count
        bytes.append(0x80)
        bytes.append(zeros: (56 &- bytes.count) & 63)
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: count &>> 29))
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: count &<< 3))
    }

    /// Makes it app and `text`, padded; without a text nothing.
    mutating func fill(_ text: TextRange, _ source: EventSource, _ app: RawSpan) {
        clear()
        guard text.isPresent else { return }
        append(app)
        append(text, source)
        pad()
    }

    func isEqual(to other: borrowing HashInput) -> Bool {
        bytes.rawSpan.isEqual(to: other.bytes.rawSpan)
    }

    mutating func clear() { bytes.truncate(to: 0) }

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    @inline(__always)
    mutating func append(_ text: TextRange, _ source: EventSource) {
        if text.isPresent {
            append(source.bytes(of: text))
        } else {
            bytes.append(bigEndian: .max)
        }
    }

    @inline(__always)
    mutating func append(_ field: RawSpan) { bytes.append(field: field) }

    mutating func append(_ field: borrowing ByteBuffer) { append(field.rawSpan) }

    mutating func append(_ word: StaticString) {
        word.withUTF8Buffer { unsafe append(RawSpan(_unsafeElements: $0)) }
    }
}
