import Platform

/// Reads a spool without owning it, while a daemon may be writing to it.
package enum SpoolFiles {
    /// What a scan found.
    package struct Scan: Equatable, Sendable {
        /// Whole records after the mark.
        package var records = 0
        /// Their events, as their appender counted them.
        package var events = 0
        /// Records that cannot be read: those in quarantine, and damage not yet copied there.
        package var quarantinedRecords = 0
        /// Events of those records, as far as they still say.
        package var quarantinedEvents = 0
        /// Bytes of those records.
        package var quarantinedBytes = 0
        /// The position after the last whole record; nil when there is none after the mark.
        package var end: SpoolMark?
    }

    /// The id and epoch of a spool; nil when there is none, or its file is damaged.
    package static func identity(
        directory: String
    ) throws(SpoolError) -> (id: SpoolID, epoch: SpoolID)? {
        try rethrow { () throws(SystemError) in
            try SpoolIdentity.load(SpoolDirectory(path: directory).identity).map {
                ($0.id, $0.epoch)
            }
        }
    }

    /// Reads the records after a mark, up to the last whole one.
    ///
    /// Nothing is written and no lock taken. A record that the daemon is just writing may be seen
    /// before it is durable, and one after it may not. A segment deleted meanwhile was loaded, and is passed over.
    ///
    /// - Parameters:
    ///   - directory: That of the spool.
    ///   - mark: Where to start; nil starts at the oldest segment.
    ///   - body: Given each record in order.
    /// - Throws: ``SpoolError/notThisSpool(_:)`` when no record ends at the mark with its chain.
    @discardableResult
    package static func scan(
        directory path: String, from mark: SpoolMark? = nil, body: (SpoolRecord) -> Void
    ) throws(SpoolError) -> Scan {
        let directory = SpoolDirectory(path: path)
        let quarantine = Quarantine(directory: directory)
        var scan = Scan()
        let (numbers, known) = try rethrow { () throws(SystemError) in
            (try directory.segments(), try quarantine.names())
        }
        if let mark, !numbers.contains(mark.segment) { throw .notThisSpool(mark) }
        for number in numbers where number >= mark?.segment ?? 0 {
            let start = number == mark?.segment ? mark : nil
            do throws(SpoolError) {
                try read(
                    directory, number, from: start, isNewest: number == numbers.last, known,
                    &scan, body)
            } catch {
                guard case .failed(let cause) = error, cause.isNotFound else { throw error }
            }
        }
        let kept = try rethrow { () throws(SystemError) in try quarantine.count() }
        scan.quarantinedRecords += kept.records
        scan.quarantinedEvents += kept.events
        scan.quarantinedBytes += kept.bytes
        return scan
    }

    /// The first whole record after a mark; nil when there is none.
    ///
    /// - Throws: As ``scan(directory:from:body:)``.
    package static func first(
        directory path: String, from mark: SpoolMark?
    ) throws(SpoolError) -> SpoolRecord? {
        let directory = SpoolDirectory(path: path)
        let numbers = try rethrow { () throws(SystemError) in try directory.segments() }
        for number in numbers where number >= mark?.segment ?? 0 {
            guard var cursor = try SegmentCursor.open(directory.segment(number), number: number)
            else { continue }
            let record = try rethrow { () throws(SystemError) -> SpoolRecord? in
                let limit = try cursor.file.size()
                if let mark, number == mark.segment {
                    // Nothing is after the end, and only a walk over all records before would tell
                    // whether the mark is of this spool.
                    guard let offset = Int(exactly: mark.offset), offset < limit,
                        try !cursor.isPadding(from: offset, limit: limit),
                        try cursor.seek(to: mark, limit: limit)
                    else { return nil }
                }
                while true {
                    switch try cursor.next(limit: limit, isPadded: true) {
                    case .record(let record): return record
                    case .damage(let range):
                        let isNewest = number == numbers.last
                        if isNewest, SegmentCursor.isUnfinished(range, limit: limit) { return nil }
                    case .end: return nil
                    }
                }
            }
            if let record { return record }
        }
        return nil
    }

    private static func read(
        _ directory: SpoolDirectory, _ number: UInt64, from mark: SpoolMark?, isNewest: Bool,
        _ known: Set<String>, _ scan: inout Scan, _ body: (SpoolRecord) -> Void
    ) throws(SpoolError) {
        guard var cursor = try SegmentCursor.open(directory.segment(number), number: number)
        else {
            if let mark { throw .notThisSpool(mark) }
            // The newest is being created; another is one that a reader sets aside whole.
            if !isNewest { scan.quarantinedRecords += 1 }
            return
        }
        let isFound = try rethrow { () throws(SystemError) in
            let limit = try cursor.file.size()
            if let mark, try !cursor.seek(to: mark, limit: limit) { return false }
            while true {
                switch try cursor.next(limit: limit, isPadded: true) {
                case .record(let record):
                    scan.records += 1
                    scan.events += record.events
                    scan.end = record.mark
                    body(record)
                case .damage(let range):
                    if isNewest, SegmentCursor.isUnfinished(range, limit: limit) { return true }
                    try count(range, cursor, known, &scan)
                case .end(let bytes):
                    if bytes > 0, !isNewest {
                        try count(limit - bytes..<limit, cursor, known, &scan)
                    }
                    return true
                }
            }
        }
        if let mark, !isFound { throw .notThisSpool(mark) }
    }

    private static func count(
        _ range: Range<Int>, _ cursor: borrowing SegmentCursor, _ known: Set<String>,
        _ scan: inout Scan
    ) throws(SystemError) {
        let bytes = try SegmentCursor.readTolerantly(
            cursor.file, count: range.count, at: range.lowerBound)
        let pieces = Quarantine.pieces(of: bytes, at: range.lowerBound, marker: cursor.marker)
        for piece in pieces where !known.contains(Quarantine.name(cursor.number, piece)) {
            scan.quarantinedRecords += 1
            scan.quarantinedEvents += Int(piece.events)
            scan.quarantinedBytes += piece.range.count
        }
    }
}
