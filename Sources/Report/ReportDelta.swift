import Postgres

/// What has changed since an earlier report, and how late the events were that changed it.
package struct ReportDelta: Sendable {
    /// What changed in a row.
    package struct Change: Sendable {
        /// The row as it is now, or was if it is no more.
        package let row: ReportRow
        /// Only counts that are known in both and differ, now less then.
        package let counts: [(count: ReportCount, difference: Int64)]
        /// The events loaded since that belong to the row's campaign; nil where rows are not by it.
        package let arrivals: Arrivals?
    }

    /// Events that were loaded since.
    package struct Arrivals: Equatable, Sendable {
        package let events: Int64
        /// How long after it happened the latest of them was received.
        package let latestSeconds: Double
    }

    /// The earlier report's `as_of`.
    package let since: String
    /// The report now.
    package let report: CampaignReport
    /// Rows with a change: those with most clicks first, then those with most of all.
    package let changes: [Change]
    /// Over everything.
    package let totals: Change

    /// Reads both reports in one snapshot; blocks until they are there.
    ///
    /// - Parameters:
    ///   - options: What to report; influenced, converted and time to open are left out.
    ///   - since: The `as_of` of the earlier report.
    ///   - plans: Of the connection, if it is kept for more reports.
    /// - Throws: ``ReportError``.
    package static func load(
        _ options: ReportOptions, since: ReportTime, on connection: borrowing PostgresConnection,
        plans: ReportPlans? = nil
    ) throws(ReportError) -> ReportDelta {
        var options = options
        options.journeys = .never
        let top = options.top
        options.top = nil
        var earlier = options
        earlier.asOf = since
        return try CampaignReport.inSnapshot(of: connection) { connection throws(ReportError) in
            let before = try ReportReader(options: earlier).read(connection)
            let now = try ReportReader(options: options, plans: plans).read(connection)
            let arrivals = try arrivals(since: since, options, connection)
            return ReportDelta(before, now, arrivals, top: top)
        }
    }

    private init(
        _ before: CampaignReport, _ now: CampaignReport, _ arrivals: [Key: Arrivals], top: Int?
    ) {
        since = before.asOf
        report = now
        let isByCampaign = now.by.contains(.campaign)
        var old: [[String?]: ReportRow] = [:]
        for row in before.rows { old[Self.key(row)] = row }
        func change(_ now: ReportRow, _ before: ReportRow?, _ arrivals: Arrivals?) -> Change {
            let counts = ReportCount.allCases.compactMap { count -> (ReportCount, Int64)? in
                guard let new = now[count], let old = before == nil ? 0 : before?[count],
                    new != old
                else { return nil }
                return (count, new - old)
            }
            return Change(row: now, counts: counts, arrivals: arrivals)
        }
        var changes: [Change] = []
        for row in now.rows {
            let key = Key(app: row.app, campaign: row.campaign)
            changes.append(
                change(
                    row, old.removeValue(forKey: Self.key(row)), isByCampaign ? arrivals[key] : nil)
            )
        }
        // A row is gone when its units are another campaign's now.
        for row in before.rows where old[Self.key(row)] != nil {
            let counts = ReportCount.allCases.compactMap { count in
                row[count].flatMap { $0 == 0 ? nil : (count, -$0) }
            }
            changes.append(Change(row: row, counts: counts, arrivals: nil))
        }
        changes.removeAll { $0.counts.isEmpty }
        func weight(_ change: Change) -> (Int64, Int64) {
            let clicks = change.counts.first { $0.count == .clicked }?.difference ?? 0
            return (abs(clicks), change.counts.reduce(0) { $0 + abs($1.difference) })
        }
        let order = changes.indices.sorted {
            let (a, b) = (weight(changes[$0]), weight(changes[$1]))
            return a == b ? $0 < $1 : a > b
        }
        self.changes = order.prefix(top ?? .max).map { changes[$0] }
        let all = arrivals.values
        totals = change(
            now.totals, before.totals,
            Arrivals(
                events: all.reduce(0) { $0 + $1.events },
                latestSeconds: all.map(\.latestSeconds).max() ?? 0))
    }

    private static func key(_ row: ReportRow) -> [String?] {
        [row.app, row.campaign] + row.dimensions
    }

    // MARK: Arrivals

    private struct Key: Hashable {
        let app: String?
        let campaign: String?
    }

    /// What was loaded after `since`, by campaign: the event's own, else that of a sent of its message.
    private static func arrivals(
        since: ReportTime, _ options: ReportOptions, _ connection: borrowing PostgresConnection
    ) throws(ReportError) -> [Key: Arrivals] {
        func batch(_ time: String) -> String {
            """
            coalesce((SELECT b.batch FROM tapline.batch b WHERE b.stored_at <= \(time)
                ORDER BY b.stored_at DESC LIMIT 1), 0)
            """
        }
        do throws(PostgresError) {
            let answer = try connection.query(
                """
                WITH bounds AS MATERIALIZED (
                    SELECT \(batch(since.sql)) AS first, \(batch(options.asOf?.sql ?? "'infinity'")) AS last
                ), fresh AS MATERIALIZED (
                    SELECT e.app, e.campaign_id, tapline.unit_message(e.unit) AS message,
                        extract(epoch FROM e.received_at - e.event_time)::float8 AS seconds
                    FROM tapline.event e
                    WHERE e.segment >= (SELECT coalesce(min(b.segment), 1) FROM tapline.batch b
                            WHERE b.batch > (SELECT first FROM bounds))
                        AND e.batch > (SELECT first FROM bounds)
                        AND e.batch <= (SELECT last FROM bounds)
                        AND e.message_uid IS NOT NULL AND ($1::text IS NULL OR e.app = $1)
                ), asked AS MATERIALIZED (
                    -- A bound on what is looked up: the rest is said of no campaign.
                    SELECT array_agg(message) AS messages
                    FROM (SELECT DISTINCT message FROM fresh WHERE campaign_id IS NULL LIMIT 10000) m
                ), named AS (
                    SELECT DISTINCT ON (message) message, campaign_id
                    FROM (
                        SELECT message, campaign_id, event_time, key
                        FROM tapline.sent_campaigns((SELECT messages FROM asked))
                        WHERE batch <= (SELECT last FROM bounds)
                        UNION ALL
                        SELECT tapline.unit_message(e.unit), e.campaign_id, e.event_time, e.key
                        FROM tapline.event e
                        WHERE e.segment = (SELECT segment FROM tapline.turn) AND e.type = 1
                            AND e.campaign_id IS NOT NULL AND e.batch <= (SELECT last FROM bounds)
                            AND tapline.unit_message(e.unit)
                                = ANY ((SELECT messages FROM asked)::bytea[])) s
                    ORDER BY message, event_time, key
                )
                SELECT f.app, coalesce(f.campaign_id, n.campaign_id, '(unattributed)'), count(*),
                    max(f.seconds)
                FROM fresh f LEFT JOIN named n ON f.campaign_id IS NULL AND n.message = f.message
                GROUP BY 1, 2
                """, [options.app.map(PostgresValue.text) ?? .null])
            var arrivals: [Key: Arrivals] = [:]
            for row in 0..<answer.rows {
                let key = Key(app: answer.string(row, 0), campaign: answer.string(row, 1))
                if let campaign = options.campaign, campaign != key.campaign { continue }
                arrivals[key] = Arrivals(
                    events: answer.int64(row, 2) ?? 0, latestSeconds: answer.double(row, 3) ?? 0)
            }
            return arrivals
        } catch {
            throw .database(error)
        }
    }
}
