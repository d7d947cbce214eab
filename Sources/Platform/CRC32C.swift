internal import CPlatform

/// CRC-32C (Castagnoli, reflected, polynomial 0x1EDC6F41), as in iSCSI and ext4.
package enum CRC32C {
    /// The checksum of `bytes`, continuing from `seed`.
    ///
    /// - Parameters:
    ///   - bytes: What is summed; "123456789" gives 0xE3069283.
    ///   - seed: The checksum of what precedes it; 0 starts one.
    package static func checksum(_ bytes: Span<UInt8>, seed: UInt32 = 0) -> UInt32 {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            // SAFETY: the buffer is valid for the call, which only reads it.
            unsafe tapline_crc32c(seed, buffer.baseAddress, buffer.count)
        }
    }

    /// The same, without the processor's instruction; for a test that compares them.
    package static func softwareChecksum(_ bytes: Span<UInt8>, seed: UInt32 = 0) -> UInt32 {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe tapline_crc32c_software(seed, buffer.baseAddress, buffer.count)
        }
    }
}
