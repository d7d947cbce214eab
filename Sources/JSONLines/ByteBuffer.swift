/// Bytes that one owner appends to, line after line.
///
/// An array in its place costs a check for other owners at each append, which is a third of the time
/// of a short line.
///
/// Like the other small types that a line passes through module after module it is public: a `package`
/// function is not inlined in another module, even when it is inlinable (Swift 6.3.1), and that took
/// another third.
@safe
public struct ByteBuffer: ~Copyable, @unchecked Sendable {
    // SAFETY: `base` is `capacity` bytes from `init` to `deinit`, of which `count` are initialised; only
    // spans that borrow the buffer leave it.
    @usableFromInline var base: UnsafeMutableRawPointer
    @usableFromInline var capacity: Int
    @usableFromInline var used = 0

    /// An empty buffer.
    public init(capacity: Int = 1024) {
        unsafe base = .allocate(byteCount: capacity, alignment: 16)
        self.capacity = capacity
    }

    deinit { unsafe base.deallocate() }

    /// How many bytes there are.
    @inlinable @inline(__always)
    public var count: Int { used }

    /// Its bytes.
    @inlinable
    public var rawSpan: RawSpan {
        @_lifetime(borrow self) @inline(__always)
        get {
            let span = unsafe RawSpan(_unsafeStart: base, byteCount: used)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// A copy of its bytes.
    public var array: [UInt8] {
        unsafe [UInt8](UnsafeRawBufferPointer(start: base, count: used))
    }

    /// The byte at `index`, which is checked.
    @inlinable
    public subscript(index: Int) -> UInt8 {
        @inline(__always) get {
            precondition(index >= 0 && index < used)
            return unsafe base.load(fromByteOffset: index, as: UInt8.self)
        }
        @inline(__always) set {
            precondition(index >= 0 && index < used)
            unsafe base.storeBytes(of: newValue, toByteOffset: index, as: UInt8.self)
        }
    }

    /// Appends one byte.
    @inlinable @inline(__always)
    public mutating func append(_ byte: UInt8) {
        if used == capacity { grow(by: 1) }
        unsafe base.storeBytes(of: byte, toByteOffset: used, as: UInt8.self)
        used &+= 1
    }

    /// Appends four bytes, the highest first.
    @inlinable @inline(__always)
    public mutating func append(bigEndian value: UInt32) {
        if capacity &- used < 4 { grow(by: 4) }
        unsafe base.storeBytes(of: value.bigEndian, toByteOffset: used, as: UInt32.self)
        used &+= 4
    }

    /// Appends `count` zeros, at most 64.
    @inlinable @inline(__always)
    public mutating func append(zeros count: Int) {
        precondition(count >= 0 && count <= 64)
        if capacity &- used < 64 { grow(by: 64) }
        unsafe base.storeBytes(of: .zero, toByteOffset: used, as: SIMD8<UInt64>.self)
        used &+= count
    }

    /// Appends eight bytes, the lowest first.
    @inlinable @inline(__always)
    public mutating func append(littleEndian value: UInt64) {
        if capacity &- used < 8 { grow(by: 8) }
        unsafe base.storeBytes(of: value.littleEndian, toByteOffset: used, as: UInt64.self)
        used &+= 8
    }

    /// Appends all of `bytes`.
    @inlinable @inline(__always)
    public mutating func append(_ bytes: RawSpan) {
        let more = bytes.byteCount
        if capacity &- used < more { grow(by: more) }
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe ShortCopy.copy(start, to: base + used, count: more)
        }
        used &+= more
    }

    /// Appends how many `bytes` are, in four bytes, the highest first, and then all of them.
    @inlinable @inline(__always)
    public mutating func append(field bytes: RawSpan) {
        let more = bytes.byteCount
        if capacity &- used < more &+ 4 { grow(by: more &+ 4) }
        unsafe base.storeBytes(
            of: UInt32(truncatingIfNeeded: more).bigEndian, toByteOffset: used, as: UInt32.self)
        used &+= 4
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe ShortCopy.copy(start, to: base + used, count: more)
        }
        used &+= more
    }

    /// Appends the bytes `range` of `bytes`.
    @inlinable @inline(__always)
    public mutating func append(_ bytes: RawSpan, _ range: Range<Int>) {
        append(bytes.extracting(range))
    }

    /// Appends the bytes of a text.
    @inlinable @inline(__always)
    public mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { bytes in
            let span = unsafe RawSpan(_unsafeElements: bytes)
            append(span)
        }
    }

    /// Appends the UTF-8 of a text.
    public mutating func append(_ text: String) { for byte in text.utf8 { append(byte) } }

    /// Leaves the first `count` bytes; the memory stays.
    @inlinable @inline(__always)
    public mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= used)
        used = count
    }

    @usableFromInline @inline(never)
    mutating func grow(by more: Int) {
        let larger = max(capacity * 2, used + more)
        let new = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        unsafe new.copyMemory(from: base, byteCount: used)
        unsafe base.deallocate()
        unsafe base = new
        capacity = larger
    }
}
