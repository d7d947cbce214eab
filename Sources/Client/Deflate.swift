internal import CZlib

/// Inflates a stream of gzip members piece by piece.
@safe
package struct GzipReader: ~Copyable {
    // SAFETY: allocated once so that zlib's own pointer back to it stays right; freed in deinit.
    private let stream: UnsafeMutablePointer<z_stream>
    private var isInside = false

    /// Makes a reader; nil when memory is short.
    package init?() {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let code = unsafe inflateInit2_(
            stream, 16 + 15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        if code != Z_OK {
            unsafe stream.deallocate()
            return nil
        }
    }

    deinit {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Whether a member has begun and not ended: at the end of the file it is cut off.
    package var isCutOff: Bool { isInside }

    /// Inflates a piece and appends what comes out.
    ///
    /// - Returns: False when the data are not gzip; `output` then holds what was good.
    package mutating func inflate(_ input: [UInt8], into output: inout [UInt8]) -> Bool {
        // SAFETY: zlib reads and writes inside the two buffers only, during the calls.
        unsafe input.withUnsafeBufferPointer { source in
            unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 128 << 10) { room in
                unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
                unsafe stream.pointee.avail_in = UInt32(source.count)
                while true {
                    unsafe stream.pointee.next_out = room.baseAddress
                    unsafe stream.pointee.avail_out = UInt32(room.count)
                    if unsafe !isInside && stream.pointee.avail_in > 0 {
                        // Zero padding may follow a member, as tar and tapes leave it.
                        if unsafe stream.pointee.next_in.pointee == 0 {
                            unsafe stream.pointee.next_in += 1
                            unsafe stream.pointee.avail_in -= 1
                            continue
                        }
                        unsafe inflateReset(stream)
                        isInside = true
                    }
                    guard isInside else { return true }
                    let code = unsafe CZlib.inflate(stream, Z_NO_FLUSH)
                    let count = unsafe room.count - Int(stream.pointee.avail_out)
                    unsafe output.append(contentsOf: room.prefix(count))
                    if code == Z_STREAM_END {
                        isInside = false
                    } else if code == Z_BUF_ERROR || (code == Z_OK && count < room.count) {
                        if unsafe stream.pointee.avail_in == 0 { return true }
                    } else if code != Z_OK {
                        return false
                    }
                }
            }
        }
    }
}

/// Compresses bytes into one gzip member, fast rather than small: a body is sent once.
///
/// - Returns: The member, or nil when memory is short.
package func gzipMember(_ bytes: [UInt8], level: Int32 = 1) -> [UInt8]? {
    var stream = unsafe z_stream()
    let started = unsafe deflateInit2_(
        &stream, level, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size))
    guard started == Z_OK else { return nil }
    defer { unsafe deflateEnd(&stream) }
    let bound = unsafe Int(deflateBound(&stream, UInt(bytes.count)))
    return unsafe [UInt8](unsafeUninitializedCapacity: bound) { output, count in
        // SAFETY: `deflateBound` is enough for one call with Z_FINISH.
        unsafe bytes.withUnsafeBufferPointer { source in
            unsafe stream.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
            unsafe stream.avail_in = UInt32(source.count)
            unsafe stream.next_out = output.baseAddress
            unsafe stream.avail_out = UInt32(bound)
            unsafe deflate(&stream, Z_FINISH)
            count = unsafe bound - Int(stream.avail_out)
        }
    }
}
