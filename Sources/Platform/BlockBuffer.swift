import Glibc

/// Bytes in memory that direct I/O takes: at an address, and with a capacity, of whole blocks.
@safe
package struct BlockBuffer: ~Copyable, @unchecked Sendable {
    /// What the address, the offset and the length of direct I/O are multiples of. No usual disk or file system
    /// asks for more.
    package static let blockBytes = 4096

    // SAFETY: of `capacity` bytes from `init` to `deinit`, of which the first `count` are set; handed out as a
    // span of those, and for the time of a call the room after them.
    private var memory: UnsafeMutableRawPointer
    package private(set) var capacity: Int
    package private(set) var count = 0

    /// An empty buffer.
    ///
    /// - Parameter capacity: Its bytes, made whole blocks.
    package init(capacity: Int) {
        self.capacity = Self.roundedUp(max(capacity, 1))
        unsafe memory = Self.allocate(self.capacity)
    }

    deinit { unsafe memory.deallocate() }

    private static func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
        .allocate(byteCount: bytes, alignment: blockBytes)
    }

    /// The number of bytes of the whole blocks that hold so many.
    package static func roundedUp(_ bytes: Int) -> Int { roundedDown(bytes + blockBytes - 1) }

    /// The number of bytes of the whole blocks in so many.
    package static func roundedDown(_ bytes: Int) -> Int { bytes & ~(blockBytes - 1) }

    package var span: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let bytes = unsafe UnsafeBufferPointer(
                start: memory.assumingMemoryBound(to: UInt8.self), count: count)
            return unsafe _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
        }
    }

    /// Gives it another capacity, made whole blocks; what is there stays, and must fit.
    package mutating func setCapacity(_ bytes: Int) {
        let wanted = Self.roundedUp(bytes)
        precondition(wanted >= max(count, 1), "\(count) bytes in room for \(bytes)")
        guard wanted != capacity else { return }
        let moved = unsafe Self.allocate(wanted)
        unsafe moved.copyMemory(from: memory, byteCount: count)
        unsafe memory.deallocate()
        unsafe memory = moved
        capacity = wanted
    }

    /// Appends as much as there is room for.
    ///
    /// - Returns: How many bytes that is.
    package mutating func fill(from bytes: Span<UInt8>) -> Int {
        let taken = min(bytes.count, capacity - count)
        unsafe bytes.withUnsafeBytes { bytes in
            guard taken > 0, let base = bytes.baseAddress else { return }
            unsafe (memory + count).copyMemory(from: base, byteCount: taken)
        }
        count += taken
        return taken
    }

    /// Appends zeros to the end of a block; of a capacity in whole blocks there is always room.
    package mutating func padToBlock() {
        let end = Self.roundedUp(count)
        unsafe memset(memory + count, 0, end - count)
        count = end
    }

    /// Keeps the first `count` bytes.
    package mutating func truncate(to count: Int) {
        precondition(0...self.count ~= count, "\(count) bytes of \(self.count)")
        self.count = count
    }

    /// Drops the first `bytes` bytes; the rest moves to the front.
    package mutating func removeFirst(_ bytes: Int) {
        precondition(0...count ~= bytes, "\(bytes) bytes of \(count)")
        count -= bytes
        unsafe memmove(memory, memory + bytes, count)
    }

    /// Appends what `body` writes to the room after what is there.
    ///
    /// - Parameters:
    ///   - end: How many bytes there may be then, at most the capacity.
    ///   - body: Given that room; returns how many bytes of it are set.
    package mutating func append<Failure: Error>(
        upTo end: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        precondition(count...capacity ~= end, "\(end) bytes of \(capacity)")
        let room = unsafe UnsafeMutableRawBufferPointer(start: memory + count, count: end - count)
        let added = try unsafe body(room)
        precondition(0...room.count ~= added, "\(added) bytes in room for \(room.count)")
        count += added
        return added
    }
}
