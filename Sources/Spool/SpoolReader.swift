import Glibc
import Platform

/// Reads the durable records of a spool in order, from segment to segment, past any damage.
///
/// Belongs to one thread at a time. While it lives, no segment that it has still to read is
/// deleted.
package final class SpoolReader {
    /// Names the reader to ``Spool/hurry(reader:)``.
    package let reader: UInt64
    private let spool: Spool
    private var segment: UInt64
    private var cursor: SegmentCursor?

    init(_ spool: Spool, reader: UInt64, segment: UInt64, cursor: consuming SegmentCursor?) {
        self.spool = spool
        self.reader = reader
        self.segment = segment
        self.cursor = cursor
    }

    deinit { spool.index.withLock { $0.setReader(reader, at: nil) } }

    /// Takes the next record.
    ///
    /// - Parameter timeoutMilliseconds: How long to wait for one to become durable; 0 does not.
    /// - Returns: Nil after the timeout, or when there is none and ``Spool/hurry(reader:)`` was called.
    /// - Throws: ``SpoolError/closing`` at the end of a closed spool; an error of the file, and
    ///   then the call may be repeated.
    package func next(timeoutMilliseconds: Int) throws(SpoolError) -> SpoolRecord? {
        let deadline = Clock.deadline(inMilliseconds: timeoutMilliseconds)
        while true {
            let advice = spool.index.wait(until: deadline) { index -> SegmentIndex.Advice?? in
                if let advice = index.advice(segment: segment, position: cursor?.position ?? 0) {
                    return advice
                }
                return index.isHurried(reader) ? .some(nil) : nil
            }
            switch advice ?? nil {
            case nil: return nil
            case .closed: throw .closing
            case .move(let number): move(to: number)
            case .read(let limit, let isPadded):
                if let record = try read(limit: limit, isPadded: isPadded) { return record }
            }
        }
    }

    private func move(to number: UInt64) {
        cursor = nil
        spool.index.withLock { $0.setReader(reader, at: number) }
        checkGap(before: number)
        segment = number
    }

    /// Says loudly that a segment which was there is gone.
    private func checkGap(before number: UInt64) {
        let path = spool.directory.segment(number)
        guard segment > 0, let opened = try? SegmentCursor.open(path, number: number),
            let previous = opened.header?.previous, previous > segment
        else { return }
        spool.noteMissing(previous)
    }

    private func read(limit: Int, isPadded: Bool) throws(SpoolError) -> SpoolRecord? {
        if cursor == nil {
            guard let opened = try spool.open(segment) else { return nil }
            cursor = consume opened
        }
        let step = try rethrow { () throws(SystemError) in
            try cursor?.next(limit: limit, isPadded: isPadded)
        }
        switch step {
        case .record(let record): return record
        case .damage(let range): setAside(range)
        case .end(let bytes):
            // Readers stop at what was durable, so that bytes there are damaged, not unfinished.
            if bytes > 0 { setAside(limit - bytes..<limit) }
            cursor?.skip(to: limit)
        case nil: break
        }
        return nil
    }

    private func setAside(_ range: Range<Int>) {
        guard let marker = cursor?.marker else { return }
        spool.setAside(range, segment: segment, marker: marker)
    }
}

extension Spool {
    /// Makes a reader that starts after a mark.
    ///
    /// - Parameter mark: Where an earlier reader was; nil starts at the oldest segment.
    /// - Throws: ``SpoolError/notThisSpool(_:)`` when no record ends at the mark with its chain: the
    ///   mark is ahead of the spool, or of another lineage.
    package func makeReader(from mark: SpoolMark?) throws(SpoolError) -> SpoolReader {
        guard let mark else {
            let reader = index.withLock { $0.addReader(at: 0) }
            return SpoolReader(self, reader: reader, segment: 0, cursor: nil)
        }
        let (reader, limit, isEnd) = index.withLock { index in
            let limit = index.segment(mark.segment)?.bytes
            return (index.addReader(at: mark.segment), limit, index.end == mark)
        }
        do throws(SpoolError) {
            guard let limit,
                var cursor = try SegmentCursor.open(
                    directory.segment(mark.segment), number: mark.segment)
            else { throw .notThisSpool(mark) }
            // The end has no record after it to tell: it would take a walk over all before it.
            if isEnd {
                cursor.move(to: mark)
            } else {
                let isFound = try rethrow { () throws(SystemError) in
                    try cursor.seek(to: mark, limit: limit)
                }
                guard isFound else { throw .notThisSpool(mark) }
                if mark.offset == UInt64(limit) { index.withLock { $0.note(end: mark) } }
            }
            return SpoolReader(self, reader: reader, segment: mark.segment, cursor: cursor)
        } catch {
            index.withLock { $0.setReader(reader, at: nil) }
            throw error
        }
    }

    /// Ends the waiting of a reader, now and later: it goes on to take what is durable already.
    package func hurry(reader: UInt64) {
        index.withLock { $0.hurry(reader) }
        index.broadcast()
    }

    /// Opens a segment for reading; one of which nothing can be read is set aside whole.
    ///
    /// - Returns: Nil when the segment is gone or set aside, and the next one is to be read.
    func open(_ number: UInt64) throws(SpoolError) -> SegmentCursor? {
        let path = directory.segment(number)
        let isActive = index.withLock { $0.active == number }
        do throws(SpoolError) {
            if let cursor = try SegmentCursor.open(path, number: number) {
                guard let header = cursor.header, header.number != number,
                    index.withLock({ $0.segment(header.number) }) != nil
                else { return cursor }
                Log.error(
                    "spool segment is a copy of another; it is set aside",
                    ["path": path, "number": "\(header.number)"])
            }
        } catch {
            guard case .failed(let cause) = error, cause.isNotFound, !isActive else { throw error }
            noteMissing(number)
            index.withLock { $0.remove(number) }
            return nil
        }
        // The growing segment is left to its writer: it is looked at again when it is complete.
        guard !isActive else {
            throw .failed(SystemError(code: EIO, action: "read the header of", path: path))
        }
        let bytes = index.withLock { $0.segment(number)?.bytes ?? 0 }
        let count = try rethrow { () throws(SystemError) in
            try quarantine.keepSegment(number, bytes: bytes)
        }
        note(count, segment: number, offset: 0)
        index.withLock { $0.remove(number) }
        return nil
    }

    /// Copies damaged bytes to the quarantine and counts them.
    func setAside(_ range: Range<Int>, segment: UInt64, marker: [UInt8]) {
        do throws(SystemError) {
            let file = try SegmentCursor.file(directory.segment(segment))
            let count = try quarantine.keep(
                range, of: file, segment: segment, marker: marker)
            note(count, segment: segment, offset: range.lowerBound)
        } catch {
            index.withLock { $0.pin(segment) }
            Log.error(
                "could not copy damaged spool records to the quarantine; the segment is kept",
                hint: "Free space on the disk of the spool.",
                ["reason": "\(error)", "segment": "\(segment)", "offset": "\(range.lowerBound)"])
        }
    }

    private func note(_ count: Quarantine.Count, segment: UInt64, offset: Int) {
        guard count.records > 0 else { return }
        index.withLock { $0.add(quarantined: count) }
        Log.error(
            "spool records cannot be read; they are in quarantine",
            hint: "The disk or the file system damaged them. Look at it, then at tapline check.",
            [
                "segment": "\(segment)", "offset": "\(offset)", "records": "\(count.records)",
                "bytes": "\(count.bytes)",
            ])
    }

    func noteMissing(_ number: UInt64) {
        index.withLock { $0.statistics.missingSegments += 1 }
        Log.error(
            "spool segment is missing",
            hint: "Put it back and start again; else its events are lost but for those sent again.",
            ["path": directory.segment(number)])
    }
}

extension SegmentIndex {
    mutating func add(quarantined count: Quarantine.Count) {
        statistics.quarantinedRecords += count.records
        statistics.quarantinedEvents += count.events
        statistics.quarantinedBytes += count.bytes
    }
}
