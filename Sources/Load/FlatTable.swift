import CPlatform
import Event
import Glibc

/// A key of a ``FlatTable``: a few words.
protocol FlatKey: BitwiseCopyable, Equatable {
    /// Bits of which the lowest 32 are spread evenly.
    var spread: UInt64 { get }
}

extension Identity: FlatKey {
    // SHA-256 output.
    var spread: UInt64 { low }
}

extension Unit: FlatKey {
    // Both halves are SHA-256 output; all units of a message share one half, so both count.
    var spread: UInt64 { message ^ device &* 0x9E37_79B9_7F4A_7C15 }
}

/// A hash table: the entries in the order in which they came, and an index of eight bytes a slot to find
/// them by, with linear probing over a power of two of slots, at most three quarters full.
///
/// Most keys are new. One of these costs a look at the index, which is small enough to be near, and is
/// appended; no entry is moved when the table grows, and to forget all is to empty the index.
@safe
struct FlatTable<Key: FlatKey, Value: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
    private struct Entry {
        var key: Key
        var value: Value
    }

    // SAFETY: `mask + 1` words from `init` to `deinit`. 0 is an empty slot; else the lower half is the number
    // of an entry, which is below `count`, and 1, and the upper half the lowest bits of its key's spread.
    private var index: UnsafeMutablePointer<UInt64>
    private var mask: Int
    // SAFETY: room for `room(mask + 1)` entries from `init` to `deinit`, of which the first `count` are there.
    private var entries: UnsafeMutablePointer<Entry>
    /// How many keys it holds.
    private(set) var count = 0

    /// A table that takes `capacity` keys before it grows.
    init(capacity: Int = 768) {
        var slots = 1024
        while Self.room(slots) < capacity { slots *= 2 }
        unsafe index = Self.allocate(slots)
        unsafe entries = Self.allocate(Self.room(slots))
        mask = slots - 1
    }

    deinit {
        unsafe tapline_free_zeroed(index, (mask + 1) * MemoryLayout<UInt64>.stride)
        unsafe tapline_free_zeroed(entries, Self.room(mask + 1) * MemoryLayout<Entry>.stride)
    }

    /// How many entries an index of some slots may have.
    private static func room(_ slots: Int) -> Int { slots / 4 * 3 }

    private static func allocate<T>(_ count: Int) -> UnsafeMutablePointer<T> {
        guard let block = unsafe tapline_allocate_zeroed(count * MemoryLayout<T>.stride) else {
            fatalError("out of memory for a table of \(count) entries")
        }
        return unsafe block.bindMemory(to: T.self, capacity: count)
    }

    /// Asks memory for the place of `key`, which will be wanted soon.
    @inline(__always)
    func prefetch(_ key: Key) {
        unsafe tapline_prefetch(index + (Int(truncatingIfNeeded: key.spread) & mask))
    }

    /// Asks memory for the entry of `key`, or what is likely to be it; its place should have come by then.
    @inline(__always)
    func prefetchEntry(_ key: Key) {
        let slot = unsafe index[Int(truncatingIfNeeded: key.spread) & mask]
        // SAFETY: only a hint to memory; the number is that of an entry.
        if slot != 0 { unsafe tapline_prefetch(entries + (Int(slot & 0xFFFF_FFFF) &- 1)) }
    }

    /// Where `key` is, or nil.
    func slot(of key: Key) -> Int? {
        let number = find(key, key.spread).number
        return number < 0 ? nil : number
    }

    /// Where `key` is, after adding it with `value` unless it was there.
    mutating func slot(adding key: Key, _ value: Value) -> (slot: Int, isNew: Bool) {
        let spread = key.spread
        var (place, number) = find(key, spread)
        if number >= 0 { return (number, false) }
        if count == Self.room(mask &+ 1) {
            grow()
            place = find(key, spread).place
        }
        // SAFETY: there is room for one more; the place is one of the index.
        unsafe (entries + count).initialize(to: Entry(key: key, value: value))
        count &+= 1
        unsafe index[place] = spread &<< 32 | UInt64(count)
        return (count &- 1, true)
    }

    /// The value in a slot that holds a key.
    subscript(slot: Int) -> Value {
        get {
            precondition(slot >= 0 && slot < count)
            return unsafe entries[slot].value
        }
        set {
            precondition(slot >= 0 && slot < count)
            unsafe entries[slot].value = newValue
        }
    }

    /// The key in a slot.
    func key(at slot: Int) -> Key {
        precondition(slot >= 0 && slot < count)
        return unsafe entries[slot].key
    }

    /// The value of `key`, or nil.
    func value(of key: Key) -> Value? { slot(of: key).map { self[$0] } }

    /// Calls `body` once with the slot of each key, in the order in which they were added.
    func forEachSlot(_ body: (Int) -> Void) {
        for slot in 0..<count { body(slot) }
    }

    /// Forgets every key and keeps the memory.
    mutating func removeAll() {
        unsafe memset(index, 0, (mask + 1) * MemoryLayout<UInt64>.stride)
        count = 0
    }

    /// The number of the entry of `key`, or -1, and the slot of the index where it is or would go.
    @inline(__always)
    private func find(_ key: Key, _ spread: UInt64) -> (place: Int, number: Int) {
        var place = Int(truncatingIfNeeded: spread) & mask
        // SAFETY: place <= mask; ends, as at least a quarter of the slots is empty.
        while true {
            let slot = unsafe index[place]
            if slot == 0 { return (place, -1) }
            if slot &>> 32 == spread & 0xFFFF_FFFF {
                let number = Int(slot & 0xFFFF_FFFF) &- 1
                if unsafe entries[number].key == key { return (place, number) }
            }
            place = (place &+ 1) & mask
        }
    }

    /// Fourfold: each index that was too small is memory that was cleared and filled in vain, which may take
    /// longer than all that was done with it.
    private mutating func grow() {
        let slots = mask + 1
        let more = slots * 4
        precondition(more <= 1 << 31, "a table of too many keys")
        guard
            let block = unsafe tapline_grow_zeroed(
                entries, Self.room(slots) * MemoryLayout<Entry>.stride,
                Self.room(more) * MemoryLayout<Entry>.stride)
        else { fatalError("out of memory for a table of \(more) slots") }
        unsafe entries = block.bindMemory(to: Entry.self, capacity: Self.room(more))
        let old = unsafe index
        unsafe index = Self.allocate(more)
        mask = more - 1
        for number in 0..<slots {
            let slot = unsafe old[number]
            guard slot != 0 else { continue }
            var place = Int(slot &>> 32) & mask
            while unsafe index[place] != 0 { place = (place &+ 1) & mask }
            unsafe index[place] = slot
        }
        unsafe tapline_free_zeroed(old, slots * MemoryLayout<UInt64>.stride)
    }
}
