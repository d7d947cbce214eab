/// Small values that one owner lists and forgets, line after line; the memory stays.
///
/// In place of an array for the reason that ``ByteBuffer`` gives.
@safe
public struct GrowingTable<Element: BitwiseCopyable & Sendable>: ~Copyable, @unchecked Sendable {
    // SAFETY: `base` is `capacity` elements, of which `used` are initialised, from `init` to
    // `deinit`, and never leaves.
    @usableFromInline var base: UnsafeMutablePointer<Element>
    @usableFromInline var capacity: Int
    @usableFromInline var used = 0

    /// An empty table.
    public init(capacity: Int = 64) {
        unsafe base = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit { unsafe base.deallocate() }

    /// How many there are.
    @inlinable @inline(__always)
    public var count: Int { used }

    /// Whether there is none.
    @inlinable @inline(__always)
    public var isEmpty: Bool { used == 0 }

    /// The element at `index`, which is checked.
    @inlinable @inline(__always)
    public subscript(index: Int) -> Element {
        precondition(index >= 0 && index < used)
        return unsafe base[index]
    }

    /// Appends an element.
    @inlinable @inline(__always)
    public mutating func append(_ element: Element) {
        if used == capacity { grow() }
        unsafe base[used] = element
        used &+= 1
    }

    /// Forgets all elements.
    @inlinable @inline(__always)
    public mutating func removeAll() { used = 0 }

    @usableFromInline @inline(never)
    mutating func grow() {
        let new = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe new.update(from: base, count: used)
        unsafe base.deallocate()
        unsafe base = new
        capacity *= 2
    }
}
