import Postgres
import Schema

extension CampaignReport {
    /// Reads a report in one snapshot of the database; blocks until it is there.
    ///
    /// - Parameters:
    ///   - options: What to report.
    ///   - connection: Outside of a transaction, and so again afterwards, whatever happens.
    /// - Throws: ``ReportError``; nothing in the database has changed.
    package static func load(
        _ options: ReportOptions, on connection: borrowing PostgresConnection
    ) throws(ReportError) -> CampaignReport {
        do throws(PostgresError) {
            try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        } catch {
            throw .database(error)
        }
        do throws(ReportError) {
            let report = try ReportReader(options: options).read(connection)
            _ = try? connection.execute("COMMIT")
            return report
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }
}

/// Reads one report within a transaction.
private struct ReportReader {
    let options: ReportOptions

    /// What the report is of, as the database answered.
    struct Frame {
        let batch: Int64
        let isNewest: Bool
        let source: Schema.UnitSource
        let from: Int64?
        let to: Int64?
        let asOf: String
        let dataThrough: String
        let fromText: String?
        let toText: String?
    }

    func read(_ connection: borrowing PostgresConnection) throws(ReportError) -> CampaignReport {
        try setUp(connection)
        let frame = try frame(connection)
        var rows = try rows(connection, frame)
        guard !rows.isEmpty else { throw .unexpectedAnswer("the database gave no totals") }
        let totals = rows.removeFirst()
        return CampaignReport(
            asOf: frame.asOf, dataThrough: frame.dataThrough, from: frame.fromText,
            to: frame.toText, timeZone: options.timeZone, by: options.by,
            includesTest: options.includesTest, isHistoric: !frame.isNewest, totals: totals,
            rows: rows)
    }

    private func setUp(_ connection: borrowing PostgresConnection) throws(ReportError) {
        if options.timeZone != "UTC" {
            let found = try ask(
                connection, "SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1)",
                [.text(options.timeZone)])
            guard found.bool(0, 0) == true else {
                throw .invalidOption(
                    name: "tz", value: options.timeZone, reason: "not an IANA time zone")
            }
        }
        // The planner knows little of common table expressions: hash joins are never far off. It
        // takes every row for a group of its own and would sort them all; they are a few thousand.
        _ = try ask(
            connection,
            """
            SELECT set_config('TimeZone', $1, true), set_config('jit', 'off', true),
                set_config('enable_mergejoin', 'off', true), set_config('enable_sort', 'off', true),
                set_config('work_mem', '128MB', true)
            """, [.text(options.timeZone)])
    }

    private func frame(_ connection: borrowing PostgresConnection) throws(ReportError) -> Frame {
        func text(_ time: String) -> String {
            "to_char(\(time), 'YYYY-MM-DD\"T\"HH24:MI:SS.USTZH:TZM')"
        }
        let dataThrough = options.dataThrough.map { ReportTime.instant($0).sql }
        let answer = try ask(
            connection,
            """
            SELECT batch, batch = newest, \(text("as_of")), \(text("data_through")),
                period_from, period_to, \(text("period_from")), \(text("period_to")),
                NOT EXISTS (
                    SELECT FROM (VALUES (extract(epoch FROM period_from)),
                        (extract(epoch FROM period_to)), (extract(timezone FROM now()))) t(seconds)
                    WHERE seconds % 900 <> 0)
                    AND NOT EXISTS (SELECT FROM tapline.test_device WHERE NOT applied),
                EXISTS (SELECT FROM tapline.special_unit)
            FROM (
                SELECT t.batch AS newest, least(a.as_of, t.stored_at) AS as_of,
                    a.period_from, a.period_to,
                    CASE WHEN a.as_of < t.stored_at THEN a.as_of
                        ELSE coalesce(\(dataThrough ?? "NULL"), t.stored_at) END AS data_through,
                    CASE WHEN a.as_of < t.stored_at THEN coalesce((
                        SELECT b.batch FROM tapline.batch b WHERE b.stored_at <= a.as_of
                        ORDER BY b.stored_at DESC LIMIT 1), 0) ELSE t.batch END AS batch
                FROM tapline.turn t CROSS JOIN (
                    SELECT \(options.from?.sql ?? "NULL")::timestamptz AS period_from,
                        \(options.to?.sql ?? "NULL")::timestamptz AS period_to,
                        \(options.asOf?.sql ?? "NULL")::timestamptz AS as_of) a
            ) f
            """)
        guard answer.rows == 1, let batch = answer.int64(0, 0), let isNewest = answer.bool(0, 1),
            let asOf = answer.string(0, 2), let dataThrough = answer.string(0, 3),
            let doCellsKnow = answer.bool(0, 8), let hasSpecial = answer.bool(0, 9)
        else { throw .unexpectedAnswer("the database has no turn row") }
        // Cells know of quarters of an hour, and of test devices once these are applied.
        let source: Schema.UnitSource =
            isNewest && doCellsKnow && !options.isFromEvents
            ? .cells(cellTable, withSpecial: hasSpecial) : .events
        return Frame(
            batch: batch, isNewest: isNewest, source: source,
            from: answer.timestamp(0, 4), to: answer.timestamp(0, 5),
            asOf: shortened(asOf), dataThrough: shortened(dataThrough),
            fromText: answer.string(0, 6).map(shortened), toText: answer.string(0, 7).map(shortened)
        )
    }

    /// `Z` for UTC, and no fraction of zeros.
    private func shortened(_ time: String) -> String {
        let whole = time.replacing(".000000", with: "")
        return options.timeZone == "UTC" && whole.hasSuffix("+00:00")
            ? whole.dropLast(6) + "Z" : whole
    }

    private func rows(
        _ connection: borrowing PostgresConnection, _ frame: Frame
    ) throws(ReportError) -> [ReportRow] {
        let statement = ReportStatement(options, from: frame.source)
        let answer = try ask(
            connection, statement.sql,
            [
                .int64(frame.batch), frame.from.map(PostgresValue.timestamp) ?? .null,
                frame.to.map(PostgresValue.timestamp) ?? .null,
                options.app.map(PostgresValue.text) ?? .null,
                options.campaign.map(PostgresValue.text) ?? .null,
                .bool(options.includesTest),
                // The totals are a row too.
                options.top.map { .int64(Int64(clamping: $0 &+ 1)) } ?? .null,
            ])
        return (0..<answer.rows).map { row(answer, $0) }
    }

    /// The smallest cells that know what is asked for.
    private var cellTable: Schema.CellTable {
        let others = options.by.filter { $0 != .campaign }
        if others.contains(where: { !$0.isTime }) { return .dimension }
        return others.isEmpty && options.from == nil && options.to == nil ? .campaign : .quarter
    }

    private func row(_ answer: borrowing PostgresResult, _ index: Int) -> ReportRow {
        let firstRate = 6 + ReportCount.allCases.count
        var rates: [RateValue] = []
        for start in stride(
            from: firstRate, to: firstRate + 5 * ReportRate.allCases.count, by: 5)
        {
            rates.append(
                RateValue(
                    numerator: answer.int64(index, start),
                    denominator: answer.int64(index, start + 1),
                    value: answer.double(index, start + 2), low: answer.double(index, start + 3),
                    high: answer.double(index, start + 4)))
        }
        var counts: [Int64?] = []
        for column in 6..<firstRate { counts.append(answer.int64(index, column)) }
        let places = options.by.filter { $0 != .campaign }.count
        return ReportRow(
            app: answer.string(index, 1), campaign: answer.string(index, 2),
            dimensions: [answer.string(index, 3), answer.string(index, 4)].prefix(places).map {
                $0
            },
            counts: counts, rates: rates,
            flags: (answer.string(index, 5) ?? "").split(separator: " ").map(String.init))
    }

    private func ask(
        _ connection: borrowing PostgresConnection, _ sql: String, _ values: [PostgresValue] = []
    ) throws(ReportError) -> PostgresResult {
        do throws(PostgresError) {
            return try connection.query(sql, values)
        } catch {
            throw .database(error)
        }
    }
}
