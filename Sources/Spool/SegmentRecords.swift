import Platform

/// Reads the whole records of one segment in order, past any damage, without owning the spool.
///
/// A segment that is deleted meanwhile can be read to its end.
package struct SegmentRecords: ~Copyable {
    private var cursor: SegmentCursor
    private let limit: Int

    /// Opens a segment.
    ///
    /// - Returns: Nil when there is no such segment, or nothing of it can be read.
    package static func open(
        directory path: String, segment: UInt64
    ) throws(SpoolError) -> SegmentRecords? {
        let path = SpoolDirectory(path: path).segment(segment)
        do throws(SpoolError) {
            guard let cursor = try SegmentCursor.open(path, number: segment) else { return nil }
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

    /// The next record; nil at the end.
    package mutating func next() throws(SpoolError) -> SpoolRecord? {
        while true {
            switch try step() {
            case .record(let record): return record
            case .damage: continue
            case .end: return nil
            }
        }
    }

    private mutating func step() throws(SpoolError) -> SegmentCursor.Step {
        do {
            return try cursor.next(limit: limit)
        } catch {
            throw SpoolError(error)
        }
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
