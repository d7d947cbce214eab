internal import CZlib

/// Gzip for whole buffers.
package enum Gzip {
    /// Whether `bytes` begins with the two bytes that begin every gzip member.
    package static func isGzip(_ bytes: Span<UInt8>) -> Bool {
        bytes.count >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B
    }

    /// Compresses `bytes` to one gzip member without name or time, so equal input gives equal output.
    ///
    /// - Parameters:
    ///   - bytes: Any bytes, also none.
    ///   - level: 1 (fast) to 9 (small).
    /// - Throws: ``GzipError/outOfMemory``.
    package static func compress(_ bytes: [UInt8], level: Int = 6) throws(GzipError) -> [UInt8] {
        precondition((1...9).contains(level), "level \(level) is outside 1...9")
        var stream = unsafe z_stream()
        let started = unsafe deflateInit2_(
            &stream, Int32(level), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        guard started == Z_OK else { throw .outOfMemory }
        let bound = unsafe Int(deflateBound(&stream, UInt(bytes.count)))
        let output = unsafe bytes.withUnsafeBufferPointer { input in
            unsafe [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
                // SAFETY: both buffers outlive the call; deflate writes at most avail_out bytes.
                // avail_in and avail_out are 32 bits, so large buffers go in slices.
                unsafe stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                unsafe stream.next_out = buffer.baseAddress
                var unread = input.count
                while true {
                    let inputSlice = min(unread, 1 << 30)
                    let outputSlice = min(bound - count, 1 << 30)
                    unsafe stream.avail_in = UInt32(inputSlice)
                    unsafe stream.avail_out = UInt32(outputSlice)
                    let flush = inputSlice == unread ? Z_FINISH : Z_NO_FLUSH
                    let status = unsafe deflate(&stream, flush)
                    unread -= unsafe inputSlice - Int(stream.avail_in)
                    count += unsafe outputSlice - Int(stream.avail_out)
                    // The output holds the bound of the whole, so nothing but the end stops it.
                    if status != Z_OK { break }
                }
            }
        }
        unsafe deflateEnd(&stream)
        return output
    }
}
