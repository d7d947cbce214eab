/// A fixed number of small values that one owner reads and writes, line after line.
///
/// In place of an array for the reason that ``ByteBuffer`` gives; of an `InlineArray` in a larger type
/// Swift 6.3.1 copies all to read one element.
@safe
public struct FixedTable<Element: BitwiseCopyable & Sendable>: ~Copyable, @unchecked Sendable {
    // SAFETY: `base` is `count` elements, initialised, from `init` to `deinit`, and never leaves.
    @usableFromInline let base: UnsafeMutablePointer<Element>
    /// How many there are.
    public let count: Int

    /// A table of equal elements.
    public init(repeating element: Element, count: Int) {
        unsafe base = .allocate(capacity: count)
        unsafe base.initialize(repeating: element, count: count)
        self.count = count
    }

    deinit { unsafe base.deallocate() }

    /// The element at `index`, which is checked.
    @inlinable
    public subscript(index: Int) -> Element {
        @inline(__always) get {
            precondition(index >= 0 && index < count)
            return unsafe base[index]
        }
        @inline(__always) set {
            precondition(index >= 0 && index < count)
            unsafe base[index] = newValue
        }
    }

    /// Makes all elements equal.
    @inlinable @inline(__always)
    public mutating func fill(_ element: Element) {
        unsafe base.update(repeating: element, count: count)
    }
}
