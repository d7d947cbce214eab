internal import CZlib

/// Compresses into one gzip member, with zlib itself rather than with the code under test.
func gzip(_ bytes: some Collection<UInt8>, level: Int32 = 6) -> [UInt8] {
    var input = Array(bytes)
    var output = [UInt8](repeating: 0, count: input.count + input.count / 1000 + 128)
    var stream = unsafe z_stream()
    // SAFETY: both arrays outlive the stream, and the output has room for the worst case.
    return unsafe input.withUnsafeMutableBufferPointer { source in
        unsafe output.withUnsafeMutableBufferPointer { target in
            guard
                unsafe deflateInit2_(
                    &stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                    Int32(MemoryLayout<z_stream>.size)) == Z_OK
            else { fatalError("deflateInit2") }
            unsafe stream.next_in = source.baseAddress
            unsafe stream.avail_in = UInt32(source.count)
            unsafe stream.next_out = target.baseAddress
            unsafe stream.avail_out = UInt32(target.count)
            guard unsafe deflate(&stream, Z_FINISH) == Z_STREAM_END else { fatalError("deflate") }
            let count = unsafe Int(stream.total_out)
            unsafe deflateEnd(&stream)
            return unsafe Array(target[..<count])
        }
    }
}

func gzip(_ text: String) -> [UInt8] { gzip(text.utf8) }
