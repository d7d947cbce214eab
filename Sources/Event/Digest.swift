internal import CCrypto
internal import CHash

/// The first 128 bits of a SHA-256 (FIPS 180-4), read as two big-endian words.
struct Digest: Equatable {
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The digest of `bytes`.
    ///
    /// The three calls cost an eighth of OpenSSL's one-shot call.
    init(_ bytes: RawSpan) {
        var context = SHA256_CTX()
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        unsafe bytes.withUnsafeBytes { buffer in
            // SAFETY: the context and the 32 bytes of output are locals of this call.
            _ = unsafe SHA256_Init(&context)
            _ = unsafe SHA256_Update(&context, buffer.baseAddress, buffer.count)
            unsafe withUnsafeMutableBytes(of: &words) { output in
                _ = unsafe SHA256_Final(
                    output.baseAddress!.assumingMemoryBound(to: UInt8.self), &context)
            }
        }
        high = UInt64(bigEndian: words.0)
        low = UInt64(bigEndian: words.1)
    }

    /// The digest of a text that has its padding already, so that it is whole blocks of 64 bytes.
    init(paddedBlocks bytes: RawSpan) {
        precondition(bytes.byteCount & 63 == 0, "\(bytes.byteCount) bytes are no whole blocks")
        var context = SHA256_CTX()
        unsafe bytes.withUnsafeBytes { buffer in
            // SAFETY: the context is a local of this call, and the bytes are only read.
            _ = unsafe SHA256_Init(&context)
            _ = unsafe SHA256_Update(&context, buffer.baseAddress, buffer.count)
        }
        // After whole blocks the state is the digest.
        high = UInt64(context.h.0) &<< 32 | UInt64(context.h.1)
        low = UInt64(context.h.2) &<< 32 | UInt64(context.h.3)
    }

    /// The digests of three texts that have their padding already; of an empty one it means nothing.
    ///
    /// All those of an event at once take half of the time of one after the other.
    static func three(
        _ first: RawSpan, _ second: RawSpan, _ third: RawSpan
    ) -> (Digest, Digest, Digest) {
        var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)
        let isDone = unsafe first.withUnsafeBytes { first in
            unsafe second.withUnsafeBytes { second in
                unsafe third.withUnsafeBytes { third in
                    unsafe withUnsafeMutableBytes(of: &words) { words in
                        // SAFETY: the texts are only read, and six words are what it writes.
                        unsafe tapline_sha256_three(
                            text(first), text(second), text(third),
                            words.baseAddress!.assumingMemoryBound(to: UInt64.self))
                    }
                }
            }
        }
        guard isDone else {
            return (
                Digest(paddedBlocks: first), Digest(paddedBlocks: second),
                Digest(paddedBlocks: third)
            )
        }
        return (
            Digest(high: words.0, low: words.1), Digest(high: words.2, low: words.3),
            Digest(high: words.4, low: words.5)
        )
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> tapline_text {
        precondition(bytes.count & 63 == 0, "\(bytes.count) bytes are no whole blocks")
        return unsafe tapline_text(bytes: bytes.baseAddress, blocks: bytes.count / 64)
    }
}

/// SHA-256 (FIPS 180-4) of `bytes`: 32 bytes.
package func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    // SAFETY: the input is only read and the output has the 32 bytes that the call writes.
    unsafe bytes.withUnsafeBufferPointer { input in
        unsafe digest.withUnsafeMutableBufferPointer { output in
            _ = unsafe SHA256(input.baseAddress, input.count, output.baseAddress)
        }
    }
    return digest
}
