import Event

/// What tells a conflict from a duplicate when two events have the same key.
///
/// 0 stands for absent; a hash that happens to be 0 is stored as 1.
struct EventContent: Equatable, Sendable {
    /// Hash of the campaign's text.
    var campaign: UInt64
    /// Hash of the canonical properties; only events with an `event_uid` have it.
    var properties: UInt64

    init(campaign: UInt64, properties: UInt64) {
        self.campaign = campaign
        self.properties = properties
    }

    /// The content of a row: the hash of its campaign's text and its column `properties_hash`.
    init(campaign: UInt64?, propertiesHash: Int64?) {
        self.campaign = campaign ?? 0
        properties = propertiesHash.map { $0 == 0 ? 1 : UInt64(bitPattern: $0) } ?? 0
    }

    /// The content of an event, whose row is `row`.
    init(_ event: UnitEvent, _ row: RawSpan) {
        let text = event.campaign.lowerBound + 4..<event.campaign.upperBound
        self.init(
            campaign: event.hasCampaign ? contentHash(row.extracting(text)) : nil,
            propertiesHash: event.propertiesHash)
    }

    /// What becomes of an event whose key is already stored with this content (docs/events.md):
    /// a field that both carry and that differs makes a conflict, absent against present does not.
    func verdict(for incoming: EventContent) -> StoredVerdict {
        let campaignsDiffer =
            campaign != 0 && incoming.campaign != 0 && campaign != incoming.campaign
        let propertiesDiffer =
            properties != 0 && incoming.properties != 0 && properties != incoming.properties
        return campaignsDiffer || propertiesDiffer ? .conflict : .duplicate
    }
}

/// What became of an accepted event at load.
package enum StoredVerdict: Sendable {
    case stored
    case duplicate
    case conflict
    case deadLettered
}

/// Hashes a campaign's text for ``EventContent``.
///
/// It lives in memory and in ``IdentityFile``, so it may change between versions if the format of that changes,
/// too. It need not resist forgery: who
/// forges a collision only makes a conflict of their own count as a duplicate.
func contentHash(_ bytes: RawSpan) -> UInt64 {
    let count = bytes.byteCount
    var hash: UInt64 = 0x9E37_79B9_7F4A_7C15 ^ UInt64(count)
    var index = 0
    while count &- index > 8 {
        // SAFETY: index + 8 < count by the loop condition.
        let word = unsafe bytes.unsafeLoadUnaligned(
            fromUncheckedByteOffset: index, as: UInt64.self)
        hash = mixed(hash ^ word)
        index &+= 8
    }
    // The last eight bytes, some of which may have been read before; of less than eight all, some twice.
    var rest: UInt64 = 0
    if count >= 8 {
        // SAFETY: it ends where the bytes end.
        rest = unsafe bytes.unsafeLoadUnaligned(
            fromUncheckedByteOffset: count &- 8, as: UInt64.self)
    } else if count >= 4 {
        // SAFETY: both are within the bytes.
        let (first, last) = unsafe (
            bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: 0, as: UInt32.self),
            bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: count &- 4, as: UInt32.self)
        )
        rest = UInt64(first) << 32 | UInt64(last)
    } else if count > 0 {
        // SAFETY: each is a byte of the bytes.
        let (first, middle, last) = unsafe (
            bytes.unsafeLoad(fromUncheckedByteOffset: 0, as: UInt8.self),
            bytes.unsafeLoad(fromUncheckedByteOffset: count / 2, as: UInt8.self),
            bytes.unsafeLoad(fromUncheckedByteOffset: count &- 1, as: UInt8.self)
        )
        rest = UInt64(first) << 16 | UInt64(middle) << 8 | UInt64(last)
    }
    hash = mixed(hash ^ rest)
    return hash == 0 ? 1 : hash
}

/// The finalizer of MurmurHash3 (Austin Appleby, public domain).
@inline(__always)
func mixed(_ value: UInt64) -> UInt64 {
    var hash = value
    hash = (hash ^ (hash >> 33)) &* 0xFF51_AFD7_ED55_8CCD
    hash = (hash ^ (hash >> 33)) &* 0xC4CE_B9FE_1A85_EC53
    return hash ^ (hash >> 33)
}
