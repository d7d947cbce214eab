import Event
import JSONLines

/// The stored events of one batch without their texts, for the daemons that did not load it: to read
/// this takes a tenth of the time that it takes to read the rows again.
///
/// All integers are little-endian:
/// ```
/// u32 0x3453574E ("NWS4")
/// u32 events, u32 inboxes, u32 campaigns, u32 profiles
/// an event:    u64 key high, key low, message, device, i64 time in microseconds since 1970 UTC,
///              i64 hash of the properties,
///              u32 states with flags (bit 24 late, 25 has a hash, 26 has an inbox unit),
///              u32 index of the campaign, u32 index of the profile
/// an inbox:    u64 message, u64 device; of the events that have one, in their order
/// a campaign:  u32 label, u32 bytes, app and campaign_id as COPY takes them
/// a profile:   u32 label, u32 bytes, the six dimensions and any details as COPY takes them
/// ```
/// Of a label, which is a number of the daemon that wrote it, only the flags mean something to others.
struct BatchNews {
    /// Room for the head, and the events.
    private var content: [UInt8]
    private(set) var count = 0
    private var inboxes: [Unit] = []
    private var campaigns = Indexes()
    private var profiles = Indexes()

    /// How many bytes of a batch are a row of the table: a little less than a page of it, so that a row fills one
    /// and needs no piece elsewhere, and finds room in any that was emptied.
    static let pieceBytes = 8_000

    fileprivate enum Format {
        static let magic: UInt32 = 0x3453_574E
        static let headerBytes = 20
        static let eventBytes = 60
        static let states: UInt32 = 0xFF_FFFF
        static let isLate: UInt32 = 1 << 24
        static let hasHash: UInt32 = 1 << 25
        static let hasInbox: UInt32 = 1 << 26
    }

    /// An event, in the order of its bytes.
    private struct Record: BitwiseCopyable {
        let keyHigh: UInt64
        let keyLow: UInt64
        let message: UInt64
        let device: UInt64
        let time: Int64
        let hash: Int64
        let states: UInt32
        let campaign: UInt32
        let profile: UInt32
    }

    /// Gives labels numbers from 0, in the order in which they come.
    private struct Indexes {
        private(set) var labels: [UInt32] = []
        /// By the number within a label: its index and 1.
        private var known: [UInt32] = []

        mutating func index(of label: UInt32, number: Int) -> UInt32 {
            if number >= known.count {
                known += Array(repeating: 0, count: max(number + 1 - known.count, known.count))
            }
            if known[number] == 0 {
                labels.append(label)
                known[number] = UInt32(labels.count)
            }
            return known[number] &- 1
        }
    }

    /// - Parameters:
    ///   - capacity: How many events to have room for.
    ///   - buffer: Memory to use, as ``finish(_:)`` has given it for an earlier batch; empty afterwards.
    init(capacity: Int, reusing buffer: inout [UInt8]) {
        content = []
        swap(&content, &buffer)
        content.removeAll(keepingCapacity: true)
        content.append(contentsOf: repeatElement(0, count: Format.headerBytes))
        // Inboxes, campaigns and profiles follow the events.
        content.reserveCapacity(capacity * Format.eventBytes + 64 << 10)
    }

    mutating func append(_ event: UnitEvent, campaign: UInt32, profile: UInt32) {
        var states = event.states | (event.isLate ? Format.isLate : 0)
        if event.propertiesHash != nil { states |= Format.hasHash }
        if let inbox = event.inbox {
            states |= Format.hasInbox
            inboxes.append(inbox)
        }
        let record = Record(
            keyHigh: event.key.high.littleEndian, keyLow: event.key.low.littleEndian,
            message: event.unit.message.littleEndian, device: event.unit.device.littleEndian,
            time: event.time.littleEndian, hash: (event.propertiesHash ?? 0).littleEndian,
            states: states.littleEndian,
            campaign: campaigns.index(of: campaign, number: CampaignLabel.number(campaign))
                .littleEndian,
            profile: profiles.index(of: profile, number: ProfileLabel.number(profile))
                .littleEndian)
        unsafe Swift.withUnsafeBytes(of: record) { bytes in
            unsafe content.append(
                contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<Format.eventBytes]))
        }
        count += 1
    }

    /// The bytes of the batch; this is of no further use.
    mutating func finish(_ open: borrowing OpenSegment) -> [UInt8] {
        // In place: there are 3 MB of a full batch.
        var bytes: [UInt8] = []
        swap(&bytes, &content)
        var head: [UInt8] = []
        for value in [
            Int(Format.magic), count, inboxes.count, campaigns.labels.count, profiles.labels.count,
        ] { head.append(littleEndian: UInt32(value)) }
        bytes.replaceSubrange(..<Format.headerBytes, with: head)
        for inbox in inboxes {
            bytes.append(littleEndian: inbox.message)
            bytes.append(littleEndian: inbox.device)
        }
        func put(_ labels: [UInt32], _ fields: (UInt32) -> [UInt8]) {
            for label in labels {
                let content = fields(label)
                bytes.append(littleEndian: label)
                bytes.append(littleEndian: UInt32(content.count))
                bytes += content
            }
        }
        put(campaigns.labels) { open.campaignFields($0) }
        put(profiles.labels) { open.profileFields($0) }
        return bytes
    }

    /// Reads a batch that another daemon wrote, event by event.
    struct Reader {
        /// How many events there are.
        let count: Int
        private let inboxes: Int
        private var campaigns: [(label: UInt32, hash: UInt64?)] = []
        private var profiles: [UInt32] = []
        /// The numbers of the events that name an inbox message.
        private var withInbox: [Int] = []

        /// An event with the labels that its texts have here.
        struct Entry {
            let event: UnitEvent
            let content: EventContent
            let campaign: UInt32
            let profile: UInt32
        }

        /// Checks all of the batch, and finds out what its labels are here.
        ///
        /// - Parameter bytes: The batch, for all calls the same.
        /// - Returns: Nil if the bytes are not those of a batch; nothing of weight is changed then.
        init?(_ bytes: RawSpan, _ open: inout OpenSegment) {
            guard bytes.byteCount >= Format.headerBytes, bytes.halfWord(at: 0) == Format.magic
            else { return nil }
            func size(_ index: Int) -> Int { Int(bytes.halfWord(at: index * 4)) }
            count = size(1)
            inboxes = Format.headerBytes + count * Format.eventBytes
            var index = inboxes + size(2) * 16
            guard index <= bytes.byteCount else { return nil }
            for entry in 0..<size(3) + size(4) {
                guard bytes.byteCount - index >= 8 else { return nil }
                let label = bytes.halfWord(at: index)
                let end = index + 8 + Int(bytes.halfWord(at: index + 4))
                guard end <= bytes.byteCount else { return nil }
                let fields = bytes.extracting(index + 8..<end)
                if entry < size(3) {
                    campaigns.append(
                        (open.campaignLabel(fields, as: label), Self.campaignHash(fields)))
                } else {
                    profiles.append(open.profileLabel(fields, as: label))
                }
                index = end
            }
            guard index == bytes.byteCount, isSound(bytes), withInbox.count == size(2)
            else { return nil }
        }

        /// Whether each event is one, and has its labels; finds those with an inbox unit.
        private mutating func isSound(_ bytes: RawSpan) -> Bool {
            for number in 0..<count {
                let at = place(number)
                let states = bytes.halfWord(at: at &+ 48)
                guard states.trailingZeroBitCount < EventType.allCases.count,
                    Int(bytes.halfWord(at: at &+ 52)) < campaigns.count,
                    Int(bytes.halfWord(at: at &+ 56)) < profiles.count
                else { return false }
                if states & Format.hasInbox != 0 { withInbox.append(number) }
            }
            return true
        }

        private func place(_ number: Int) -> Int {
            Format.headerBytes &+ number &* Format.eventBytes
        }

        /// The event of a number below ``count``.
        func entry(_ number: Int, _ bytes: RawSpan) -> Entry {
            let at = place(number)
            let states = bytes.halfWord(at: at &+ 48)
            let campaign = campaigns[Int(bytes.halfWord(at: at &+ 52))]
            let profile = profiles[Int(bytes.halfWord(at: at &+ 56))]
            let hash = propertiesHash(at, bytes)
            let (key, content) = key(number, bytes)
            guard
                let event = UnitEvent(
                    key: key, unit: unit(at &+ 16, bytes), inbox: inbox(number, states, bytes),
                    time: Int64(bitPattern: bytes.word(at: at &+ 32)), propertiesHash: hash,
                    states: states & Format.states, pattern: ProfileLabel.pattern(profile),
                    hasCampaign: !CampaignLabel.isNone(campaign.label),
                    isLate: states & Format.isLate != 0)
            else { preconditionFailure("an event of another daemon that is none") }
            return Entry(
                event: event, content: content, campaign: campaign.label, profile: profile)
        }

        /// The key of the event of a number, and what tells a conflict from a duplicate.
        func key(_ number: Int, _ bytes: RawSpan) -> (Identity, EventContent) {
            let at = place(number)
            let campaign = campaigns[Int(bytes.halfWord(at: at &+ 52))]
            return (
                Identity(high: bytes.word(at: at), low: bytes.word(at: at &+ 8)),
                EventContent(campaign: campaign.hash, propertiesHash: propertiesHash(at, bytes))
            )
        }

        private func propertiesHash(_ at: Int, _ bytes: RawSpan) -> Int64? {
            bytes.halfWord(at: at &+ 48) & Format.hasHash != 0
                ? Int64(bitPattern: bytes.word(at: at &+ 40)) : nil
        }

        /// The message of the event of a number; 0 if it has none.
        func message(_ number: Int, _ bytes: RawSpan) -> UInt64 {
            bytes.word(at: place(number) &+ 16)
        }

        /// Whether an event says something of other messages than its own, or has none.
        func isLinked(_ number: Int, _ bytes: RawSpan) -> Bool {
            message(number, bytes) == 0
                || bytes.halfWord(at: place(number) &+ 48) & Format.hasInbox != 0
        }

        /// Whether an event has no device.
        func isLoose(_ number: Int, _ bytes: RawSpan) -> Bool {
            bytes.word(at: place(number) &+ 24) == 0
        }

        private func inbox(_ number: Int, _ states: UInt32, _ bytes: RawSpan) -> Unit? {
            guard states & Format.hasInbox != 0 else { return nil }
            var (low, high) = (0, withInbox.count)
            while low < high {
                let middle = (low + high) / 2
                if withInbox[middle] < number { low = middle + 1 } else { high = middle }
            }
            return unit(inboxes &+ low &* 16, bytes)
        }

        private func unit(_ at: Int, _ bytes: RawSpan) -> Unit {
            Unit(message: bytes.word(at: at), device: bytes.word(at: at &+ 8))
        }

        /// The hash of the campaign's text, as ``EventContent`` has it.
        private static func campaignHash(_ fields: RawSpan) -> UInt64? {
            guard fields.byteCount >= 4 else { return nil }
            let app = Int(fields.halfWord(at: 0).byteSwapped)
            guard fields.byteCount >= app + 8,
                fields.halfWord(at: app + 4) != .max
            else { return nil }
            return contentHash(fields.extracting(app + 8..<fields.byteCount))
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(littleEndian value: some FixedWidthInteger) {
        unsafe Swift.withUnsafeBytes(of: value.littleEndian) { unsafe append(contentsOf: $0) }
    }
}
