import Glibc
import Platform

/// Appends records to one segment. Used by the committer thread alone.
///
/// After any error the segment is finished: the caller abandons it.
struct SegmentWriter: ~Copyable {
    let number: UInt64
    /// The spool id in its header.
    let id: SpoolID
    private let path: String
    private let file: File
    private let marker: [UInt8]
    private let storage: SpoolStorage
    /// Where the next record starts.
    private(set) var position = SegmentHeader.bytes
    /// Below it everything is durable.
    private(set) var synced = SegmentHeader.bytes
    private var chain: UInt32
    // Small records are gathered here, so that a group of them is one write; large ones are
    // written from where they are.
    private var staged: [UInt8] = []
    private static let stagedBytesMax = 256 << 10
    private static let copiedBytesMax = 64 << 10

    /// Creates a segment file with its header, durably.
    ///
    /// - Throws: ``SystemError``; no file is left behind, unless it cannot even be removed.
    init(
        directory: SpoolDirectory, number: UInt64, previous: UInt64, id: SpoolID,
        storage: SpoolStorage
    ) throws(SystemError) {
        let path = directory.segment(number)
        let header = SegmentHeader(
            id: id, number: number, previous: previous, nonce: Random.bytes(12))
        let bytes = header.encoded()
        let file = try storage.create(path)
        do throws(SystemError) {
            try Self.write(bytes.span, to: file, at: 0, storage)
            try Failpoint.attempt("spool.rotate", path)
            try storage.sync(file)
            try storage.syncDirectory(directory.path)
        } catch {
            try? storage.discard(path)
            throw error
        }
        self.path = path
        self.number = number
        self.id = id
        self.storage = storage
        self.file = file
        marker = header.marker
        chain = SegmentHeader.checksum(of: bytes)
    }

    /// Appends a record, not yet durable.
    ///
    /// - Returns: The position after it.
    mutating func append(_ payload: [UInt8], events: Int) throws(SystemError) -> SpoolMark {
        chain = RecordHeader.append(
            to: &staged, marker: marker, payload: payload, events: UInt32(clamping: events),
            chainBefore: chain)
        if payload.count <= Self.copiedBytesMax {
            staged += payload
            position += RecordHeader.bytes + payload.count
            if staged.count > Self.stagedBytesMax { try flush() }
        } else {
            position += RecordHeader.bytes
            try flush()
            try Self.write(payload.span, to: file, at: position, storage)
            position += payload.count
        }
        return SpoolMark(segment: number, offset: UInt64(position), chain: chain)
    }

    /// Makes all that was appended durable.
    mutating func sync() throws(SystemError) {
        try flush()
        try Failpoint.attempt("spool.sync.before", path)
        try storage.sync(file)
        synced = position
    }

    private mutating func flush() throws(SystemError) {
        guard !staged.isEmpty else { return }
        try Self.write(staged.span, to: file, at: position - staged.count, storage)
        staged.removeAll(keepingCapacity: true)
    }

    private static func write(
        _ bytes: Span<UInt8>, to file: borrowing File, at offset: Int, _ storage: SpoolStorage
    ) throws(SystemError) {
        try Failpoint.attempt("spool.write.before", file.path)
        var done = 0
        while done < bytes.count {
            let count = try storage.write(
                file, bytes.extracting(droppingFirst: done), offset + done)
            guard count > 0 else {
                throw SystemError(code: EIO, action: "write", path: file.path)
            }
            done += count
        }
        try Failpoint.attempt("spool.write.after", file.path)
    }

    /// Ends a segment of which a write or a sync failed: cuts it back to what is durable.
    ///
    /// A failed sync is not tried again: the kernel may have dropped the pages and would answer
    /// that all is well.
    ///
    /// - Returns: The bytes that are durable; 0 when there are no records and the file is removed.
    consuming func abandon() -> Int {
        do throws(SystemError) {
            guard synced > SegmentHeader.bytes else {
                try storage.discard(path)
                return 0
            }
            try storage.truncate(file, synced)
            // Or a power cut might bring back some of what was cut, as damage. Nothing that was
            // refused is acknowledged by it, so that it does no harm if this sync is a lie.
            try storage.sync(file)
        } catch {
            Log.warn("\(error)")
        }
        return synced > SegmentHeader.bytes ? synced : 0
    }
}
