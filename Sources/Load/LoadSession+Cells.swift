import Event
import JSONLines
import Postgres

/// Writing what a batch changes in the counts of units.
extension LoadSession {
    /// Writes special units, cells and sending apps of a transaction.
    mutating func write(
        _ fold: inout Fold, _ open: inout OpenSegment, _ turn: Turn
    ) throws(LoadError) {
        try writeSpecials(&fold, &open, turn)
        fold.settle()
        try writeCells(fold, open, turn)
        if let count = fold.news?.count, count > 0, let news = fold.news?.finish(open) {
            try writeNews(news, turn)
            newsBuffer = news
        }
        if !fold.senders.isEmpty {
            _ = try connection.statement(
                """
                INSERT INTO tapline.sending_app (app, batch)
                SELECT DISTINCT unnest($1::text[]), \(turn.batch) ON CONFLICT DO NOTHING
                """, [.textArray(fold.senders.map { String(decoding: $0, as: UTF8.self) })])
        }
    }

    /// Writes the batch down for other daemons, in pieces of nearly a page of the table.
    private func writeNews(_ news: [UInt8], _ turn: Turn) throws(LoadError) {
        let head = [0, 3, 0, 0, 0, 8] + turn.batch.bigEndianBytes + [0, 0, 0, 4]
        do throws(PostgresError) {
            try connection.copyIn(
                "COPY tapline.batch_news (batch, piece, events) FROM STDIN (FORMAT binary)"
            ) { writer throws(PostgresError) in
                try writer.writeBinaryHeader()
                var start = 0
                var piece: Int32 = 0
                while start < news.count {
                    let end = min(start + BatchNews.pieceBytes, news.count)
                    let size = Int32(end - start)
                    try writer.write(head + piece.bigEndianBytes + size.bigEndianBytes)
                    try writer.write(news.rawSpan.extracting(start..<end))
                    start = end
                    piece += 1
                }
                try writer.writeBinaryTrailer()
            }
        } catch {
            throw .postgres(error)
        }
    }

    private func writeCells(
        _ fold: borrowing Fold, _ open: borrowing OpenSegment, _ turn: Turn
    ) throws(LoadError) {
        var slots: [Int] = []
        fold.changes.forEachSlot { slot in
            if !fold.changes[slot].isZero { slots.append(slot) }
        }
        guard !slots.isEmpty else { return }
        let batch = [0, 0, 0, 8] + turn.batch.bigEndianBytes
        var row = ByteBuffer()
        do throws(PostgresError) {
            try connection.copyIn(
                """
                COPY tapline.cell_change (segment, quarter, states, units, clicks, late, app,
                    campaign_id, platform, app_version, os_version, locale, country, provider,
                    action_id, category_id, push_group, topic, batch) FROM STDIN (FORMAT binary)
                """
            ) { writer throws(PostgresError) in
                try writer.writeBinaryHeader()
                for slot in slots {
                    let (cell, sums) = (fold.changes.key(at: slot), fold.changes[slot])
                    row.truncate(to: 0)
                    row.append(0)
                    row.append(19)
                    row.append(field: Int32(truncatingIfNeeded: open.number))
                    row.append(field: cell.quarter)
                    row.append(field: Int32(bitPattern: cell.states))
                    row.append(field: sums.units)
                    row.append(field: sums.clicks)
                    row.append(field: sums.late)
                    open.appendFields(ofCampaign: cell.campaign, to: &row)
                    open.appendFields(ofProfile: cell.profile, to: &row)
                    row.append(batch.rawSpan)
                    try writer.write(row.rawSpan)
                }
                try writer.writeBinaryTrailer()
            }
        } catch {
            throw .postgres(error)
        }
        try addToCampaigns(fold, open, slots)
    }

    /// Adds the changes to the counts of each campaign, which have neither time nor dimensions.
    private func addToCampaigns(
        _ fold: borrowing Fold, _ open: borrowing OpenSegment, _ slots: [Int]
    ) throws(LoadError) {
        var totals = FlatTable<CellKey, CellSums>(capacity: slots.count)
        for slot in slots {
            let (cell, sums) = (fold.changes.key(at: slot), fold.changes[slot])
            let key = CellKey(
                campaign: cell.campaign, profile: ProfileLabel.none, quarter: 0,
                states: cell.plainStates)
            let (place, _) = totals.slot(adding: key, CellSums())
            totals[place].units &+= sums.units
            totals[place].clicks &+= sums.clicks
            totals[place].late &+= sums.late
        }
        var apps: [String?] = []
        var campaigns: [String?] = []
        var states: [Int32] = []
        var sums: [[Int32]] = [[], [], []]
        totals.forEachSlot { slot in
            let value = totals[slot]
            guard !value.isZero else { return }
            let fields = Fields(open.campaignFields(totals.key(at: slot).campaign))
            apps.append(fields.text(0))
            campaigns.append(fields.text(1))
            states.append(Int32(bitPattern: totals.key(at: slot).states))
            sums[0].append(value.units)
            sums[1].append(value.clicks)
            sums[2].append(value.late)
        }
        guard !apps.isEmpty else { return }
        _ = try connection.statement(
            """
            INSERT INTO tapline.cell_campaign AS c
                (app, campaign_id, states, units, clicks, late)
            SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::int[], $6::int[])
            ON CONFLICT (app, campaign_id, states) DO UPDATE SET units = c.units + excluded.units,
                clicks = c.clicks + excluded.clicks, late = c.late + excluded.late
            """,
            [
                .textArray(apps), .textArray(campaigns), .int32Array(states), .int32Array(sums[0]),
                .int32Array(sums[1]), .int32Array(sums[2]),
            ])
    }
}

extension ByteBuffer {
    /// Appends a field of a COPY row: its length, and an integer of four bytes.
    fileprivate mutating func append(field value: Int32) {
        append(bigEndian: 4)
        append(bigEndian: UInt32(bitPattern: value))
    }
}
