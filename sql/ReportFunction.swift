extension Schema {
    /// Where the units of a report come from.
    package enum UnitSource: Equatable, Sendable {
        /// All events: slow, and right for every batch and period.
        case events(EventScope)
        /// Cells, and for units that are special, if there are any, their events; as they are, or as
        /// they were when the batch of the report was the newest.
        case cells(CellTable, pieces: UnitPieces?, withSpecial: Bool, isPast: Bool)
    }

    /// How the units of cells are cut where rows are by what is of an event.
    package enum UnitPieces: Sendable {
        /// By the type of events, or by type and button.
        case types
        /// By button.
        case actions
    }

    /// Which cells a report is made of: the fewer there are, the faster.
    package enum CellTable: String, CaseIterable, Sendable {
        /// Knows of campaigns alone.
        case campaign
        /// Knows of campaigns and time.
        case quarter
        /// Knows of campaigns and dimensions.
        case dimension
        /// Knows of dimensions and time.
        case time
        /// Knows of all.
        case all

        /// Of the table, in schema `tapline`.
        var name: String { self == .all ? "cell" : "cell_\(rawValue)" }

        /// The fewest cells that know what is asked for.
        ///
        /// - Parameter isPast: Whether they have to tell of the past.
        package static func knowing(
            campaign: Bool, time: Bool, dimensions: Bool, isPast: Bool
        ) -> CellTable {
            switch (campaign, time, dimensions) {
            case (_, false, false): isPast ? .dimension : .campaign
            case (true, true, false): .quarter
            case (_, false, true): .dimension
            case (false, true, _): .time
            case (true, true, true): .all
            }
        }
    }

    /// How all events make the units of a report.
    package struct EventScope: Equatable, Sendable {
        /// Whether events in the period count, and not units first seen there.
        package var isByActivity = false
        /// Whether a key of the rows is of an event, so that a unit may be in several rows.
        package var isByEvent = false
        /// Whether what devices did around their messages is looked at.
        package var hasJourney = false

        package init() {}

        fileprivate init(_ pieces: UnitPieces?) { isByEvent = pieces != nil }

        /// Whether units are cut into pieces.
        var isCut: Bool { isByActivity || isByEvent }
    }

    /// The statement of a report up to its CTE `result`, from `sql/report/`; the placeholders
    /// `<first>`, `<second>`, `<one>`, `<two>`, `<campaign>`, `<cell campaign>`, `<quarter>`,
    /// `<version flags>` and `<conversion window>` are left; of cells also `<cell first>`, `<cell second>`, `<plain first>`,
    /// `<plain second>` and `<type words>`; of ``EventScope`` that are cut also
    /// `<piece one>`, `<piece two>`, `<piece first>` and `<piece second>`.
    package static func reportResult(from source: UnitSource) -> String {
        switch source {
        case .events(let scope):
            "WITH " + units(fromSpecial: false, scope) + allUnits(scope)
                + counts(hasJourney: scope.hasJourney)
        case .cells(let table, let pieces, withSpecial: true, let isPast):
            "WITH " + units(fromSpecial: true, EventScope(pieces), isPast: isPast)
                + units(from: table, pieces, isPast: isPast)
                + (pieces == nil ? specialUnits : specialPieces)
                + counts(hasJourney: false)
        case .cells(let table, let pieces, withSpecial: false, let isPast):
            "WITH " + units(from: table, pieces, isPast: isPast) + plainUnits
                + counts(hasJourney: false)
        }
    }

    /// Counts and rates.
    static func counts(hasJourney: Bool) -> String {
        report(.cells).filled([
            "sums": report(.sums), "has journey": "\(hasJourney)",
            "opening": hasJourney ? opening : noOpening,
        ])
    }

    /// Limits of the time to open, in seconds, for which reports count the units that were opened.
    package static let openLimits = [
        1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 43_200,
        86_400, 172_800, 345_600, 604_800,
    ]

    /// With a count for each of ``openLimits``, and one of all.
    private static var opening: String {
        let bounds = openLimits.map { "BETWEEN 0 AND \($0)" } + [">= 0"]
        let counts = bounds.map { "count(*) FILTER (WHERE seconds \($0))" }
        return report(.opening).filled(["opened": counts.joined(separator: ", ")])
    }

    private static let noOpening = """
        opening AS (
            SELECT NULL::boolean AS is_total, NULL::text[] AS key, 0::bigint AS reversed,
                NULL::float8 AS p50, NULL::float8 AS p90, NULL::float8 AS p99,
                NULL::text AS opened
            WHERE false
        ), pressed AS (
            SELECT NULL::boolean AS is_total, NULL::text[] AS key, NULL::text AS buttons WHERE false
        )
        """

    private static func allUnits(_ scope: EventScope) -> String {
        let whole =
            "unit AS (SELECT \(unitColumns), 0 AS part\(scope.hasJourney ? named : "") FROM exact)"
        return
            (scope.isCut
            ? report(.piece).filled(["delivered": delivered, "pieces of units": "unit"]) : whole)
                + """
                ,
                sending AS (SELECT DISTINCT app FROM source WHERE type = 1),

                """
    }
    /// What tells a unit, and its pieces, apart from others.
    private static let named = ", unit, NULL::text AS piece_one, NULL::text AS piece_two"
    private static let specialUnits = """
        unit AS (SELECT \(unitColumns), 0 AS part FROM exact UNION ALL SELECT * FROM plain),
        sending AS (SELECT app FROM tapline.sending_app WHERE batch <= $1),

        """
    private static let specialPieces =
        report(.piece).filled(["delivered": delivered, "pieces of units": "cut"]) + """
            ,
            unit AS (SELECT \(unitColumns), part FROM cut UNION ALL SELECT * FROM plain),
            sending AS (SELECT app FROM tapline.sending_app WHERE batch <= $1),

            """
    private static let plainUnits = """
        unit AS (SELECT * FROM plain),
        sending AS (SELECT app FROM tapline.sending_app WHERE batch <= $1),

        """
    private static let unitColumns = """
        app, campaign_id, first, second, first_at, states, is_test, campaign_mismatch, sent_unknown,
            failed_unknown, n, clicks, late
        """

    /// The events of special units: what other sent events `special` has are not of them.
    private static func ofSpecial(isPast: Bool) -> String {
        "(SELECT * FROM special WHERE unit IN (SELECT unit FROM tapline.special_unit"
            + (isPast ? " WHERE batch <= $1" : "") + ")) e"
    }

    /// CTE `exact`, of all events or of those of special units, and a comma.
    static func units(
        fromSpecial: Bool, _ scope: EventScope = EventScope(), isPast: Bool = false,
        events: String = "tapline.event e"
    ) -> String {
        let siblings =
            fromSpecial
            ? report(.sibling)
            : """
            SELECT o.message, s.campaign_id, s.event_time, s.key
            FROM source s JOIN orphan o ON o.message = tapline.unit_message(s.unit)
            WHERE s.type = 1 AND s.campaign_id IS NOT NULL
            """
        let inPeriod = """
            ($2::timestamptz IS NULL OR e.event_time >= $2::timestamptz)
                AND ($3::timestamptz IS NULL OR e.event_time < $3::timestamptz)
            """
        var values = [
            "from": fromSpecial ? ofSpecial(isPast: isPast) : events,
            "sibling": siblings,
            "in piece": scope.isByActivity ? inPeriod : "true",
            "any time": scope.isByActivity ? "true" : "false",
            "journey": scope.hasJourney
                ? report(.journey).filled(["delivered": delivered]) : "",
            // What only single events say is wide, so it is left out where nobody asks.
            "device time": scope.hasJourney
                ? "CASE WHEN e.time_rule <> 2 THEN e.occurred_at END" : "NULL::timestamptz",
            "category": scope.hasJourney ? "e.category_id" : "NULL::text",
            "action": scope.hasJourney ? "e.action_id" : "NULL::text",
            "journey states": scope.hasJourney ? " | coalesce(j.states, 0)" : "",
            "journey join": scope.hasJourney ? " LEFT JOIN journey j ON j.unit = w.unit" : "",
        ]
        if !scope.isCut {
            values["piece one"] = "NULL::text"
            values["piece two"] = "NULL::text"
        }
        var parts = [report(.source).filled(values), report(.exact).filled(values)]
        if fromSpecial {
            parts.insert("special AS MATERIALIZED (SELECT * FROM tapline.special_events())", at: 0)
        }
        return parts.map { $0 + ",\n" }.joined()
    }

    /// CTE `plain`, and a comma; what the cells do not know is null.
    private static func units(
        from table: CellTable, _ pieces: UnitPieces? = nil, isPast: Bool = false
    ) -> String {
        // A condition on the quarter itself, which an index can answer.
        let inPeriod = """
            ($2::timestamptz IS NULL
                OR quarter >= (extract(epoch FROM $2::timestamptz) / 900)::bigint)
            AND ($3::timestamptz IS NULL
                OR quarter < (extract(epoch FROM $3::timestamptz) / 900)::bigint)
            """
        // These are asked only without a period.
        let isTimeless = table == .campaign || table == .dimension
        let always = "$2::timestamptz IS NULL AND $3::timestamptz IS NULL"
        let hasDimensions = table != .campaign && table != .quarter
        let columns =
            ["states", "units", "clicks", "late", "app"]
            + [table == .time ? "NULL::text AS campaign_id" : "campaign_id"]
            + [isTimeless ? "NULL::int AS quarter" : "quarter"]
            + cellDimensions.map { hasDimensions ? $0 : "NULL::text AS \($0)" }
        func rows(_ name: String, _ condition: String) -> String {
            """
            SELECT \(columns.joined(separator: ", ")) FROM \(name)
            WHERE \(isTimeless ? always : inPeriod)
                AND \(condition)
            """
        }
        var parts = [
            rows("tapline.\(table.name)", isPast ? "segment < \(segmentOfReport)" : "true")
        ]
        if table != .campaign {
            // Of all loads at once; the others say only what closed segments were.
            parts.append(rows("tapline.cell_change", isPast ? "batch <= $1" : "$1::bigint > -1"))
        }
        if isPast {
            parts.append(
                rows("tapline.cell_past", "segment = \(segmentOfReport) AND batch <= $1"))
        }
        var values = [
            "cells": "(\(parts.joined(separator: "\nUNION ALL\n")))",
            "grouped states": "e.states & \(plainStates)", "grouped action": "NULL::text",
            "states": "e.states", "clicks": "e.clicks", "late": "e.late", "part": "0", "pieces": "",
        ]
        if let pieces {
            values["pieces"] =
                "\n"
                + report(pieces == .types ? .types : .actions)
                .filled(["plain states": "\(plainStates)"])
            values["grouped states"] = "e.states"
            values["grouped action"] = "e.action_id"
            for name in ["states", "clicks", "late", "part"] { values[name] = "p.\(name)" }
        }
        return report(.plain).filled(values) + ",\n"
    }

    /// The key of the day of a time, of the session's time zone.
    package static func dayKey(_ time: String) -> String { "to_char(\(time), 'YYYY-MM-DD')" }
    /// The key of the hour of a time, of the session's time zone.
    package static func hourKey(_ time: String) -> String {
        "to_char(\(time), 'YYYY-MM-DD\"T\"HH24:00TZH:TZM')"
    }
    /// The bits of ``tapline.event_states`` that say that a unit was delivered.
    private static let delivered = "(15 << 3) | (3 << 8) | (1 << 12) | (1 << 20)"

    /// The segment that was open when the batch of the report was the newest.
    private static let segmentOfReport = "(SELECT segment FROM tapline.batch WHERE batch = $1)"

    /// A join to the first quarter of the day or hour that a quarter is in, as `k.first`: a key is made
    /// for each quarter, and not for each cell.
    ///
    /// - Parameter key: Of a time `at`: ``dayKey(_:)`` or ``hourKey(_:)``.
    package static func calendar(_ key: String) -> String {
        """

            JOIN (
                SELECT quarter, min(quarter) OVER (PARTITION BY \(key)) AS first
                FROM (
                    SELECT quarter, to_timestamp(quarter * 900::float8) AS at
                    FROM (
                        SELECT quarter FROM tapline.cell_time
                        UNION ALL SELECT quarter FROM tapline.cell_change
                        UNION ALL SELECT quarter FROM tapline.cell_past
                            WHERE segment = \(segmentOfReport)) q
                    GROUP BY quarter) t) k
                ON k.quarter = e.quarter
        """
    }

    /// Makes function `tapline.report`, and the views over it, with the text of this version; harmless
    /// when repeated.
    package static var reportFunction: String {
        let scope = EventScope()
        let first =
            "CASE $8 " + deviceDimensions.map { "WHEN '\($0)' THEN e.\($0) " }.joined() + "END"
        let one =
            "CASE $8 WHEN 'day' THEN \(dayKey("first_at")) "
            + "WHEN 'hour' THEN \(hourKey("first_at")) ELSE first END"
        var values = [
            "units of events": units(fromSpecial: false) + allUnits(scope),
            "special": units(fromSpecial: true), "units of special": specialUnits,
            "units of cells": plainUnits,
            "counts": counts(hasJourney: false) + functionSelection,
            "first": first, "second": "NULL::text", "one": one, "two": "NULL::text",
            "cell first": first, "cell second": "NULL::text",
            "plain first": "e.first", "plain second": "e.second",
            "campaign": "CASE WHEN $9 THEN coalesce(campaign_id, '(unattributed)') END",
            "cell campaign": "CASE WHEN $9 THEN e.campaign_id END",
            "version flags": "", "calendar": "",
            "quarter": "CASE WHEN $8 IN ('day', 'hour') THEN e.quarter END",
        ]
        for table in CellTable.allCases {
            values["cells by \(table.rawValue)"] = units(from: table)
        }
        let text = report(.function).filled(values)
        return text + ";\n" + report(.views)
    }

    private static let functionSelection = """

        SELECT is_total, app, campaign_id, one, flag_names, sent::bigint, failed::bigint,
            accepted::bigint, observed::bigint, delivered::bigint, implied::bigint,
            clicked::bigint, clicks_total::bigint, actions::bigint, dismissed::bigint,
            inbox_opened::bigint, engaged::bigint, test_excluded::bigint, late::bigint,
            clicks_without_send::bigint, failed_but_clicked::bigint,
            delivery_rate, ctr_delivered,
            tapline.wilson_low(
                ctr_delivered_numerator::bigint, ctr_delivered_denominator::bigint),
            tapline.wilson_high(
                ctr_delivered_numerator::bigint, ctr_delivered_denominator::bigint),
            ctr_sent, ctr_accepted, engagement_rate, dismiss_rate
        FROM result
        ORDER BY is_total DESC, CASE WHEN $8 IN ('day', 'hour') THEN one END COLLATE "C",
            delivered DESC, app COLLATE "C", campaign_id COLLATE "C", one COLLATE "C"
        LIMIT $7
        """
}
