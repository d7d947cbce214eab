import Platform

/// What a start finds on disk.
struct SpoolRecovery {
    private(set) var segments: [SegmentIndex.Segment] = []
    private(set) var newestID: SpoolID?
    /// Where the newest record ends; nil when the newest segment has none.
    private(set) var end: SpoolMark?
    private(set) var tornTails = 0
    private(set) var tornTailBytes = 0
    let released: UInt64

    /// Looks at the size of each segment, and reads only the newest, whose tail may be torn.
    ///
    /// The torn tail is cut off. A newest segment without a whole header was being created and is
    /// removed; then the one before is the newest.
    init(directory: SpoolDirectory, storage: SpoolStorage) throws(SpoolError) {
        released = ReleasedFile.load(directory.released)
        for number in try rethrow({ () throws(SystemError) in try directory.segments() }) {
            let (size, modified) = try rethrow { () throws(SystemError) in
                try File(directory.segment(number), .read).status()
            }
            let loadedAt = number < released ? modified : nil
            segments.append(
                .init(number: number, bytes: size, isPadded: true, loadedAt: loadedAt))
        }
        while let newest = segments.last {
            let path = directory.segment(newest.number)
            if var cursor = try SegmentCursor.open(path, number: newest.number) {
                newestID = cursor.header?.id
                segments[segments.count - 1].bytes = try cutTail(
                    &cursor, size: newest.bytes, storage)
                segments[segments.count - 1].isPadded = false
                if cursor.position > SegmentHeader.bytes { end = cursor.mark }
                return
            }
            // More than a header that cannot be read is damage, which the reader sets aside.
            guard hasNoRecord(path, size: newest.bytes) else { return }
            Log.warn("spool segment without a header removed", ["path": path])
            try rethrow { () throws(SystemError) in try storage.discard(path) }
            segments.removeLast()
            tornTails += 1
            tornTailBytes += newest.bytes
        }
    }

    /// Whether there is nothing after the header but zeros that fill its block; what cannot be read is something.
    private func hasNoRecord(_ path: String, size: Int) -> Bool {
        if size <= SegmentHeader.bytes { return true }
        guard size <= BlockBuffer.blockBytes,
            let bytes = try? SegmentCursor.file(path).read(count: size, at: 0), bytes.count == size
        else { return false }
        return bytes.dropFirst(SegmentHeader.bytes).allSatisfy { $0 == 0 }
    }

    /// Makes durable what the last run may have written and not synced: it is about to be loaded, and a
    /// checkpoint after a record that a power cut then takes would be of no history.
    ///
    /// A disk that cannot does not keep the daemon from starting.
    private func sync(_ file: borrowing File, _ storage: SpoolStorage) {
        do throws(SystemError) { try storage.sync(file) } catch { Log.warn("\(error)") }
    }

    /// Reads a segment to its last whole record, and cuts off what follows it.
    ///
    /// - Returns: The size that is left.
    private mutating func cutTail(
        _ cursor: inout SegmentCursor, size: Int, _ storage: SpoolStorage
    ) throws(SpoolError) -> Int {
        do throws(SystemError) {
            let bytes = try cursor.moveToEnd(limit: size)
            let end = cursor.position
            if bytes > 0 {
                try cut(cursor.file.path, to: end, storage)
                tornTails += 1
                tornTailBytes += bytes
                Log.warn(
                    "torn tail of the spool cut off; it was never acknowledged",
                    ["path": cursor.file.path, "offset": "\(end)", "bytes": "\(bytes)"])
            } else if end < size {
                // Its writer was killed, and had filled the last block. Readers know that from damage.
                do throws(SystemError) { try cut(cursor.file.path, to: end, storage) } catch {
                    Log.warn("\(error)")
                    sync(cursor.file, storage)
                }
            } else {
                sync(cursor.file, storage)
            }
            return end
        } catch {
            throw SpoolError(error)
        }
    }

    private func cut(
        _ path: String, to end: Int, _ storage: SpoolStorage
    ) throws(SystemError) {
        let file = try File(path, .readWrite)
        try storage.truncate(file, end)
        try storage.sync(file)
    }
}
