import Platform

/// What is on disk and who needs it: decides, and does no I/O. It lives behind the spool's monitor.
struct SegmentIndex {
    /// A segment that is on disk.
    struct Segment: Equatable {
        let number: UInt64
        /// Bytes that are durable; readers stop there.
        var bytes: Int
        /// Whether zeros may be the last of them: it was found, and only its size was looked at.
        var isPadded = false
        /// When it was first known to be loaded.
        var loadedAt: Microseconds?
        /// Its damage could not be copied, so the file is all there is of it.
        var isPinned = false
    }

    /// Rising by number.
    private(set) var segments: [Segment] = []
    /// The segment that grows, if any.
    private(set) var active: UInt64?
    /// Where the newest durable record ends, or the last one of an older segment after a start; nil if unknown.
    private(set) var end: SpoolMark?
    /// Below it everything is loaded.
    private(set) var released: (segment: UInt64, offset: Int) = (0, 0)
    /// What the database last said is loaded. Before it has, nothing is deleted; after a restore it
    /// is behind `released`, and what lies between is needed again.
    private(set) var confirmed: UInt64 = 0
    /// The segment each reader stands in.
    private(set) var readers: [UInt64: UInt64] = [:]
    /// Readers that no longer wait for records.
    private var hurried: Set<UInt64> = []
    private var lastReader: UInt64 = 0
    private var nextNumber: UInt64 = 1
    var isClosed = false
    var statistics = SpoolStatistics()

    /// Takes over what was found at the start.
    init(segments: [Segment], end: SpoolMark?, released: UInt64) {
        self.segments = segments
        self.end = end
        self.released = (released, 0)
        nextNumber = max(segments.last?.number ?? 0, released) + 1
    }

    // MARK: Writing

    /// A number for a new segment, never given twice, and that of the one before it.
    mutating func takeNumber() -> (number: UInt64, previous: UInt64) {
        defer { nextNumber += 1 }
        return (nextNumber, segments.last?.number ?? 0)
    }

    /// Adds a new segment, which grows from now on.
    mutating func begin(_ number: UInt64) {
        segments.append(Segment(number: number, bytes: SegmentHeader.bytes))
        active = number
    }

    /// Publishes what has become durable in the growing segment.
    ///
    /// - Parameter end: Where its newest record ends.
    mutating func publish(bytes: Int, end: SpoolMark?) {
        segments[segments.count - 1].bytes = bytes
        self.end = end
    }

    /// Ends the growing segment; 0 bytes mean that it is gone.
    mutating func end(bytes: Int) {
        active = nil
        if bytes == 0 { segments.removeLast() } else { segments[segments.count - 1].bytes = bytes }
    }

    /// Notes where the last record of a segment was found to end, if the end is not known.
    mutating func note(end mark: SpoolMark) { end = end ?? mark }

    // MARK: Reading

    /// What a reader does next.
    enum Advice: Equatable {
        case read(limit: Int, isPadded: Bool)
        case move(to: UInt64)
        case closed
    }

    /// Advises a reader that has read up to `position` of `segment`.
    func advice(segment: UInt64, position: Int) -> Advice? {
        let place = segments.firstIndex { $0.number >= segment }
        if let place, segments[place].number == segment {
            if position < segments[place].bytes {
                return .read(limit: segments[place].bytes, isPadded: segments[place].isPadded)
            }
            if active != segment, place + 1 < segments.count {
                return .move(to: segments[place + 1].number)
            }
        } else if let place {
            return .move(to: segments[place].number)
        }
        return isClosed ? .closed : nil
    }

    /// Registers a reader; segments from its own on are not deleted.
    mutating func addReader(at segment: UInt64) -> UInt64 {
        lastReader += 1
        readers[lastReader] = segment
        return lastReader
    }

    /// Notes where a reader stands; nil when it is gone.
    mutating func setReader(_ reader: UInt64, at segment: UInt64?) {
        readers[reader] = segment
        if segment == nil { hurried.remove(reader) }
    }

    /// Lets a reader wait no more.
    mutating func hurry(_ reader: UInt64) {
        if readers[reader] != nil { hurried.insert(reader) }
    }

    func isHurried(_ reader: UInt64) -> Bool { hurried.contains(reader) }

    func segment(_ number: UInt64) -> Segment? { segments.first { $0.number == number } }

    /// Keeps a segment for ever, because its damage could not be copied.
    mutating func pin(_ number: UInt64) {
        guard let place = segments.firstIndex(where: { $0.number == number }) else { return }
        segments[place].isPinned = true
    }

    /// Forgets a segment whose file is gone or set aside; the growing one must not be.
    mutating func remove(_ number: UInt64) {
        precondition(number != active, "segment \(number) still grows")
        segments.removeAll { $0.number == number }
    }

    // MARK: Releasing

    /// Bytes that wait to be loaded.
    var unloadedBytes: Int {
        segments.reduce(0) { sum, segment in
            if segment.number < released.segment { return sum }
            let loaded = segment.number == released.segment ? released.offset : 0
            return sum + max(0, segment.bytes - loaded)
        }
    }

    /// Notes that everything up to a mark is loaded.
    ///
    /// - Returns: The segments that became loaded by it.
    mutating func release(upTo mark: SpoolMark, now: Microseconds) -> [UInt64] {
        guard let last = segments.last, mark.segment <= last.number else { return [] }
        confirmed = mark.segment
        let offset = Int(clamping: mark.offset)
        if (mark.segment, offset) > released { released = (mark.segment, offset) }
        var loaded: [UInt64] = []
        for place in segments.indices
        where segments[place].number < released.segment && segments[place].loadedAt == nil {
            segments[place].loadedAt = now
            loaded.append(segments[place].number)
        }
        return loaded
    }

    /// The loaded segments that need not be kept, oldest first; they are forgotten at once.
    mutating func takeExpired(now: Microseconds, keepSeconds: Int, keepBytes: Int) -> [UInt64] {
        let needed = min(confirmed, readers.values.min() ?? .max)
        let loaded = segments.filter { $0.number < needed }
        var kept = loaded.reduce(0) { $0 + $1.bytes }
        var expired: [UInt64] = []
        for segment in loaded where !segment.isPinned {
            let age = now - (segment.loadedAt ?? now)
            guard kept > keepBytes || age > Int64(keepSeconds) * 1_000_000 else { continue }
            kept -= segment.bytes
            expired.append(segment.number)
        }
        if !expired.isEmpty { segments.removeAll { expired.contains($0.number) } }
        return expired
    }
}
