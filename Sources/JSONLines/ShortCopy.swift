/// Copies bytes, most of them without a call: the texts of events are short, and `memmove` spends more
/// on its choice of a way than on 36 bytes.
public enum ShortCopy {
    /// Copies `count` bytes to memory that does not overlap.
    @inlinable @inline(__always)
    @unsafe
    public static func copy(
        _ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int
    ) {
        // Each size is covered by words from both ends, which may overlap.
        if count > 64 {
            unsafe target.copyMemory(from: source, byteCount: count)
        } else if count >= 32 {
            unsafe move(SIMD4<UInt64>.self, source, target, 0)
            unsafe move(SIMD4<UInt64>.self, source, target, count &- 32)
        } else if count >= 16 {
            unsafe move(SIMD2<UInt64>.self, source, target, 0)
            unsafe move(SIMD2<UInt64>.self, source, target, count &- 16)
        } else if count >= 8 {
            unsafe move(UInt64.self, source, target, 0)
            unsafe move(UInt64.self, source, target, count &- 8)
        } else if count >= 4 {
            unsafe move(UInt32.self, source, target, 0)
            unsafe move(UInt32.self, source, target, count &- 4)
        } else if count > 0 {
            unsafe move(UInt8.self, source, target, 0)
            unsafe move(UInt8.self, source, target, count &>> 1)
            unsafe move(UInt8.self, source, target, count &- 1)
        }
    }

    @inlinable @inline(__always)
    @unsafe
    static func move<Word: BitwiseCopyable>(
        _: Word.Type, _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, _ offset: Int
    ) {
        let word = unsafe source.loadUnaligned(fromByteOffset: offset, as: Word.self)
        unsafe target.storeBytes(of: word, toByteOffset: offset, as: Word.self)
    }
}
