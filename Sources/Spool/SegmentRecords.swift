import Platform

/// Reads the records of one segment in order, past any damage, without owning the spool.
///
/// A segment that is deleted meanwhile can be read to its end.
package struct SegmentRecords: ~Copyable {
    /// What comes next.
    package enum Step {
        case record(SpoolRecord)
        /// Bytes that hold no whole record: where they start, and how many records they seem to be.
        case damage(offset: UInt64, records: Int)
    }

    private var cursor: SegmentCursor
    private let limit: Int

    /// Opens a segment.
    ///
    /// - Returns: Nil when there is no such segment.
    /// - Throws: ``SpoolError/unreadable(path:)`` when nothing of it can be read.
    package static func open(
        directory path: String, segment: UInt64
    ) throws(SpoolError) -> SegmentRecords? {
        let path = SpoolDirectory(path: path).segment(segment)
        do throws(SpoolError) {
            guard let cursor = try SegmentCursor.open(path, number: segment) else {
                throw .unreadable(path: path)
            }
            return try SegmentRecords(cursor)
        } catch {
            guard case .failed(let cause) = error, cause.isNotFound else { throw error }
            return nil
        }
    }

    private init(_ cursor: consuming SegmentCursor) throws(SpoolError) {
        do {
            limit = try cursor.file.size()
        } catch {
            throw SpoolError(error)
        }
        self.cursor = cursor
    }

    /// The next record or damage; nil at the end.
    package mutating func next() throws(SpoolError) -> Step? {
        do throws(SystemError) {
            switch try cursor.next(limit: limit, isPadded: true) {
            case .record(let record): return .record(record)
            case .damage(let range): return try damage(range)
            case .end(let bytes):
                guard bytes > 0 else { return nil }
                cursor.skip(to: limit)
                return try damage(limit - bytes..<limit)
            }
        } catch {
            throw SpoolError(error)
        }
    }

    private func damage(_ range: Range<Int>) throws(SystemError) -> Step {
        let bytes = try SegmentCursor.readTolerantly(
            cursor.file, count: range.count, at: range.lowerBound)
        let pieces = Quarantine.pieces(
            of: bytes, at: range.lowerBound, marker: cursor.marker)
        return .damage(offset: UInt64(range.lowerBound), records: pieces.count)
    }
}

extension SpoolFiles {
    /// The numbers of the segments of a spool, rising.
    package static func segments(directory: String) throws(SpoolError) -> [UInt64] {
        try rethrow { () throws(SystemError) in
            try SpoolDirectory(path: directory).segments()
        }
    }
}
