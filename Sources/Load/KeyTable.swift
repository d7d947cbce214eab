import Event

/// The keys of one unsealed segment with their contents: exact, 32 bytes an entry.
///
/// Open addressing with linear probing over a power of two of slots, at most three quarters full.
/// Keys are SHA-256 output, so the low bits are the hash.
@safe
struct KeyTable: ~Copyable, @unchecked Sendable {
    private struct Entry {
        var key: Identity
        var content: EventContent
    }

    // SAFETY: points to `mask + 1` initialized entries from `init` to `deinit`.
    private var entries: UnsafeMutablePointer<Entry>
    private var mask: Int
    /// How many keys it holds.
    private(set) var count = 0

    private static let empty = Entry(
        key: Identity(high: 0, low: 0), content: EventContent(campaign: 0, properties: 0))

    init(capacity: Int = 1024) {
        var slots = 1024
        while slots * 3 < capacity * 4 { slots *= 2 }
        unsafe entries = .allocate(capacity: slots)
        unsafe entries.initialize(repeating: Self.empty, count: slots)
        mask = slots - 1
    }

    deinit { unsafe entries.deallocate() }

    /// The content stored with `key`, or nil.
    func content(of key: Identity) -> EventContent? {
        let slot = self.slot(of: key)
        let entry = unsafe entries[slot]
        return isEmpty(entry) ? nil : entry.content
    }

    /// Adds `key` unless it is there.
    ///
    /// - Returns: The content already stored with it, or nil when it was added.
    @discardableResult
    mutating func insert(_ key: Identity, _ content: EventContent) -> EventContent? {
        if (count + 1) * 4 > (mask + 1) * 3 { grow() }
        let slot = self.slot(of: key)
        if unsafe !isEmpty(entries[slot]) { return unsafe entries[slot].content }
        unsafe entries[slot] = Entry(key: Self.storable(key), content: content)
        count += 1
        return nil
    }

    /// Forgets every key and keeps the memory.
    mutating func removeAll() {
        unsafe entries.update(repeating: Self.empty, count: mask + 1)
        count = 0
    }

    /// Calls `body` once with each key, in no order.
    func forEach(_ body: (Identity, EventContent) -> Void) {
        for slot in 0...mask {
            let entry = unsafe entries[slot]
            if !isEmpty(entry) { body(entry.key, entry.content) }
        }
    }

    /// The all-zero key marks an empty slot, so it is kept as its neighbour: one key in 2^128.
    private static func storable(_ key: Identity) -> Identity {
        key.high == 0 && key.low == 0 ? Identity(high: 0, low: 1) : key
    }

    private func isEmpty(_ entry: Entry) -> Bool {
        entry.key.high == 0 && entry.key.low == 0
    }

    /// The slot that holds `key`, or the empty one where it would go.
    private func slot(of key: Identity) -> Int {
        let wanted = Self.storable(key)
        var slot = Int(truncatingIfNeeded: wanted.low) & mask
        // SAFETY: slot <= mask; ends, as at least a quarter of the slots is empty.
        while unsafe !isEmpty(entries[slot]) && entries[slot].key != wanted {
            slot = (slot &+ 1) & mask
        }
        return slot
    }

    private mutating func grow() {
        let oldEntries = unsafe entries
        let oldSlots = mask + 1
        unsafe entries = .allocate(capacity: oldSlots * 2)
        unsafe entries.initialize(repeating: Self.empty, count: oldSlots * 2)
        mask = oldSlots * 2 - 1
        for index in 0..<oldSlots where unsafe !isEmpty(oldEntries[index]) {
            let slot = unsafe self.slot(of: oldEntries[index].key)
            unsafe entries[slot] = oldEntries[index]
        }
        unsafe oldEntries.deallocate()
    }
}
