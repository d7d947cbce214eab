import Event
import Platform
import Postgres

/// Keeping the daemon's picture equal to the database.
extension LoadSession {
    /// Rows that are folded at once when a segment is read.
    private static let chunkRows = 20_000
    /// Events whose batches are asked for at once.
    private static let newsEvents = 50_000

    /// Brings the picture up to the batch before this turn; call it under the turn lock.
    mutating func catchUp(with turn: Turn) throws(LoadError) {
        if picture.batch == turn.previous, picture.openNumber == turn.segment,
            !turn.isOtherHistory, picture.generation == turn.generation
        {
            return
        }
        // A database that does not have this history was restored from a backup: what is known here
        // may not be stored there, so all of it is read again. It may have each batch and lack the last
        // closing of a segment: then the filter of the open one is known here.
        if turn.isOtherHistory || picture.closed.contains(segment: turn.segment) {
            forgetHistory()
        }
        if picture.generation != turn.generation {
            picture.closed.forgetAnswers()
            picture.forget()
            try readTestDevices()
            try readButtons()
        }
        try readFilters()
        var open = picture.batch < 0 ? nil : picture.takeOpen()
        if let box = open {
            // Of a segment that is closed by now the filter knows enough.
            if box.segment.number < turn.segment {
                try keepIdentities(of: box.segment)
                box.segment.start(number: turn.segment)
            }
            let isComplete =
                box.segment.number == turn.segment ? try readNews(of: box, turn) : false
            if !isComplete { open = nil }
        } else {
            open = try readAllNews(turn)
        }
        if open == nil {
            let fresh = OpenBox(number: turn.segment)
            try read(&fresh.segment, where: "true")
            try readSpecials(&fresh.segment, after: -1)
            open = fresh
        }
        if let open { picture.putOpen(open) }
        picture.batch = turn.previous
        picture.storedAt = turn.previousStoredAt
        picture.generation = turn.generation
    }

    private func forgetHistory() {
        Log.warn("the database has another history than before, reading it again")
        picture.closed.removeAll()
        picture.forget()
    }

    /// Brings the picture forward by what is committed, as far as it is written down for others; call it
    /// outside of a transaction.
    ///
    /// - Returns: Whether nothing is left that only the turn can tell.
    mutating func catchUpAhead() throws(LoadError) -> Bool {
        let newest = try connection.statement("SELECT batch FROM tapline.turn")
        guard newest.rows == 1, (newest.int64(0, 0) ?? 0) > picture.batch else { return true }
        let pending = try pendingNews(after: picture.batch)
        // Anything out of the ordinary is left to the turn.
        guard pending.rows > 0, Int(pending.int64(0, 2) ?? 0) == picture.openNumber,
            pending.int64(0, 4) == picture.generation,
            picture.batch <= 0 || pending.int64(0, 5) == picture.storedAt,
            let box = picture.takeOpen()
        else { return false }
        // Until all is read the picture is without its open segment, so it is made anew after an error.
        let end = try take(pending, into: &box.segment)
        let isComplete = end == pending.rows
        var known = (batch: picture.batch, storedAt: picture.storedAt)
        if isComplete {
            known = (pending.int64(0, 0) ?? 0, pending.int64(0, 1) ?? 0)
        } else if end > 0 {
            known = (pending.int64(end - 1, 6) ?? 0, pending.int64(end - 1, 7) ?? 0)
        }
        // What has become special since is read too early here, and once more with its batch.
        try readSpecials(&box.segment, after: picture.batch)
        guard !isComplete || box.segment.rows == Int(pending.int64(0, 3) ?? 0)
        else { return false }
        picture.putOpen(box)
        picture.batch = known.batch
        picture.storedAt = known.storedAt
        return isComplete
    }

    /// The newest batch, and the batches of the open segment that are not known here: all as of one moment.
    private func pendingNews(after batch: Int64) throws(LoadError) -> PostgresResult {
        func microseconds(_ column: String) -> String {
            "(extract(epoch FROM \(column)) * 1000000)::bigint"
        }
        return try connection.statement(
            """
            SELECT t.batch, \(microseconds("t.stored_at")), t.segment, t.segment_rows,
                t.generation::bigint,
                (SELECT \(microseconds("k.stored_at")) FROM tapline.batch k WHERE k.batch = $1),
                b.batch, \(microseconds("b.stored_at")), b.first_block, b.rows::bigint
            FROM tapline.turn t
            LEFT JOIN tapline.batch b ON b.batch > $1 AND b.segment = t.segment AND b.rows > 0
            ORDER BY b.batch
            """, [.int64(batch)], format: .binary)
    }

    /// Takes batches in their order, up to the first that nobody wrote down.
    ///
    /// - Returns: The row of that one; the number of rows when there is none.
    private mutating func take(
        _ pending: borrowing PostgresResult, into segment: inout OpenSegment
    ) throws(LoadError) -> Int {
        var row = 0
        while row < pending.rows {
            // As many in a statement as a large batch has events: there may be one batch, or thousands of small ones.
            var (end, events) = (row, 0)
            while end < pending.rows, events < Self.newsEvents {
                events += Int(pending.int64(end, 9) ?? 0)
                end += 1
            }
            // Without any, there is one row that names none.
            guard let first = pending.int64(row, 6), let last = pending.int64(end - 1, 6) else {
                return pending.rows
            }
            var news = try self.news(from: first, through: last)[...]
            while row < end {
                guard let next = news.popFirst(), next.batch == pending.int64(row, 6),
                    try take(next.bytes, into: &segment)
                else { return row }
                row += 1
            }
        }
        return pending.rows
    }

    /// What other daemons wrote down of some batches, in their order, without those of which nothing is there: nobody
    /// wrote it, or the segment was closed since.
    private func news(
        from first: Int64, through last: Int64
    ) throws(LoadError) -> [(batch: Int64, bytes: [UInt8])] {
        var found: [(batch: Int64, bytes: [UInt8])] = []
        var batch: Int64?
        var bytes: [UInt8] = []
        func finish() {
            guard let batch else { return }
            // They are kept as long as the segment is open: without the room that an array grows by.
            found.append((batch, unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) }))
            bytes.removeAll(keepingCapacity: true)
        }
        do throws(PostgresError) {
            try connection.copyOut(
                """
                COPY (SELECT batch, events FROM tapline.batch_news
                    WHERE batch BETWEEN \(first) AND \(last) ORDER BY batch, piece)
                TO STDOUT (FORMAT binary)
                """
            ) { row in
                guard let number = row.int64(0), let piece = row.field(1) else { return }
                if number != batch { finish() }
                batch = number
                unsafe piece.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
            }
        } catch {
            throw .postgres(error)
        }
        finish()
        return found
    }

    /// The open segment of a daemon that knows nothing of it yet; nil unless all of it is written down.
    private mutating func readAllNews(_ turn: Turn) throws(LoadError) -> OpenBox? {
        let fresh = OpenBox(number: turn.segment)
        let pending = try pendingNews(after: -1)
        guard try take(pending, into: &fresh.segment) == pending.rows,
            fresh.segment.rows == turn.segmentRows
        else { return nil }
        try readSpecials(&fresh.segment, after: -1)
        return fresh
    }

    /// Reads what other daemons have added to the open segment since.
    ///
    /// - Returns: Whether it is complete then.
    private mutating func readNews(of open: OpenBox, _ turn: Turn) throws(LoadError) -> Bool {
        // From what the others wrote down; where one did not know that it is read, from the rows.
        let pending = try pendingNews(after: picture.batch)
        let end = try take(pending, into: &open.segment)
        if end < pending.rows {
            let known = end == 0 ? picture.batch : pending.int64(end - 1, 6) ?? 0
            var first = Int64.max
            for row in end..<pending.rows { first = min(first, pending.int64(row, 8) ?? 0) }
            try read(&open.segment, where: "ctid >= '(\(first),0)' AND batch > \(known)")
        }
        guard open.segment.rows == turn.segmentRows else {
            // A picture short of keys would store an event twice.
            Log.warn(
                "keys of segment \(turn.segment) are not complete, reading them again",
                ["known": "\(open.segment.rows)", "rows": "\(turn.segmentRows)"])
            return false
        }
        try readSpecials(&open.segment, after: picture.batch)
        return true
    }

    /// Takes a batch as another daemon wrote it down.
    ///
    /// - Returns: Whether it could be read; nothing is changed otherwise.
    private mutating func take(
        _ bytes: [UInt8], into segment: inout OpenSegment
    ) throws(LoadError) -> Bool {
        guard let news = BatchNews.Reader(bytes.rawSpan, &segment) else {
            guard !bytes.isEmpty else { return false }
            // While daemons are upgraded one by one, each batch of the others is of another format.
            Log.debug("what another daemon wrote of a batch is of another format, reading its rows")
            return false
        }
        let linked = segment.unfolded.add(bytes, news)
        try fold(segment.unfolded.take(linked), into: &segment)
        return true
    }

    /// Folds what other daemons have stored into their units; nothing is written.
    ///
    /// What fails leaves a segment that is not complete.
    mutating func fold(
        _ entries: [BatchNews.Reader.Entry], into segment: inout OpenSegment
    ) throws(LoadError) {
        // In parts, as what is asked for of older segments is as much.
        for start in stride(from: 0, to: entries.count, by: Self.chunkRows) {
            let part = entries[start..<min(start + Self.chunkRows, entries.count)]
            var older = try self.older(than: segment, part.map(\.event)[...])
            var fold = Fold(isWriting: false)
            for index in part.indices {
                if index &+ Decision.lookAhead < part.endIndex {
                    segment.prefetch(part[index &+ Decision.lookAhead].event)
                }
                let entry = part[index]
                segment.add(
                    entry.event, campaign: entry.campaign, profile: entry.profile, old: &older,
                    to: &fold)
                segment.addKey(entry.event.key, entry.content)
            }
        }
    }

    private mutating func readTestDevices() throws(LoadError) {
        let marks = try connection.statement(
            "SELECT tapline.hash64(app, device_id) FROM tapline.test_device WHERE applied", [],
            format: .binary)
        picture.testDevices = []
        for row in 0..<marks.rows {
            picture.testDevices.insert(deviceHalf(marks.bytes(row, 0)))
        }
    }

    private func readButtons() throws(LoadError) {
        let rows = try connection.statement(
            """
            SELECT app, category_id, action_id, opens_app FROM tapline.category_button
            WHERE opens_app IS NOT NULL
            """)
        picture.buttons = [:]
        for row in 0..<rows.rows {
            let key = ButtonKey(
                app: rows.string(row, 0) ?? "", category: rows.string(row, 1) ?? "",
                action: rows.string(row, 2) ?? "")
            picture.buttons[key] = rows.bool(row, 3)
        }
    }

    /// Keeps the identities of a segment that another daemon has closed in a file, as far as they are known here.
    ///
    /// To write one takes 0.1 us, to ask the database for an event that comes again 5, and pages of its disk.
    private mutating func keepIdentities(
        of segment: borrowing OpenSegment
    ) throws(LoadError) {
        guard picture.closed.hasFiles, segment.rows > 0 else { return }
        // Rows that somebody has deleted are not stored: see how a segment is closed.
        let closed = try connection.statement(
            """
            SELECT s.closing FROM tapline.segment s
                JOIN pg_class c ON c.oid = to_regclass('tapline.event_\(segment.number)')
            WHERE s.segment = \(segment.number) AND s.rows = c.reltuples::bigint
                AND s.closing IS NOT NULL
            """, [], format: .binary)
        guard closed.rows == 1 else { return }
        picture.closed.addLater(
            .init(unsorted: segment), of: ClosingID(uuid: closed.bytes(0, 0)), segment.number)
    }

    /// Reads the filters of the closed segments that are not known yet.
    private mutating func readFilters() throws(LoadError) {
        let closed = try connection.statement(
            """
            SELECT segment, filter IS NULL, CASE WHEN rows > 0 THEN closing END
            FROM tapline.segment WHERE state <> 'open' ORDER BY 1
            """, [], format: .binary)
        var wanted: [Int] = []
        var closings: [Int: ClosingID?] = [:]
        for row in 0..<closed.rows {
            closings[Int(closed.int64(row, 0) ?? 0)] = .some(
                closed.isNull(row, 2) ? nil : ClosingID(uuid: closed.bytes(row, 2)))
        }
        // A server that was promoted may have every batch that is known here, and have closed the last segment
        // with more of them.
        if picture.closed.isOtherHistory(closings) { forgetHistory() }
        for row in 0..<closed.rows {
            let number = Int(closed.int64(row, 0) ?? 0)
            if picture.closed.contains(segment: number) { continue }
            if closed.bool(row, 1) == true {
                try makeFilter(of: number)
            } else {
                wanted.append(number)
            }
        }
        picture.closed.setClosings(closings.compactMapValues { $0 })
        // As many in a statement as are added at once.
        while !wanted.isEmpty {
            let part = wanted.prefix(8)
            let answer = try connection.statement(
                "SELECT segment, filter FROM tapline.segment WHERE segment = ANY ($1) ORDER BY 1",
                [.int32Array(part.map { Int32($0) })], format: .binary)
            var filters: [(segment: Int, filter: SegmentFilter)] = []
            for row in 0..<answer.rows {
                let number = Int(answer.int64(row, 0) ?? 0)
                guard let filter = SegmentFilter(bytes: answer.array(row, 1) ?? []) else {
                    throw .schema("the filter of segment \(number) is damaged")
                }
                filters.append((number, filter))
            }
            wanted.removeFirst(part.count)
            picture.closed.add(filters, ahead: wanted.count)
        }
    }

    /// Makes the filter of a segment that was closed by a version that kept none.
    private mutating func makeFilter(of number: Int) throws(LoadError) {
        var segment = OpenSegment(number: number)
        try read(&segment, where: "true", isAlone: true)
        let filter = segment.makeFilter(rowsMax: segmentRowsMax)
        _ = try connection.statement(
            "UPDATE tapline.segment SET filter = $2 WHERE segment = $1",
            [.int32(Int32(number)), .bytes(filter.bytes)])
        picture.closed.add([(number, filter)])
    }

    /// Folds stored rows into a segment; nothing is written.
    ///
    /// - Parameter isAlone: Whether only the rows count, and not what older segments hold of their units.
    private mutating func read(
        _ segment: inout OpenSegment, where condition: String, isAlone: Bool = false
    ) throws(LoadError) {
        // COPY keeps the connection busy, and older segments are asked in between: so all rows come
        // first, in chunks that are as small as the reader makes them.
        var chunks: [RowChunk] = []
        do throws(PostgresError) {
            try connection.copyOut(
                """
                COPY (SELECT \(UnitEvent.selection)
                    FROM tapline.event_\(segment.number) e WHERE \(condition))
                TO STDOUT (FORMAT binary)
                """
            ) { row in
                if chunks.isEmpty || chunks[chunks.count - 1].count >= Self.chunkRows {
                    chunks.append(RowChunk())
                }
                chunks[chunks.count - 1].append(row.bytes)
            }
        } catch {
            throw .postgres(error)
        }
        var fold = Fold(isWriting: false)
        for chunk in chunks {
            var older = try self.older(than: segment, isAlone ? [] : chunk.events[...])
            for index in chunk.events.indices {
                let event = chunk.events[index]
                let bytes = chunk.row(index)
                segment.add(event, row: bytes, old: &older, to: &fold)
                segment.addKey(event.key, EventContent(event, bytes))
            }
        }
    }

    /// Reads which units are special, from the batches after `batch`.
    private mutating func readSpecials(
        _ segment: inout OpenSegment, after batch: Int64
    ) throws(LoadError) {
        var found: [(unit: Unit, isListed: Bool)] = []
        do throws(PostgresError) {
            try connection.copyOut(
                """
                COPY (SELECT unit, (segment = \(segment.number))::int FROM tapline.special_unit
                    WHERE batch > \(batch)) TO STDOUT (FORMAT binary)
                """
            ) { row in
                guard let bytes = row.field(0) else { return }
                let unit = Unit(uuid: bytes)
                if segment.mayKnow(unit) { found.append((unit, row.int64(1) == 1)) }
            }
        } catch {
            throw .postgres(error)
        }
        try fold(segment.unfolded.take(found.lazy.map(\.unit.message)), into: &segment)
        for (unit, isListed) in found { segment.readSpecial(unit, isListed: isListed) }
    }
}

/// Rows of the event table as ``UnitEvent/selection`` gives them.
private struct RowChunk {
    private var bytes: [UInt8] = []
    private var starts: [Int] = [0]
    private(set) var events: [UnitEvent] = []
    var count: Int { events.count }

    mutating func append(_ row: RawSpan) {
        guard let event = UnitEvent(row: row, columns: UnitEvent.columns) else {
            preconditionFailure("a row of the event table that is none")
        }
        events.append(event)
        unsafe row.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        starts.append(bytes.count)
    }

    @_lifetime(borrow self)
    func row(_ index: Int) -> RawSpan {
        bytes.rawSpan.extracting(starts[index]..<starts[index + 1])
    }
}

extension Unit {
    /// The unit in the binary form of uuid: 16 bytes.
    init(uuid bytes: RawSpan) {
        let identity = Identity(uuid: bytes)
        self.init(message: identity.high, device: identity.low)
    }

    /// The 16 bytes of the uuid.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        bytes.append(self)
        return bytes
    }
}

/// A device half of a unit from `tapline.hash64`: eight bytes.
func deviceHalf(_ bytes: RawSpan) -> UInt64 {
    precondition(bytes.byteCount == 8, "a hash of \(bytes.byteCount) bytes")
    // SAFETY: 8 bytes, checked above.
    return unsafe UInt64(bigEndian: bytes.unsafeLoadUnaligned(as: UInt64.self))
}
