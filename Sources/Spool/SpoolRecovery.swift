import Platform

/// What a start finds on disk.
struct SpoolRecovery {
    private(set) var segments: [SegmentIndex.Segment] = []
    private(set) var newestID: SpoolID?
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
            segments.append(.init(number: number, bytes: size, loadedAt: loadedAt))
        }
        while let newest = segments.last {
            let path = directory.segment(newest.number)
            if var cursor = try SegmentCursor.open(path, number: newest.number) {
                newestID = cursor.header?.id
                segments[segments.count - 1].bytes = try cutTail(
                    &cursor, size: newest.bytes, storage)
                return
            }
            // More than a header that cannot be read is damage, which the reader sets aside.
            guard newest.bytes <= SegmentHeader.bytes else { return }
            Log.warn("spool segment without a header removed", ["path": path])
            try rethrow { () throws(SystemError) in try storage.discard(path) }
            segments.removeLast()
            tornTails += 1
            tornTailBytes += newest.bytes
        }
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
            if bytes == 0 {
                sync(cursor.file, storage)
                return size
            }
            let end = cursor.position
            let file = try File(cursor.file.path, .readWrite)
            try storage.truncate(file, end)
            try storage.sync(file)
            tornTails += 1
            tornTailBytes += bytes
            Log.warn(
                "torn tail of the spool cut off; it was never acknowledged",
                ["path": cursor.file.path, "offset": "\(end)", "bytes": "\(bytes)"])
            return end
        } catch {
            throw SpoolError(error)
        }
    }
}
