internal import Glibc

extension RawSpan {
    /// The byte at `index`, which is checked.
    @inlinable @inline(__always)
    public func byte(at index: Int) -> UInt8 {
        // SAFETY: UInt8 takes every bit pattern; this load traps outside the span.
        unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self)
    }

    /// The eight bytes from `index` on, the first in the lowest bits.
    @inlinable @inline(__always)
    public func word(at index: Int) -> UInt64 {
        // SAFETY: UInt64 takes every bit pattern; this load traps outside the span.
        unsafe UInt64(littleEndian: unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
    }

    /// The four bytes from `index` on, the first in the lowest bits.
    @inlinable @inline(__always)
    public func halfWord(at index: Int) -> UInt32 {
        // SAFETY: UInt32 takes every bit pattern; this load traps outside the span.
        unsafe UInt32(littleEndian: unsafeLoadUnaligned(fromByteOffset: index, as: UInt32.self))
    }

    /// Whether no byte is one of A to Z; false too for some that are not letters.
    public var isSurelyLowerCase: Bool {
        var index = 0
        var found: UInt64 = 0
        while byteCount &- index >= 8 {
            // 0x40 to 0x5F have the bit 0x40 and not the bit 0x20.
            found |= word(at: index) & ~(word(at: index) &<< 1)
            index &+= 8
        }
        while index < byteCount {
            found |= UInt64(byte(at: index) & ~(byte(at: index) &<< 1))
            index &+= 1
        }
        return found & 0x4040_4040_4040_4040 == 0
    }

    /// Whether the bytes from `start` on are those of `text`.
    ///
    /// The caller has checked that as many bytes are there.
    @inlinable @inline(__always)
    public func matches(_ text: StaticString, at start: Int) -> Bool {
        let count = text.utf8CodeUnitCount
        precondition(start >= 0 && start <= byteCount && byteCount - start >= count)
        return unsafe withUnsafeBytes { bytes in
            // SAFETY: both sides have `count` bytes by the precondition.
            for offset in 0..<count
            where unsafe bytes[start &+ offset] != text.utf8Start[offset] {
                return false
            }
            return true
        }
    }

    /// Whether the bytes are those of `text`.
    @inlinable @inline(__always)
    public func `is`(_ text: StaticString) -> Bool {
        byteCount == text.utf8CodeUnitCount && matches(text, at: 0)
    }

    /// Whether both have the same bytes.
    public func isEqual(to other: RawSpan) -> Bool {
        guard byteCount == other.byteCount, byteCount > 0 else {
            return byteCount == other.byteCount
        }
        return unsafe withUnsafeBytes { left in
            unsafe other.withUnsafeBytes { right in
                // SAFETY: both have `byteCount` bytes, and some, so neither base is nil.
                unsafe memcmp(left.baseAddress!, right.baseAddress!, left.count) == 0
            }
        }
    }
}

extension [UInt8] {
    /// The elements as raw bytes.
    @inlinable
    public var rawSpan: RawSpan {
        @inline(__always) @_lifetime(borrow self)
        // SAFETY: bytes are what the elements are; the span borrows the array.
        get { unsafe span.bytes }
    }
}
