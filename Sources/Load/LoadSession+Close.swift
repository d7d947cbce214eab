import Event
import Platform
import Postgres

/// The end of a segment.
extension LoadSession {
    /// Closes the open segment when it is full, and opens the next one.
    ///
    /// One transaction under the turn lock, so that no load transaction is under way, and a closed
    /// segment always has its index and its filter. The unique index is also a proof: it fails if an
    /// event was stored twice. Readers are not held up: ATTACH PARTITION of an empty table takes a
    /// lock that lets them through.
    ///
    /// - Returns: Whether it was full.
    @discardableResult
    mutating func closeSegmentIfFull() throws(LoadError) -> Bool {
        guard picture.openRows >= segmentRowsMax else { return false }
        do throws(LoadError) {
            let isClosed = try closeSegment()
            try connection.limitStatements(milliseconds: statementMilliseconds)
            return isClosed
        } catch {
            rollback()
            throw error
        }
    }

    private mutating func closeSegment() throws(LoadError) -> Bool {
        // What others have stored until now, before the turn is taken: nobody loads while it is held.
        if let box = picture.takeOpen() {
            try fold(box.segment.takeCrowded(), into: &box.segment)
            picture.putOpen(box)
        }
        let turn = try takeTurn()
        try catchUp(with: turn)
        guard turn.segmentRows >= segmentRowsMax, let box = picture.takeOpen() else {
            rollback()
            return false
        }
        let (full, next) = (box.segment.number, box.segment.number + 1)
        try connection.limitStatements(milliseconds: 0, isLocal: true)
        try fold(box.segment.takeCrowded(), into: &box.segment)
        var heavy: [Unit] = []
        var filter = SegmentFilter(rows: 0)
        let closing = ClosingID.random()
        var identities: IdentityFile.Content?
        // The index takes longer than the filter and what goes into the file.
        let hasInbox = box.segment.hasInbox
        try connection.statement(Segments.index(full, hasInbox: hasInbox)) {
            heavy = box.segment.heavyUnits(events: heavyUnitEvents)
            filter = box.segment.makeFilter(rowsMax: segmentRowsMax, heavy: heavy)
            if picture.closed.hasFiles { identities = .init(box.segment) }
        }
        // Rows that somebody has deleted are not stored. To build the index has counted them.
        if identities != nil {
            let rows = try connection.statement(
                """
                SELECT reltuples::bigint FROM pg_class
                WHERE oid = 'tapline.event_\(full)'::regclass
                """)
            if rows.int64(0, 0) != Int64(turn.segmentRows) { identities = nil }
        }
        if !heavy.isEmpty { try closeHeavy(heavy, &box.segment, &filter, turn) }
        _ = try connection.statement(
            """
            UPDATE tapline.segment
            SET state = 'closing', rows = $2, filter = $3, closing = $4, has_inbox = $5
            WHERE segment = $1
            """,
            [
                .int32(Int32(full)), .int64(Int64(turn.segmentRows)), .bytes(filter.bytes),
                .uuid(closing.bytes), .bool(hasInbox),
            ])
        Failpoint.reach("load.close")
        // If this fails, the open segment is read again.
        try connection.statement(
            """
            \(Segments.create(next));
            INSERT INTO tapline.segment (segment, state) VALUES (\(next), 'open');
            UPDATE tapline.turn SET segment = \(next), segment_rows = 0;
            DELETE FROM tapline.batch_news;
            COMMIT
            """
        ) { box.segment.start(number: next) }
        picture.closed.add([(full, filter)])
        picture.closed.add(identities, of: closing, full)
        picture.putOpen(box)
        Log.info("closed segment \(full) of the event table")
        return true
    }

    /// Units with very many events are special, and have their keys in the filter, so that what comes
    /// for them later need not read all of it.
    private mutating func closeHeavy(
        _ heavy: [Unit], _ open: inout OpenSegment, _ filter: inout SegmentFilter, _ turn: Turn
    ) throws(LoadError) {
        var fold = Fold(isWriting: true)
        for unit in heavy { open.setSpecial(unit, &fold) }
        try write(&fold, &open, turn)
        let units = PostgresValue.uuidArray(heavy.flatMap { $0.bytes })
        _ = try connection.statement(
            """
            UPDATE tapline.special_unit SET is_heavy = true
            WHERE segment = \(open.number) AND unit = ANY ($1)
            """, [units])
        let keys = try connection.statement(
            """
            SELECT e.key FROM unnest($1::uuid[]) AS a (unit)
            JOIN tapline.event_\(open.number) e ON e.unit = a.unit
            """, [units], format: .binary)
        for row in 0..<keys.rows { filter.insert(.key(Identity(uuid: keys.bytes(row, 0)))) }
    }
}
