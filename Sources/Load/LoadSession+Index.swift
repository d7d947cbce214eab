import Event
import Platform
import Postgres

/// Keeping the daemon's picture of the keys equal to the database.
extension LoadSession {
    /// Brings the index up to the batch before this turn; call it under the turn lock.
    mutating func catchUp(with turn: Turn) throws(LoadError) {
        if index.batch == turn.previous, index.open?.number == turn.segment,
            turn.previous == 0 || turn.knownStoredAt == index.storedAt
        {
            if index.hasClosingSegment { try readSegments(turn) }
            return
        }
        // A database that does not have this history was restored from a backup: the keys known
        // here may not be stored there, so all of them are read again.
        if index.batch > 0, turn.knownStoredAt != index.storedAt {
            Log.warn("the database has another history than before, reading its keys again")
            index.segments = []
            index.batch = -1
        }
        try readSegments(turn)
        index.batch = turn.previous
        index.storedAt = turn.previousStoredAt
    }

    /// Reads what is new in the segments that are known, and the segments that are not.
    private mutating func readSegments(_ turn: Turn) throws(LoadError) {
        let rows = try connection.statement(
            """
            SELECT s.segment, s.state, coalesce(s.rows, t.segment_rows),
                (SELECT min(first_block) FROM tapline.batch b
                    WHERE b.segment = s.segment AND b.batch > \(index.batch))
            FROM tapline.segment s, tapline.turn t ORDER BY s.segment
            """)
        var segments: [DedupeIndex.Segment] = []
        for row in 0..<rows.rows {
            let number = Int(rows.int64(row, 0) ?? 0)
            let isSealed = rows.string(row, 1) == "sealed"
            var known = index.segments.first { $0.number == number }
            if let known, known.table != nil, let first = rows.int64(row, 3) {
                try readKeys(
                    of: known, where: "ctid >= '(\(first),0)' AND batch > \(index.batch)")
            }
            if let count = known?.table?.count, Int64(count) != rows.int64(row, 2) {
                // A table short of keys would store an event twice.
                Log.warn(
                    "keys of segment \(number) are not complete, reading them again",
                    ["known": "\(count)", "rows": "\(rows.int64(row, 2) ?? 0)"])
                known = nil
            }
            if let known {
                if isSealed { known.seal() }
                segments.append(known)
            } else if isSealed {
                segments.append(try readFilter(of: number))
            } else {
                let segment = DedupeIndex.Segment(number: number, table: KeyTable())
                try readKeys(of: segment, where: "true")
                segments.append(segment)
            }
        }
        index.segments = segments
    }

    private mutating func readKeys(
        of segment: DedupeIndex.Segment, where condition: String
    ) throws(LoadError) {
        do throws(PostgresError) {
            try connection.copyOut(
                """
                COPY (SELECT key, properties_hash, campaign_id
                    FROM tapline.event_\(segment.number) WHERE \(condition))
                TO STDOUT (FORMAT binary)
                """
            ) { row in
                guard let key = row.field(0) else { return }
                var campaign: UInt64?
                if let text = row.field(2) { campaign = contentHash(text) }
                segment.table?.insert(
                    Identity(uuid: key),
                    EventContent(campaign: campaign, propertiesHash: row.int64(1)))
            }
        } catch {
            throw .postgres(error)
        }
    }

    private mutating func readFilter(of number: Int) throws(LoadError) -> DedupeIndex.Segment {
        let result = try connection.statement(
            "SELECT count(*) FROM tapline.event_\(number)")
        var filter = KeyFilter(keys: Int(result.int64(0, 0) ?? 0))
        do throws(PostgresError) {
            try connection.copyOut(
                "COPY (SELECT key FROM tapline.event_\(number)) TO STDOUT (FORMAT binary)"
            ) { row in
                if let key = row.field(0) { filter.insert(Identity(uuid: key)) }
            }
        } catch {
            throw .postgres(error)
        }
        return DedupeIndex.Segment(number: number, filter: filter)
    }

    /// What the database holds under the key of each row: exact for segments without an index; the
    /// sealed ones are asked for those keys that their filters do not rule out.
    mutating func knownContents(
        of batch: borrowing LoadBatch
    ) throws(LoadError) -> [EventContent?] {
        var known: [EventContent?] = Array(repeating: nil, count: batch.rows.count)
        var asked: [Int: [Int]] = [:]
        for row in batch.rows.indices {
            let key = batch.keys[row]
            known[row] = index.exactContent(of: key)
            guard known[row] == nil else { continue }
            index.forEachSealedCandidate(of: key) { asked[$0, default: []].append(row) }
        }
        for (segment, rows) in asked.sorted(by: { $0.key < $1.key }) {
            let stored = try probe(segment, rows, of: batch)
            for row in rows {
                if let content = stored.content(of: batch.keys[row]) { known[row] = content }
            }
        }
        return known
    }

    /// Asks one sealed segment, by its index, for the keys of some rows.
    private func probe(
        _ segment: Int, _ rows: [Int], of batch: borrowing LoadBatch
    ) throws(LoadError) -> KeyTable {
        var units: [UInt8] = []
        var keys: [UInt8] = []
        for row in rows {
            let unit = batch.rows[row].unit
            units += unit.message.bigEndianBytes + unit.device.bigEndianBytes
            keys += batch.keys[row].bytes
        }
        let result = try connection.statement(
            """
            SELECT e.key, e.properties_hash, e.campaign_id
            FROM unnest($1::uuid[], $2::uuid[]) AS asked (unit, key)
            JOIN tapline.event_\(index.segments[segment].number) e USING (unit, key)
            """,
            [.uuidArray(units), .uuidArray(keys)], format: .binary)
        var stored = KeyTable(capacity: result.rows)
        for row in 0..<result.rows {
            stored.insert(
                Identity(uuid: result.bytes(row, 0)),
                EventContent(
                    campaign: result.isNull(row, 2) ? nil : contentHash(result.bytes(row, 2)),
                    propertiesHash: result.int64(row, 1)))
        }
        return stored
    }
}
