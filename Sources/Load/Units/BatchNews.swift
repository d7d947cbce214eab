import Event
import JSONLines

/// The stored events of one batch without their texts, for the daemons that did not load them: to read
/// this takes a tenth of the time that it takes to read the rows again.
///
/// All integers are little-endian:
/// ```
/// u32 events     each: UnitEvent.append, u32 campaign label, u32 profile label
/// u32 campaigns  each: u32 label, u32 bytes, app and campaign_id as COPY takes them
/// u32 profiles   each: u32 label, u32 bytes, the six dimensions as COPY takes them
/// ```
/// A label is a number of the daemon that wrote it.
struct BatchNews {
    private var events: [UInt8] = []
    private(set) var count = 0
    private var campaigns: Set<UInt32> = []
    private var profiles: Set<UInt32> = []
    private var last: (campaign: UInt32, profile: UInt32)?

    private static let eventBytes = UnitEvent.encodedBytes + 8

    mutating func append(_ event: UnitEvent, campaign: UInt32, profile: UInt32) {
        event.append(to: &events)
        events.append(littleEndian: campaign)
        events.append(littleEndian: profile)
        count += 1
        if last == nil || last! != (campaign, profile) {
            campaigns.insert(campaign)
            profiles.insert(profile)
            last = (campaign, profile)
        }
    }

    /// The bytes of the batch.
    func bytes(_ open: borrowing OpenSegment) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(events.count + 4096)
        bytes.append(littleEndian: UInt32(count))
        bytes += events
        func put(_ labels: Set<UInt32>, _ fields: (UInt32) -> [UInt8]) {
            bytes.append(littleEndian: UInt32(labels.count))
            for label in labels {
                let content = fields(label)
                bytes.append(littleEndian: label)
                bytes.append(littleEndian: UInt32(content.count))
                bytes += content
            }
        }
        put(campaigns) { open.campaignFields($0) }
        put(profiles) { open.profileFields($0) }
        return bytes
    }

    /// Reads a batch that another daemon wrote.
    struct Reader {
        private(set) var events: [UnitEvent] = []
        private(set) var contents: [EventContent] = []
        private(set) var campaigns: [UInt32] = []
        private(set) var profiles: [UInt32] = []

        /// - Returns: Nil if the bytes are not those of a batch; nothing is changed then.
        init?(_ bytes: RawSpan, _ open: inout OpenSegment) {
            guard bytes.byteCount >= 12 else { return nil }
            let count = Int(bytes.halfWord(at: 0))
            var index = 4 + count * BatchNews.eventBytes
            guard index <= bytes.byteCount else { return nil }
            var labels: [[UInt32: UInt32]] = [[:], [:]]
            var hashes: [UInt32: UInt64] = [:]
            for kind in 0..<2 {
                guard bytes.byteCount - index >= 4 else { return nil }
                let entries = Int(bytes.halfWord(at: index))
                index += 4
                for _ in 0..<entries {
                    guard bytes.byteCount - index >= 8 else { return nil }
                    let label = bytes.halfWord(at: index)
                    let end = index + 8 + Int(bytes.halfWord(at: index + 4))
                    guard end <= bytes.byteCount else { return nil }
                    let fields = bytes.extracting(index + 8..<end)
                    if kind == 0 {
                        labels[0][label] = open.campaignLabel(fields, as: label)
                        hashes[label] = Self.campaignHash(fields)
                    } else {
                        labels[1][label] = open.profileLabel(fields, as: label)
                    }
                    index = end
                }
            }
            guard index == bytes.byteCount else { return nil }
            events.reserveCapacity(count)
            var last: (theirs: UInt32, ours: UInt32, hash: UInt64?)?
            for number in 0..<count {
                let start = 4 + number * BatchNews.eventBytes
                let theirs = bytes.halfWord(at: start + UnitEvent.encodedBytes)
                let profile = bytes.halfWord(at: start + UnitEvent.encodedBytes + 4)
                if last == nil || last!.theirs != theirs {
                    guard let ours = labels[0][theirs] else { return nil }
                    last = (theirs, ours, hashes[theirs])
                }
                guard let event = UnitEvent(encoded: bytes, at: start),
                    let ours = labels[1][profile]
                else { return nil }
                events.append(event)
                contents.append(
                    EventContent(campaign: last!.hash, propertiesHash: event.propertiesHash))
                campaigns.append(last!.ours)
                profiles.append(ours)
            }
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
    fileprivate mutating func append(littleEndian value: UInt32) {
        unsafe Swift.withUnsafeBytes(of: value.littleEndian) { unsafe append(contentsOf: $0) }
    }
}
