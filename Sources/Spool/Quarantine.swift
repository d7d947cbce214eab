import Platform

/// Records that could not be read, copied to files of their own and counted.
///
/// A file's name is `SEGMENT-OFFSET-EVENTS.bad` in decimal, so that the same damage read twice
/// is kept once; EVENTS is what the record's header says, 0 if that is unreadable too. A segment
/// of which nothing could be read is moved here whole, as `SEGMENT-0-0.bad`.
struct Quarantine: Sendable {
    /// What is kept.
    struct Count: Equatable {
        var records = 0
        var events = 0
        var bytes = 0
    }

    let directory: SpoolDirectory
    var storage = SpoolStorage.system

    /// A record that cannot be read: where it is and what it seems to hold.
    struct Piece: Equatable {
        let range: Range<Int>
        let events: UInt32
    }

    /// Divides damaged bytes at the record markers that are left in them.
    static func pieces(of bytes: [UInt8], at offset: Int, marker: [UInt8]) -> [Piece] {
        var starts = [0]
        while let last = starts.last,
            let found = place(of: marker, in: bytes.span.extracting(droppingFirst: last + 1))
        {
            starts.append(last + 1 + found)
        }
        return starts.indices.map { place in
            let start = starts[place]
            let end = place + 1 < starts.count ? starts[place + 1] : bytes.count
            var events: UInt32 = 0
            if end - start >= RecordHeader.bytes {
                let header = RecordHeader(bytes.span, at: start)
                // Only a header whose length fits is believed.
                if RecordHeader.bytes + header.length == end - start { events = header.events }
            }
            return Piece(range: offset + start..<offset + end, events: events)
        }
    }

    static func name(_ segment: UInt64, _ piece: Piece) -> String {
        "\(SpoolDirectory.name(segment).dropLast(4))-\(piece.range.lowerBound)-\(piece.events).bad"
    }

    /// The names that are kept.
    func names() throws(SystemError) -> Set<String> {
        do throws(SystemError) {
            return Set(try Directory.list(directory.quarantine).filter { $0.hasSuffix(".bad") })
        } catch {
            if error.isNotFound { return [] }
            throw error
        }
    }

    /// Counts what is kept.
    func count() throws(SystemError) -> Count {
        var count = Count()
        for name in try names() {
            count.records += 1
            count.events += name.dropLast(4).split(separator: "-").last.flatMap { Int($0) } ?? 0
            let file = try File(directory.quarantine + "/" + name, .read)
            count.bytes += try file.size()
        }
        return count
    }

    /// Copies damaged bytes of a segment here, durably.
    ///
    /// - Returns: What was not here before.
    func keep(
        _ range: Range<Int>, of file: borrowing File, segment: UInt64, marker: [UInt8]
    ) throws(SystemError) -> Count {
        let bytes = try SegmentCursor.readTolerantly(
            file, count: range.count, at: range.lowerBound)
        try Directory.create(directory.quarantine)
        let known = try names()
        var count = Count()
        for piece in Self.pieces(of: bytes, at: range.lowerBound, marker: marker) {
            let name = Self.name(segment, piece)
            guard !known.contains(name) else { continue }
            let start = piece.range.lowerBound - range.lowerBound
            let part = bytes.span.extracting(start..<start + piece.range.count)
            try storage.replace(directory.quarantine + "/" + name, part)
            count.records += 1
            count.events += Int(piece.events)
            count.bytes += piece.range.count
        }
        return count
    }

    /// Moves a whole segment here.
    func keepSegment(_ number: UInt64, bytes: Int) throws(SystemError) -> Count {
        try Directory.create(directory.quarantine)
        let name = Self.name(number, Piece(range: 0..<bytes, events: 0))
        try storage.move(directory.segment(number), directory.quarantine + "/" + name)
        return Count(records: 1, events: 0, bytes: bytes)
    }
}
