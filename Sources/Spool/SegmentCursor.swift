internal import CPlatform
import Glibc
import Platform

/// Reads the records of one segment file in order, past any damage. It never moves backwards.
struct SegmentCursor: ~Copyable {
    /// What lies at the position.
    enum Step {
        /// A whole record; the position is after it.
        case record(SpoolRecord)
        /// Bytes that are no record, followed by one; the position is at that one.
        case damage(Range<Int>)
        /// No whole record is left; so many invalid bytes are, or none where only zeros fill the last block. The
        /// position is before all of that.
        case end(invalidBytes: Int)
    }

    let file: File
    let number: UInt64
    /// Nil when the header is damaged and only the marker could be found again.
    let header: SegmentHeader?
    let marker: [UInt8]
    private(set) var position = SegmentHeader.bytes
    private(set) var chain: UInt32

    /// What was read last, from the start of a block on.
    private var window = BlockBuffer(capacity: Self.windowBytes)
    private var windowStart = 0
    /// Whether some of the segment could not be read, and passes for zeros.
    private var isPartlyUnreadable = false
    private static let windowBytes = 1 << 20

    /// Opens a segment.
    ///
    /// A damaged header does not cost its records: the marker is taken from the first record, or
    /// from the header if a record is found by it.
    ///
    /// - Returns: Nil when not one record can be found and the header is damaged.
    /// - Throws: ``SpoolError/unsupportedVersion(_:path:)``, or that the file cannot be read.
    static func open(_ path: String, number: UInt64) throws(SpoolError) -> SegmentCursor? {
        let start = try rethrow { () throws(SystemError) in
            try readTolerantly(file(path), count: SegmentHeader.bytes + 8, at: 0)
        }
        switch SegmentHeader.decode(start) {
        case .success(let header):
            return try rethrow { () throws(SystemError) in
                SegmentCursor(
                    file: try file(path), number: number, header: header,
                    marker: header.marker, chain: SegmentHeader.checksum(of: start))
            }
        case .failure(.version(let version)): throw .unsupportedVersion(version, path: path)
        case .failure(.damaged): break
        }
        guard start.count == SegmentHeader.bytes + 8 else { return nil }
        return try rethrow { () throws(SystemError) in
            for marker in [Array(start[64..<72]), Array(start[48..<56])]
            where marker.contains(where: { $0 != 0 }) {
                var cursor = SegmentCursor(
                    file: try file(path), number: number, header: nil, marker: marker, chain: 0)
                let size = try cursor.file.size()
                guard try cursor.findRecord(from: SegmentHeader.bytes, limit: size) != nil else {
                    continue
                }
                if let first = try cursor.record(at: SegmentHeader.bytes, limit: size) {
                    cursor.chain = first.chainBefore
                }
                // What is behind the limit of who reads on is not to be known yet.
                cursor.window.truncate(to: 0)
                return cursor
            }
            return nil
        }
    }

    /// Opens a segment past the page cache, which what is read once is not to fill.
    static func file(_ path: String) throws(SystemError) -> File {
        try File(path, .read, isDirect: true)
    }

    private init(
        file: consuming File, number: UInt64, header: SegmentHeader?, marker: [UInt8],
        chain: UInt32
    ) {
        self.file = file
        self.number = number
        self.header = header
        self.marker = marker
        self.chain = chain
    }

    /// The mark of the present position.
    var mark: SpoolMark {
        SpoolMark(segment: number, offset: UInt64(position), chain: chain)
    }

    /// Takes the next step over the bytes below `limit`.
    ///
    /// - Parameter isPadded: Whether the limit is the size of a file that may end with zeros that fill its last
    ///   block; else all before it is records.
    mutating func next(limit: Int, isPadded: Bool) throws(SystemError) -> Step {
        switch try move(limit: limit, isPadded: isPadded) {
        case .record(let header):
            let end = position - windowStart
            let payload = window.span.extracting(end - header.length..<end).copied()
            return .record(SpoolRecord(payload: payload, events: Int(header.events), mark: mark))
        case .damage(let range): return .damage(range)
        case .end(let bytes): return .end(invalidBytes: bytes)
        }
    }

    /// Moves to the end of the valid records below `limit`.
    ///
    /// - Parameter limit: The size of the file.
    /// - Returns: How many bytes after it are no record.
    mutating func moveToEnd(limit: Int) throws(SystemError) -> Int {
        while true {
            if case .end(let bytes) = try move(limit: limit, isPadded: true) { return bytes }
        }
    }

    /// A step without the bytes of the record, which are in the window when it is taken.
    ///
    /// Not only for speed: swiftc 6.3.1 with -O frees the copy of a slice that nobody reads before
    /// it writes to it, so a copy must never be made and dropped here.
    private enum Move {
        case record(RecordHeader)
        case damage(Range<Int>)
        case end(invalidBytes: Int)
    }

    private mutating func move(limit: Int, isPadded: Bool) throws(SystemError) -> Move {
        guard position < limit else { return .end(invalidBytes: 0) }
        if let header = try record(at: position, limit: limit) {
            position += RecordHeader.bytes + header.length
            chain = header.checksum
            return .record(header)
        }
        guard let found = try findRecord(from: position + 1, limit: limit) else {
            let isEnd = isPadded ? try isPadding(from: position, limit: limit) : false
            return .end(invalidBytes: isEnd ? 0 : limit - position)
        }
        let range = position..<found.offset
        position = found.offset
        chain = found.header.chainBefore
        return .damage(range)
    }

    /// Whether from an offset to the end of the file are zeros that its writer filled the last block with.
    mutating func isPadding(from offset: Int, limit: Int) throws(SystemError) -> Bool {
        guard limit % BlockBuffer.blockBytes == 0, 1..<BlockBuffer.blockBytes ~= limit - offset,
            try load(offset, count: limit - offset, limit: limit), !isPartlyUnreadable
        else { return false }
        let rest = window.span.extracting(offset - windowStart..<limit - windowStart)
        return rest.indices.allSatisfy { rest[$0] == 0 }
    }

    /// Whether damage may be a group that the daemon writes just now, of which the last block was read before
    /// it was all there. Blocks before that one are as they stay, for a file grows after what it has more.
    static func isUnfinished(_ damage: Range<Int>, limit: Int) -> Bool {
        limit % BlockBuffer.blockBytes == 0 && damage.lowerBound >= limit - BlockBuffer.blockBytes
    }

    /// Moves on without reading, over bytes that cannot be read.
    mutating func skip(to offset: Int) { position = max(position, offset) }

    /// Moves to a mark of this segment that is known to be its end.
    mutating func move(to end: SpoolMark) {
        position = Int(clamping: end.offset)
        chain = end.chain
    }

    /// Moves to a mark of this segment, if a record ends there with just that chain.
    mutating func seek(to mark: SpoolMark, limit: Int) throws(SystemError) -> Bool {
        guard let target = Int(exactly: mark.offset), target > position, target <= limit else {
            return false
        }
        // The record after it carries the chain; without one, the chain is walked.
        if let next = try record(at: target, limit: limit), next.chainBefore == mark.chain {
            position = target
            chain = mark.chain
            return true
        }
        while position < target {
            if case .end = try move(limit: limit, isPadded: false) { return false }
        }
        return self.mark == mark
    }

    /// The header of the valid record at an offset; its bytes are then in the window.
    private mutating func record(
        at offset: Int, limit: Int
    ) throws(SystemError) -> RecordHeader? {
        guard limit - offset >= RecordHeader.bytes,
            try load(offset, count: RecordHeader.bytes, limit: limit)
        else { return nil }
        let start = offset - windowStart
        for index in marker.indices where window.span[start + index] != marker[index] { return nil }
        let header = RecordHeader(window.span, at: start)
        let count = RecordHeader.bytes + header.length
        guard count <= limit - offset, try load(offset, count: count, limit: limit),
            header.matches(window.span, at: offset - windowStart)
        else { return nil }
        return header
    }

    /// The first valid record that starts at or after an offset.
    private mutating func findRecord(
        from offset: Int, limit: Int
    ) throws(SystemError) -> (offset: Int, header: RecordHeader)? {
        var offset = offset
        while limit - offset >= RecordHeader.bytes {
            let count = min(Self.windowBytes - BlockBuffer.blockBytes, limit - offset)
            guard try load(offset, count: count, limit: limit) else { return nil }
            let start = offset - windowStart
            guard
                let found = place(of: marker, in: window.span.extracting(start..<start + count))
            else {
                offset += count - 7
                continue
            }
            offset += found
            if let header = try record(at: offset, limit: limit) { return (offset, header) }
            offset += 1
        }
        return nil
    }

    /// Brings bytes into the window; false when the file ends before them.
    private mutating func load(
        _ offset: Int, count: Int, limit: Int
    ) throws(SystemError) -> Bool {
        let end = windowStart + window.count
        if offset >= windowStart, offset + count <= end { return true }
        let start = BlockBuffer.roundedDown(offset)
        if start >= windowStart, start < end {
            window.removeFirst(start - windowStart)
            // The last block may have had less than it has now.
            window.truncate(to: BlockBuffer.roundedDown(window.count))
        } else {
            window.truncate(to: 0)
        }
        windowStart = start
        // Larger for a large record, and for no longer than that.
        window.setCapacity(max(offset + count - start, Self.windowBytes))
        do throws(SystemError) {
            try fill(upTo: min(window.capacity, BlockBuffer.roundedUp(limit - start)))
        } catch {
            window.truncate(to: 0)
            throw error
        }
        // What is there beyond the limit is not durable yet.
        window.truncate(to: min(window.count, limit - start))
        return window.count >= offset + count - start
    }

    /// Reads on until the window has so many bytes.
    private mutating func fill(upTo count: Int) throws(SystemError) {
        do throws(SystemError) {
            try file.append(to: &window, upTo: count, at: windowStart + window.count)
        } catch {
            guard error.code == EIO else { throw error }
            isPartlyUnreadable = true
            let bytes = try Self.readTolerantly(
                file, count: count - window.count, at: windowStart + window.count)
            _ = window.fill(from: bytes.span)
        }
    }

    /// Reads with sectors that cannot be read as zeros, so that only their records are lost.
    static func readTolerantly(
        _ file: borrowing File, count: Int, at offset: Int
    ) throws(SystemError) -> [UInt8] {
        do throws(SystemError) {
            return try file.read(count: count, at: offset)
        } catch {
            guard error.code == EIO else { throw error }
        }
        var bytes: [UInt8] = []
        let end = min(offset + count, try file.size())
        while offset + bytes.count < end {
            let place = offset + bytes.count
            let part = min(4096 - place % 4096, end - place)
            let read = try? file.read(count: part, at: place)
            bytes += read ?? Array(repeating: 0, count: part)
            if let read, read.count < part { break }
        }
        return bytes
    }
}

/// Where in `bytes` a pattern first starts.
func place(of pattern: [UInt8], in bytes: Span<UInt8>) -> Int? {
    unsafe bytes.withUnsafeBytes { buffer in
        // SAFETY: it reads within the two buffers and answers a place in the first, or null.
        guard let base = buffer.baseAddress,
            let found = unsafe tapline_find(base, buffer.count, pattern, pattern.count)
        else { return nil }
        return unsafe found - base
    }
}

extension Span<UInt8> {
    /// A copy.
    func copied() -> [UInt8] { unsafe withUnsafeBufferPointer { unsafe [UInt8]($0) } }
}
