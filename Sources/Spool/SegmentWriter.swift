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
    /// What is not written yet, after what of the same block is: blocks are written whole.
    private var staged: BlockBuffer
    /// Where in the file the staged bytes start: at a block.
    private var stagedStart = 0
    private static let stagedBytesMax = 1 << 20

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
        var staged = BlockBuffer(capacity: Self.stagedBytesMax)
        _ = staged.fill(from: bytes.span)
        staged.padToBlock()
        let file = try storage.create(path)
        do throws(SystemError) {
            try Self.write(staged.span, to: file, at: 0, storage)
            try Failpoint.attempt("spool.rotate", path)
            try storage.sync(file)
            try storage.syncDirectory(directory.path)
        } catch {
            try? storage.discard(path)
            throw error
        }
        staged.truncate(to: bytes.count)
        self.path = path
        self.number = number
        self.id = id
        self.storage = storage
        self.file = file
        self.staged = staged
        marker = header.marker
        chain = SegmentHeader.checksum(of: bytes)
    }

    /// Appends a record, not yet durable.
    ///
    /// - Returns: The position after it.
    mutating func append(_ payload: [UInt8], events: Int) throws(SystemError) -> SpoolMark {
        var head: [UInt8] = []
        head.reserveCapacity(RecordHeader.bytes)
        chain = RecordHeader.append(
            to: &head, marker: marker, payload: payload, events: UInt32(clamping: events),
            chainBefore: chain)
        try stage(head.span)
        try stage(payload.span)
        position += RecordHeader.bytes + payload.count
        return SpoolMark(segment: number, offset: UInt64(position), chain: chain)
    }

    /// Makes all that was appended durable.
    mutating func sync() throws(SystemError) {
        try flush()
        try Failpoint.attempt("spool.sync.before", path)
        try storage.sync(file)
        synced = position
    }

    private mutating func stage(_ bytes: Span<UInt8>) throws(SystemError) {
        var taken = staged.fill(from: bytes)
        while taken < bytes.count {
            try flush()
            taken += staged.fill(from: bytes.extracting(droppingFirst: taken))
        }
    }

    /// Writes what is staged, with zeros up to the end of its last block, which stays staged if it is not full.
    private mutating func flush() throws(SystemError) {
        let count = staged.count
        staged.padToBlock()
        try Self.write(staged.span, to: file, at: stagedStart, storage)
        staged.truncate(to: count)
        let whole = BlockBuffer.roundedDown(count)
        staged.removeFirst(whole)
        stagedStart += whole
    }

    private static func write(
        _ bytes: Span<UInt8>, to file: borrowing File, at offset: Int, _ storage: SpoolStorage
    ) throws(SystemError) {
        try Failpoint.attempt("spool.write.before", file.path)
        var done = 0
        var wasShort = false
        while done < bytes.count {
            let count = try storage.write(
                file, bytes.extracting(droppingFirst: done), offset + done)
            // A block of which a part was written is written once more, and then it says why.
            let end = file.isDirect ? BlockBuffer.roundedDown(done + count) : done + count
            guard end > done || count > 0 && !wasShort else {
                throw SystemError(code: EIO, action: "write", path: file.path)
            }
            wasShort = end == done
            done = end
        }
        try Failpoint.attempt("spool.write.after", file.path)
    }

    /// Ends a segment: cuts off what fills its last block.
    ///
    /// Where that fails, or a power cut undoes it, readers know such zeros from damage.
    ///
    /// - Returns: Its bytes.
    consuming func end() -> Int {
        do throws(SystemError) {
            try storage.truncate(file, synced)
        } catch {
            Log.warn("\(error)")
        }
        return synced
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
