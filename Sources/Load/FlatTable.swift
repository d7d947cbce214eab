import CPlatform
import Event
import Glibc

/// A key of a ``FlatTable``: a few words, of which none of use are all zero bits.
protocol FlatKey: BitwiseCopyable, Equatable {
    /// Whether it is all zero bits, which marks an empty slot.
    var isVacant: Bool { get }
    /// Bits that are spread evenly, the lowest ones too.
    var spread: UInt64 { get }
}

extension Identity: FlatKey {
    var isVacant: Bool { high == 0 && low == 0 }
    // SHA-256 output.
    var spread: UInt64 { low }
}

extension Unit: FlatKey {
    var isVacant: Bool { message == 0 && device == 0 }
    // Both halves are SHA-256 output; all units of a message share one half, so both count.
    var spread: UInt64 { message ^ device &* 0x9E37_79B9_7F4A_7C15 }
}

/// A hash table in one block of memory: open addressing with linear probing over a power of two of
/// slots, at most three quarters full.
///
/// Slots are places in that block: one stays good until the next insertion.
@safe
struct FlatTable<Key: FlatKey, Value: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
    private struct Entry {
        var key: Key
        var value: Value
    }

    // SAFETY: `mask + 1` entries from `init` to `deinit`, all bits zero where the key is vacant: keys
    // and values are bitwise copyable, and a value is read only beside a key.
    private var entries: UnsafeMutablePointer<Entry>
    private var mask: Int
    /// How many keys it holds.
    private(set) var count = 0

    /// A table that takes `capacity` keys before it grows.
    init(capacity: Int = 768) {
        var slots = 1024
        while slots * 3 < capacity * 4 { slots *= 2 }
        unsafe entries = Self.allocate(slots)
        mask = slots - 1
    }

    deinit { unsafe tapline_free_zeroed(entries, (mask + 1) * MemoryLayout<Entry>.stride) }

    private static func allocate(_ slots: Int) -> UnsafeMutablePointer<Entry> {
        guard let block = unsafe tapline_allocate_zeroed(slots * MemoryLayout<Entry>.stride) else {
            fatalError("out of memory for a table of \(slots) slots")
        }
        return unsafe block.bindMemory(to: Entry.self, capacity: slots)
    }

    /// Asks memory for the place of `key`, which will be wanted soon.
    @inline(__always)
    func prefetch(_ key: Key) {
        unsafe tapline_prefetch(entries + (Int(truncatingIfNeeded: key.spread) & mask))
    }

    /// Where `key` is, or nil.
    func slot(of key: Key) -> Int? {
        let slot = place(of: key)
        return unsafe entries[slot].key.isVacant ? nil : slot
    }

    /// Where `key` is, after adding it with `value` unless it was there.
    mutating func slot(adding key: Key, _ value: Value) -> (slot: Int, isNew: Bool) {
        if (count &+ 1) &* 4 > (mask &+ 1) &* 3 { grow() }
        let slot = place(of: key)
        guard unsafe entries[slot].key.isVacant else { return (slot, false) }
        unsafe entries[slot] = Entry(key: key, value: value)
        count &+= 1
        return (slot, true)
    }

    /// The value in a slot that holds a key.
    subscript(slot: Int) -> Value {
        get {
            precondition(slot >= 0 && slot <= mask)
            return unsafe entries[slot].value
        }
        set {
            precondition(slot >= 0 && slot <= mask)
            unsafe entries[slot].value = newValue
        }
    }

    /// The key in a slot.
    func key(at slot: Int) -> Key {
        precondition(slot >= 0 && slot <= mask)
        return unsafe entries[slot].key
    }

    /// The value of `key`, or nil.
    func value(of key: Key) -> Value? { slot(of: key).map { self[$0] } }

    /// Calls `body` once with the slot of each key, in no order.
    func forEachSlot(_ body: (Int) -> Void) {
        for slot in 0...mask where unsafe !entries[slot].key.isVacant { body(slot) }
    }

    /// Forgets every key and keeps the memory.
    mutating func removeAll() {
        unsafe memset(entries, 0, (mask + 1) * MemoryLayout<Entry>.stride)
        count = 0
    }

    /// The slot that holds `key`, or the empty one where it would go.
    private func place(of key: Key) -> Int {
        precondition(!key.isVacant)
        var slot = Int(truncatingIfNeeded: key.spread) & mask
        // SAFETY: slot <= mask; ends, as at least a quarter of the slots is empty.
        while unsafe !entries[slot].key.isVacant && entries[slot].key != key {
            slot = (slot &+ 1) & mask
        }
        return slot
    }

    private mutating func grow() {
        let oldEntries = unsafe entries
        let oldSlots = mask + 1
        unsafe entries = Self.allocate(oldSlots * 2)
        mask = oldSlots * 2 - 1
        for index in 0..<oldSlots where unsafe !oldEntries[index].key.isVacant {
            let slot = unsafe place(of: oldEntries[index].key)
            unsafe entries[slot] = oldEntries[index]
        }
        unsafe tapline_free_zeroed(oldEntries, oldSlots * MemoryLayout<Entry>.stride)
    }
}
