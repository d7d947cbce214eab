import Platform

/// A record that waits for the committer.
struct PendingAppend: Sendable {
    let payload: [UInt8]
    let events: Int
    let completion: @Sendable (Result<SpoolMark, SpoolError>) -> Void

    /// Its bytes on disk.
    var bytes: Int { RecordHeader.bytes + payload.count }
}

/// What waits for the committer; all that gathers during one sync goes with the next.
struct CommitQueue: Sendable {
    private(set) var pending: [PendingAppend] = []
    /// Bytes that are queued or being written, and so are not yet counted as on disk.
    private(set) var bytes = 0
    private(set) var pushed: UInt64 = 0
    private(set) var popped: UInt64 = 0
    var isClosing = false
    private var fullSaidAt: Microseconds?

    /// Whether it is time to say again that the spool is full: once a minute while it lasts.
    mutating func shouldSayFull(now: Microseconds) -> Bool {
        if let said = fullSaidAt, now - said < 60_000_000 { return false }
        fullSaidAt = now
        return true
    }

    mutating func push(_ append: PendingAppend) {
        pending.append(append)
        bytes += append.bytes
        pushed += 1
    }

    /// All that waits; empty at the end, nil when there is nothing yet.
    mutating func take() -> [PendingAppend]? {
        guard !pending.isEmpty else { return isClosing ? [] : nil }
        defer { pending = [] }
        return pending
    }

    /// Counts bytes no more that were queued: they are on disk, or refused.
    mutating func settle(bytes settled: Int) { bytes -= settled }

    mutating func finish(_ group: [PendingAppend]) { popped += UInt64(group.count) }
}
