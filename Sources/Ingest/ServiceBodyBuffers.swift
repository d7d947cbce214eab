import Platform

/// Memory of bodies that are over, for those that come.
///
/// A body whose memory grows with it is copied once more than it needs, into pages that are cold.
final class BodyBuffers: Sendable {
    private static let countMax = 4
    private static let bytesMax = 1 << 20
    private let spare = Sync.Monitor<[[UInt8]]>([])

    /// An empty buffer, with memory if there is some.
    func take() -> [UInt8] { spare.withLock { $0.popLast() } ?? [] }

    /// Takes back a buffer that nobody else has; a large one, or one too many, is freed.
    func give(_ buffer: consuming [UInt8]) {
        guard buffer.capacity <= Self.bytesMax else { return }
        buffer.removeAll(keepingCapacity: true)
        let kept = buffer
        spare.withLock { if $0.count < Self.countMax { $0.append(kept) } }
    }
}
