import Platform
import Postgres
import Schema

extension CampaignReport {
    /// Reads a report in one snapshot of the database; blocks until it is there.
    ///
    /// - Parameters:
    ///   - options: What to report.
    ///   - connection: Outside of a transaction, and so again afterwards, whatever happens.
    ///   - plans: Of the connection, if it is kept for more reports; without, the report has no stamp.
    /// - Throws: ``ReportError``; nothing in the database has changed.
    package static func load(
        _ options: ReportOptions, on connection: borrowing PostgresConnection,
        plans: ReportPlans? = nil
    ) throws(ReportError) -> CampaignReport {
        try inSnapshot(of: connection) { connection throws(ReportError) in
            try ReportReader(options: options, plans: plans).read(connection)
        }
    }

    /// Begins a snapshot with the settings of all its reports.
    ///
    /// The planner knows little of common table expressions: hash joins are never far off. It takes
    /// every row for a group of its own and would sort them all; they are a few thousand. And nobody
    /// would read the report of a command that has been stopped.
    private static let begin = """
        BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off;
        SET LOCAL enable_mergejoin = off; SET LOCAL enable_sort = off;
        SET LOCAL work_mem = '128MB'; SET LOCAL client_connection_check_interval = '5s'
        """

    /// Runs `body`, which reads as many reports as it likes with ``ReportReader``, in one snapshot of
    /// the database: they agree with each other.
    ///
    /// - Parameter connection: As for ``load(_:on:)``.
    /// - Throws: What `body` throws, or ``ReportError/database(_:)``.
    static func inSnapshot<Result>(
        of connection: borrowing PostgresConnection,
        _ body: (borrowing PostgresConnection) throws(ReportError) -> Result
    ) throws(ReportError) -> Result {
        do throws(PostgresError) {
            try connection.execute(begin)
        } catch {
            // It may have begun before a setting was refused.
            _ = try? connection.execute("ROLLBACK")
            throw .database(error)
        }
        do throws(ReportError) {
            let result = try body(connection)
            _ = try? connection.execute("COMMIT")
            return result
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }

    /// What the counts of a report hang on beside its options, without counting: ``stamp`` of the
    /// report that ``load(_:on:)`` would give.
    package static func stamp(
        of options: ReportOptions, on connection: borrowing PostgresConnection,
        plans: ReportPlans
    ) throws(ReportError) -> String {
        do throws(PostgresError) {
            try connection.execute(begin)
        } catch {
            // It may have begun before a setting was refused.
            _ = try? connection.execute("ROLLBACK")
            throw .database(error)
        }
        defer { _ = try? connection.execute("ROLLBACK") }
        return try ReportReader(options: options, plans: plans).stamp(connection)
    }
}

/// Reads one report within a transaction.
struct ReportReader {
    let options: ReportOptions
    var plans: ReportPlans?

    /// What the report is of, as the database answered.
    private struct Frame {
        let batch: Int64
        let isNewest: Bool
        let source: Schema.UnitSource
        let hasJourneys: Bool
        let from: Int64?
        let to: Int64?
        let asOf: String
        let dataThrough: String
        let fromText: String?
        let toText: String?
        let isOfFewEvents: Bool
        var isFromCells: Bool { if case .events = source { false } else { true } }
        let stamp: String
        /// Whether any campaign has a name.
        let hasNames: Bool
    }

    /// Whether somebody will ask whether the report has changed: not of a session for one report.
    private var hasStamp: Bool { plans != nil }

    /// Reads the report; blocks.
    func read(_ connection: borrowing PostgresConnection) throws(ReportError) -> CampaignReport {
        try setUp(connection)
        let frame = try frame(connection)
        var rows = try rows(connection, frame)
        guard !rows.isEmpty else { throw .unexpectedAnswer("the database gave no totals") }
        try label(&rows, connection)
        let totals = rows.removeFirst()
        if frame.hasNames { try name(&rows, connection) }
        return CampaignReport(
            asOf: frame.asOf, dataThrough: frame.dataThrough, from: frame.fromText,
            to: frame.toText, timeZone: options.timeZone, by: options.by,
            isByActivity: options.isByActivity, hasJourneys: frame.hasJourneys,
            includesTest: options.includesTest, isHistoric: !frame.isNewest, totals: totals,
            rows: rows, isOfFewEvents: frame.isOfFewEvents, isFromCells: frame.isFromCells,
            stamp: frame.stamp)
    }

    func stamp(_ connection: borrowing PostgresConnection) throws(ReportError) -> String {
        try setUp(connection)
        return try frame(connection).stamp
    }

    /// Whether the report is of small tables without an index that would help: one plan is good for all
    /// campaigns and apps. Others are better planned with their periods, and a further page is asked for
    /// once.
    private var isSmall: Bool {
        plans != nil && options.from == nil && options.to == nil && options.asOf == nil
            && options.offset == 0 && !options.by.contains(where: \.isTime)
    }

    /// Sets what is of this report alone: the zone is UTC and plans are made as usual else, as
    /// ``PostgresConnection`` and the server have it.
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
        guard options.timeZone != "UTC" || plans != nil else { return }
        _ = try ask(
            connection,
            "SELECT set_config('TimeZone', $1, true), set_config('plan_cache_mode', $2, true)",
            [.text(options.timeZone), .text(isSmall ? "force_generic_plan" : "auto")])
    }

    private func frame(_ connection: borrowing PostgresConnection) throws(ReportError) -> Frame {
        let answer = try ask(
            connection, frameStatement,
            [options.app, options.campaign].map { $0.map(PostgresValue.text) ?? .null })
        guard answer.rows == 1, let batch = answer.int64(0, 0), let isNewest = answer.bool(0, 1),
            let asOf = answer.string(0, 2), let dataThrough = answer.string(0, 3),
            let doCellsKnow = answer.bool(0, 8), let hasSpecial = answer.bool(0, 9)
        else { throw .unexpectedAnswer("the database has no turn row") }
        let stored = answer.int64(0, 10) ?? .max
        let few =
            options.campaign == nil ? ReportJourneys.fewEvents : ReportJourneys.fewEventsOfCampaign
        let hasJourneys =
            options.journeys == .always || options.journeys == .auto && stored <= few
        // Cells know of quarters of an hour, of test devices once these are applied, and of the past
        // since they were made, where no device has been marked since.
        let canUseSpecial = doCellsKnow && !options.isFromEvents
        let canUseCells = canUseSpecial && !hasOtherTimes && !(answer.bool(0, 12) ?? true)
        var scope = Schema.EventScope()
        scope.isByActivity = options.isByActivity
        scope.isByEvent = options.by.contains(where: \.isOfEvents)
        scope.hasJourney = hasJourneys
        let table = cellTable(byHour: answer.bool(0, 13) ?? false, isPast: !isNewest)
        let source: Schema.UnitSource =
            switch (canUseCells, hasJourneys) {
            case (true, false):
                .cells(table, pieces: pieces, withSpecial: hasSpecial, isPast: !isNewest)
            case (true, true): .cellsAndEffects(table, pieces: pieces, isPast: !isNewest)
            case (false, false) where canUseSpecial && hasOtherTimes && hasPeriod:
                .active(scope, isPast: !isNewest)
            case (false, _): .events(scope)
            }
        return Frame(
            batch: batch, isNewest: isNewest, source: source, hasJourneys: hasJourneys,
            from: answer.timestamp(0, 4), to: answer.timestamp(0, 5),
            asOf: shortened(asOf), dataThrough: shortened(dataThrough),
            fromText: answer.string(0, 6).map(shortened),
            toText: answer.string(0, 7).map(shortened),
            isOfFewEvents: stored <= ReportJourneys.fewEvents,
            stamp: answer.string(0, 11) ?? "", hasNames: answer.bool(0, 14) ?? true)
    }

    /// Whether the report may have special units: SQL. Those of the past are looked up as they were.
    ///
    /// A campaign most often has none of the few that there are by chance, and to compute them takes longer
    /// than all the rest. A unit is of a campaign that its events name, or that events of other units name
    /// which count with it; these are special, too. Where none of its own events names one for certain, it may
    /// be of any: of a sibling's `sent`, or of none.
    private var hasSpecial: String {
        let any = "SELECT FROM tapline.special_unit s"
        if options.asOf != nil {
            return "EXISTS (\(any) WHERE f.batch = newest OR s.batch <= f.batch)"
        }
        guard options.campaign != nil else { return "EXISTS (\(any))" }
        return """
            ((SELECT count(*) FROM (\(any) LIMIT 1001) few) > 1000 OR EXISTS (
                \(any) GROUP BY unit
                HAVING bool_or(campaigns IS NULL OR $2 = ANY (campaigns))
                    OR bool_and(campaigns = '{}')))
            """
    }

    /// What ``frame(_:)`` asks, $1 the app, $2 the campaign. A command asks on a new connection, which has to look up
    /// whatever is named here: so what cannot matter is left out.
    private var frameStatement: String {
        func text(_ time: String) -> String {
            "to_char(\(time), 'YYYY-MM-DD\"T\"HH24:MI:SS.USTZH:TZM')"
        }
        let dataThrough = options.dataThrough.map { ReportTime.instant($0).sql } ?? "NULL"
        let isPast = options.asOf != nil
        var doCellsKnow = ["NOT EXISTS (SELECT FROM tapline.test_device WHERE NOT applied)"]
        // Where events are looked at, their times are exact.
        if !hasOtherTimes, hasPeriod || options.timeZone != "UTC" {
            doCellsKnow.append(
                """
                NOT EXISTS (
                    SELECT FROM (VALUES (extract(epoch FROM period_from)),
                        (extract(epoch FROM period_to)), (extract(timezone FROM now()))) t(seconds)
                    WHERE seconds % 900 <> 0)
                """)
        }
        if isPast {
            doCellsKnow.append(
                """
                (f.batch = newest OR f.batch >= cells_since AND NOT EXISTS (
                    SELECT FROM tapline.special_unit s WHERE s.batch > f.batch
                        AND tapline.unit_device(s.unit) IN (
                            SELECT tapline.hash64(app, device_id) FROM tapline.test_device)))
                """)
        }
        let stamp = """
            concat_ws(' ', extract(epoch FROM as_of), period_from, period_to, (
                SELECT concat_ws(' ', count(*), sum(hashtextextended(app || ' ' || device_id, 0)))
                FROM tapline.test_device), (SELECT max(change) FROM tapline.campaign),
                (SELECT concat_ws(' ', generation, erased_until) FROM tapline.turn),
                (SELECT max(bare_before) FROM tapline.segment))
            """
        let stored = """
            (SELECT coalesce(sum(rows), 0) FROM tapline.segment WHERE state <> 'open')::bigint
                + segment_rows
            """
        let newest = """
            SELECT batch AS newest, batch, segment_rows, cells_since, stored_at AS as_of,
                coalesce(\(dataThrough), stored_at) AS data_through,
            """
        let past = """
            SELECT t.batch AS newest, t.segment_rows, t.cells_since,
                least(a.as_of, t.stored_at) AS as_of,
                CASE WHEN a.as_of < t.stored_at THEN a.as_of
                    ELSE coalesce(\(dataThrough), t.stored_at) END AS data_through,
                CASE WHEN a.as_of < t.stored_at THEN coalesce((
                    SELECT b.batch FROM tapline.batch b WHERE b.stored_at <= a.as_of
                    ORDER BY b.stored_at DESC LIMIT 1), 0) ELSE t.batch END AS batch,
            """
        return """
            SELECT batch, batch = newest, \(text("as_of")), \(text("data_through")),
                period_from, period_to,
                \(hasPeriod ? text("period_from") : "NULL"), \(hasPeriod ? text("period_to") : "NULL"),
                \(doCellsKnow.joined(separator: "\nAND ")),
                \(hasSpecial),
                \(options.journeys == .auto ? stored : "NULL"), \(hasStamp ? stamp : "''"),
                \(hasUnknown),
                \(hasTime ? "tapline.hours_are_enough(period_from, period_to, \(isByTime))" : "false"),
                EXISTS (SELECT FROM tapline.campaign),
                -- Parameters need a type.
                $2::text
            FROM (
                \(isPast ? past : newest)
                    \(options.from?.sql ?? "NULL")::timestamptz AS period_from,
                    \(options.to?.sql ?? "NULL")::timestamptz AS period_to
                FROM tapline.turn t\(isPast ? " CROSS JOIN (SELECT \(options.asOf?.sql ?? "NULL")::timestamptz AS as_of) a" : "")
            ) f
            """
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
        // Millions of rows that the planner takes for a few hundred would be joined by comparing each
        // with each: events, and those of special units, which may be a third of all.
        let isOfEvents =
            if case .cells(_, _, withSpecial: false, _) = frame.source { false } else { true }
        if isOfEvents { try setNestedLoops("off", connection) }
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
        // Another report of the same transaction may look a few things up.
        if isOfEvents { try setNestedLoops("on", connection) }
        return (0..<answer.rows).map { row(answer, $0) }
    }

    private func setNestedLoops(
        _ value: String, _ connection: borrowing PostgresConnection
    ) throws(ReportError) {
        _ = try ask(connection, "SELECT set_config('enable_nestloop', $1, true)", [.text(value)])
    }

    /// How the units of cells are cut.
    private var pieces: Schema.UnitPieces? {
        options.by.contains(.type) ? .types : options.by.contains(.action) ? .actions : nil
    }

    /// SQL for whether cells have units of app $1 whose rows are to be told from their events alone. What
    /// has left a cell may have been in it.
    private var hasUnknown: String {
        func exist(_ condition: String) -> String {
            "EXISTS (SELECT FROM tapline.\(condition) AND coalesce(app = $1::text, true))"
        }
        var conditions = ["$1::text IS NULL AND false"]
        // A device may have said its group, and its events nothing of it.
        if options.by.contains(.pushGroup) {
            conditions.append(exist("device_state WHERE push_group IS NOT NULL"))
        }
        let states = options.by.reduce(0) { $0 | $1.unknownStates }
        if states != 0 {
            let isAny = "WHERE states & \(states) <> 0 AND units <> 0"
            let past = ["cell_dimension", "cell_change", "cell_past"]
                .map { exist("\($0) \(isAny)") }
            conditions.append(exist("cell_campaign \(isAny)"))
            conditions.append("f.batch <> newest AND (\(past.joined(separator: " OR ")))")
        }
        return conditions.joined(separator: " OR ")
    }

    /// Adds what is known of the campaigns beside their events.
    private func name(
        _ rows: inout [ReportRow], _ connection: borrowing PostgresConnection
    ) throws(ReportError) {
        guard options.by.contains(.campaign), !rows.isEmpty else { return }
        let answer = try ask(
            connection,
            """
            SELECT r.place, c.name, c.variant, c.audience, c.provider,
                to_char(c.sent_at, 'YYYY-MM-DD"T"HH24:MI:SS.USTZH:TZM')
            FROM unnest($1::text[], $2::text[]) WITH ORDINALITY r(app, campaign_id, place)
                JOIN tapline.campaign c ON c.app = r.app AND c.campaign_id = r.campaign_id
            """, [.textArray(rows.map(\.app)), .textArray(rows.map(\.campaign))])
        for index in 0..<answer.rows {
            guard let place = answer.int64(index, 0) else { continue }
            rows[Int(place) - 1].about = CampaignAbout(
                name: answer.string(index, 1), variant: answer.string(index, 2),
                audience: answer.string(index, 3), provider: answer.string(index, 4),
                sentAt: answer.string(index, 5).map(shortened))
        }
    }

    /// Adds what categories and buttons are called.
    private func label(
        _ rows: inout [ReportRow], _ connection: borrowing PostgresConnection
    ) throws(ReportError) {
        var labels = ButtonLabels()
        for row in rows {
            for place in row.dimensions.indices {
                if let key = ButtonLabels.key(options.by, row, place) { labels.ask(key) }
            }
            for share in row.actionShares ?? [] {
                for isOfAction in [false, true] {
                    labels.ask(ButtonLabels.key(share, row, isOfAction: isOfAction))
                }
            }
        }
        guard !labels.keys.isEmpty else { return }
        let keys = labels.keys
        let answer = try ask(
            connection, ButtonLabels.statement,
            [
                .textArray(keys.map(\.app)), .textArray(keys.map(\.category)),
                .textArray(keys.map(\.action)),
            ])
        for row in 0..<answer.rows {
            guard let place = answer.int64(row, 0) else { continue }
            labels[keys[Int(place) - 1]] = answer.string(row, 1)
        }
        for index in rows.indices {
            let row = rows[index]
            rows[index].dimensionLabels = row.dimensions.indices.map { place in
                ButtonLabels.key(options.by, row, place).flatMap { labels[$0] }
            }
            rows[index].actionShares = row.actionShares?.map { share in
                var share = share
                share.categoryLabel =
                    labels[ButtonLabels.key(share, row, isOfAction: false)]
                if share.action != nil {
                    share.actionLabel = labels[ButtonLabels.key(share, row, isOfAction: true)]
                }
                return share
            }
        }
    }

    /// Whether it matters when an event was, and not only when its unit was first seen.
    private var hasOtherTimes: Bool { options.isByActivity && hasTime }
    private var isByTime: Bool { options.by.contains(where: \.isTime) }
    private var hasPeriod: Bool { options.from != nil || options.to != nil }
    private var hasTime: Bool { isByTime || hasPeriod }

    /// The smallest cells that know what is asked for.
    private func cellTable(byHour: Bool, isPast: Bool) -> Schema.CellTable {
        .knowing(
            campaign: options.by.contains(.campaign) || options.campaign != nil,
            time: (hasTime, byHour),
            dimensions: options.by.contains { $0 != .campaign && !$0.isTime }, isPast: isPast)
    }

    /// The first column after the rates.
    private var afterRates: Int {
        ReportStatement.firstCount + ReportCount.allCases.count
            + ReportStatement.rateColumns * ReportRate.allCases.count
    }

    private func row(_ answer: borrowing PostgresResult, _ index: Int) -> ReportRow {
        let firstRate = ReportStatement.firstCount + ReportCount.allCases.count
        let rates = stride(
            from: firstRate, to: afterRates, by: ReportStatement.rateColumns
        ).map { rate(answer, index, $0) }
        var counts: [Int64?] = []
        for column in ReportStatement.firstCount..<firstRate {
            counts.append(answer.int64(index, column))
        }
        let places = options.by.filter { $0 != .campaign }.count
        return ReportRow(
            app: answer.string(index, 1), campaign: answer.string(index, 2),
            dimensions: [answer.string(index, 3), answer.string(index, 4)].prefix(places).map {
                $0
            },
            counts: counts, rates: rates, timeToOpen: timeToOpen(answer, index),
            actionShares: actionShares(answer, index),
            flags: (answer.string(index, 5) ?? "").split(separator: " ").map(String.init),
            opened: answer.string(index, afterRates + 1).map {
                $0.split(separator: " ").compactMap { Int64($0) }
            })
    }

    /// Reads a rate, and makes its interval: as SQL it would be planned sixteen times over, which takes
    /// longer than the rest of a small report.
    private func rate(
        _ answer: borrowing PostgresResult, _ index: Int, _ column: Int
    ) -> RateValue {
        let (part, whole) = (answer.int64(index, column), answer.int64(index, column + 1))
        guard let part, let whole else {
            return RateValue(
                numerator: part, denominator: whole, value: nil, low: nil, high: nil)
        }
        return Statistics.rate(part, of: whole)
    }

    /// Reads `category:action:units` of `sql/report/opening.sql`, and whether there was a look at all.
    private func actionShares(
        _ answer: borrowing PostgresResult, _ index: Int
    ) -> [ActionShare]? {
        guard let pressed = answer.int64(index, afterRates) else { return nil }
        return (answer.string(index, 9) ?? "").split(separator: " ").compactMap { button in
            let parts = button.split(separator: ":")
            guard parts.count == 3, let units = Int64(parts[2]) else { return nil }
            return ActionShare(
                category: text(hex: parts[0]), action: text(hex: parts[1]),
                share: Statistics.rate(units, of: pressed))
        }
    }

    private func text(hex: Substring) -> String? {
        Hex.decode(hex).map { String(decoding: $0, as: UTF8.self) }
    }

    private func timeToOpen(_ answer: borrowing PostgresResult, _ index: Int) -> TimeToOpen? {
        guard let p50 = answer.double(index, 6), let p90 = answer.double(index, 7),
            let p99 = answer.double(index, 8)
        else { return nil }
        return TimeToOpen(p50: p50, p90: p90, p99: p99)
    }

    private func ask(
        _ connection: borrowing PostgresConnection, _ sql: String, _ values: [PostgresValue] = []
    ) throws(ReportError) -> PostgresResult {
        do throws(PostgresError) {
            guard isSmall, let plans else { return try connection.query(sql, values) }
            return try plans.query(sql, values, on: connection)
        } catch {
            throw .database(error)
        }
    }
}
