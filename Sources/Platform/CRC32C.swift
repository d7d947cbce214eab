internal import CIsal

/// CRC-32C (Castagnoli, reflected, polynomial 0x1EDC6F41), as in iSCSI and ext4.
package enum CRC32C {
    /// The checksum of `bytes`, continuing from `seed`.
    ///
    /// ISA-L's, which sums three parts at once where the processor has the instruction.
    ///
    /// - Parameters:
    ///   - bytes: What is summed; "123456789" gives 0xE3069283.
    ///   - seed: The checksum of what precedes it; 0 starts one.
    package static func checksum(_ bytes: Span<UInt8>, seed: UInt32 = 0) -> UInt32 {
        // ISA-L's has no inversion at either end, and takes lengths of 31 bits.
        var sum = ~seed
        unsafe bytes.withUnsafeBufferPointer { buffer in
            var done = 0
            while done < buffer.count {
                let count = min(buffer.count - done, 1 << 30)
                // SAFETY: the bytes are within the buffer, and are only read.
                sum = unsafe crc32_iscsi(
                    UnsafeMutablePointer(mutating: buffer.baseAddress! + done), Int32(count), sum)
                done += count
            }
        }
        return ~sum
    }
}
