internal import CZlib
import Gzip

/// zlib, as the judge of what `InflateStream` makes of a body.
package enum ZlibOracle {
    /// How one member is made.
    package struct Recipe {
        package var level: Int32 = 6
        package var windowBits: Int32 = 15
        package var memoryLevel: Int32 = 8
        package var strategy: Int32 = Z_DEFAULT_STRATEGY
        /// A sync flush is made after so many bytes, so that there are many small blocks.
        package var flushEvery = Int.max

        /// As most clients do it.
        package init() {}

        /// Any that zlib knows.
        package static func random(_ random: inout Random) -> Recipe {
            var recipe = Recipe()
            recipe.level = Int32(random.below(10))
            recipe.windowBits = Int32(9 + random.below(7))
            recipe.memoryLevel = Int32(1 + random.below(9))
            recipe.strategy =
                [
                    Z_DEFAULT_STRATEGY, Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE,
                    Z_FIXED,
                ][random.below(6)]
            if random.below(3) == 0 { recipe.flushEvery = 1 + random.below(5000) }
            return recipe
        }
    }

    /// Compresses `payload` to one gzip member.
    package static func member(_ payload: [UInt8], _ recipe: Recipe) -> [UInt8] {
        var stream = unsafe z_stream()
        let started = unsafe deflateInit2_(
            &stream, recipe.level, Z_DEFLATED, recipe.windowBits + 16, recipe.memoryLevel,
            recipe.strategy, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(started == Z_OK)
        defer { unsafe deflateEnd(&stream) }
        var output: [UInt8] = []
        var start = 0
        repeat {
            let end = start + min(recipe.flushEvery, payload.count - start)
            var part = Array(payload[start..<end])
            let flush = end == payload.count ? Z_FINISH : Z_SYNC_FLUSH
            unsafe part.withUnsafeMutableBufferPointer { input in
                unsafe stream.next_in = input.baseAddress
                unsafe stream.avail_in = UInt32(input.count)
                var room = 0
                repeat {
                    var buffer = [UInt8](repeating: 0, count: 64 << 10)
                    unsafe buffer.withUnsafeMutableBufferPointer {
                        unsafe stream.next_out = $0.baseAddress
                        unsafe stream.avail_out = UInt32($0.count)
                        unsafe deflate(&stream, flush)
                    }
                    room = unsafe Int(stream.avail_out)
                    output += buffer.prefix(buffer.count - room)
                } while room == 0
            }
            start = end
        } while start < payload.count
        return output
    }

    /// What zlib makes of `body`, by the rules of `InflateStream`.
    package static func inflate(_ body: [UInt8], limit: Int) -> Result<[UInt8], GzipError> {
        var body = body
        var output: [UInt8] = []
        return unsafe body.withUnsafeMutableBufferPointer { bytes in
            var start = 0
            while start < bytes.count, unsafe start == 0 || bytes[start] == 0x1F {
                guard unsafe bytes[start] == 0x1F else { return .failure(.notGzip) }
                var stream = unsafe z_stream()
                unsafe inflateInit2_(
                    &stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
                defer { unsafe inflateEnd(&stream) }
                unsafe stream.next_in = bytes.baseAddress! + start
                unsafe stream.avail_in = UInt32(bytes.count - start)
                var status = Z_OK
                var buffer = [UInt8](repeating: 0, count: 64 << 10)
                while status == Z_OK {
                    let room = min(buffer.count, limit - output.count + 1)
                    unsafe buffer.withUnsafeMutableBufferPointer {
                        unsafe stream.next_out = $0.baseAddress
                        unsafe stream.avail_out = UInt32(room)
                        status = unsafe CZlib.inflate(&stream, Z_NO_FLUSH)
                    }
                    output += buffer.prefix(unsafe room - Int(stream.avail_out))
                    if output.count > limit { return .failure(.tooLarge(limit: limit)) }
                }
                if status == Z_BUF_ERROR { return .failure(.truncated) }
                guard status == Z_STREAM_END else {
                    return .failure(.corrupt(reason: unsafe String(cString: stream.msg)))
                }
                start = unsafe bytes.count - Int(stream.avail_in)
            }
            if start == 0 { return .failure(.notGzip) }
            let rest = unsafe bytes[start...]
            return unsafe rest.allSatisfy { $0 == 0 }
                ? .success(output) : .failure(.trailingGarbage)
        }
    }

    /// CRC-32.
    package static func crc(_ bytes: [UInt8]) -> UInt32 {
        UInt32(unsafe crc32(0, bytes, UInt32(bytes.count)))
    }
}

/// SplitMix64 with a fixed seed, so that a failure repeats.
package struct Random {
    package var state: UInt64

    /// A sequence for each seed.
    package init(state: UInt64) { self.state = state }

    /// The next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }

    /// A number from 0 to below `bound`.
    package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
