extension Schema {
    /// Where the units of a report come from.
    package enum UnitSource: Equatable, Sendable {
        /// All events: slow, and right for every batch and period.
        case events(EventScope)
        /// Cells, and for units that are special, if there are any, their events; as they are, or as
        /// they were when the batch of the report was the newest.
        case cells(CellTable, pieces: UnitPieces?, withSpecial: Bool, isPast: Bool)
        /// Cells, and the events of special units and of all others that devices did something about,
        /// which are looked at for journeys.
        case cellsAndEffects(CellTable, pieces: UnitPieces?, isPast: Bool)
        /// The events of units that have one in the period, and of special units.
        case active(EventScope, isPast: Bool)
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
        /// Knows of campaigns and time, by the hour of UTC.
        case hour
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
        /// - Parameters:
        ///   - time: Whether of time, and whether hours of UTC are enough.
        ///   - isPast: Whether they have to tell of the past.
        package static func knowing(
            campaign: Bool, time: (isAsked: Bool, byHour: Bool), dimensions: Bool, isPast: Bool
        ) -> CellTable {
            switch (campaign, time.isAsked, dimensions) {
            case (_, false, false): isPast ? .dimension : .campaign
            case (_, true, false) where time.byHour: .hour
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

        fileprivate init(_ pieces: UnitPieces?, hasJourney: Bool = false) {
            isByEvent = pieces != nil
            self.hasJourney = hasJourney
        }

        /// Whether units are cut into pieces.
        var isCut: Bool { isByActivity || isByEvent }
    }

    /// The statement of a report up to its CTE `result`, from `sql/report/`; the placeholders
    /// `<first>`, `<second>`, `<one>`, `<two>`, `<campaign>`, `<cell campaign>`, `<version flags>`, `<page>`
    /// and `<conversion window>` are left; of cells also `<cell first>`, `<cell second>`, `<plain first>`,
    /// `<plain second>` and `<type words>`; of ``EventScope`` that are cut also
    /// `<piece one>`, `<piece two>`, `<piece first>` and `<piece second>`.
    ///
    /// - Parameter keys: Of the rows, where the units are of cells. `<time one>` and `<time two>` are left
    ///   where these have a time; `<one>` and `<two>` are null in its place.
    package static func reportResult(from source: UnitSource, by keys: CellKeys) -> String {
        switch source {
        case .events(let scope):
            "WITH " + units(fromSpecial: false, scope) + allUnits(scope)
                + counts(hasJourney: scope.hasJourney)
        case .active(let scope, let isPast):
            "WITH " + units(fromSpecial: true, scope, isPast: isPast)
                + allUnits(scope, sending: sendingApps) + counts(hasJourney: false)
        case .cells(let table, let pieces, withSpecial: true, let isPast):
            "WITH " + keys.zone + units(fromSpecial: true, EventScope(pieces), isPast: isPast)
                + units(
                    from: table, pieces, quarter: keys.ofCell, isEach: keys.areOf(table),
                    isPast: isPast)
                + special(pieces)
                + keys.alike(of: table, isPast: isPast) { plain in
                    "\(alikeUnits) UNION ALL SELECT * FROM \(plain)"
                }.filled(["quarter": keys.ofUnit, "units": "unit"])
                + sendingApps + counts(hasJourney: false, hasTime: keys.time != nil)
        case .cellsAndEffects(let table, let pieces, let isPast):
            "WITH " + keys.zone
                + units(
                    fromSpecial: true, EventScope(pieces, hasJourney: true), isPast: isPast)
                + units(
                    from: table, pieces, quarter: keys.ofCell, isEach: keys.areOf(table),
                    isPast: isPast)
                + special(pieces, named: named)
                + keys.alike(of: table, isPast: isPast) { plain in
                    "\(alikeUnits) UNION ALL \(effects(isPast)) UNION ALL SELECT * FROM \(plain)"
                }.filled(["quarter": keys.ofUnit, "units": specialUnits(isPast)])
                + sendingApps + counts(hasJourney: true, hasTime: keys.time != nil)
        case .cells(let table, let pieces, withSpecial: false, let isPast):
            "WITH " + keys.zone
                + units(
                    from: table, pieces, quarter: keys.ofCell, isEach: keys.areOf(table),
                    isPast: isPast)
                + keys.alike(of: table, isPast: isPast) { "SELECT * FROM \($0)" }
                + sendingApps + counts(hasJourney: false, hasTime: keys.time != nil)
        }
    }

    /// Counts and rates.
    ///
    /// - Parameter hasTime: Whether rows have a `quarter`.
    static func counts(hasJourney: Bool, hasTime: Bool = false) -> String {
        report(.cells).filled([
            "sums": report(.sums), "has journey": "\(hasJourney)", "delivered": delivered,
            "names of sums": sums.joined(separator: ", "),
            "totals": sums.map { "tapline.total(\($0))" }.joined(separator: ", "),
            "opening": hasJourney ? opening + ",\n" : "",
            "opening join": hasJourney ? openingJoin : noOpening,
            "labels": hasTime ? labels(of: "keyed") : "",
            "one of row": hasTime ? "coalesce(k.one, s.one)" : "one",
            "two of row": hasTime ? "coalesce(k.two, s.two)" : "two",
        ])
    }

    /// What `keyed` of ``cells`` has for each row: the sums, and what it makes of them.
    private static let sums =
        report(.sums).split(separator: "\n").filter { $0.contains("tapline.total") }
        .map { String($0.split { $0 == " " || $0 == "," }.last!) } + ["unsent", "unsent_excluded"]

    /// The texts of the times of rows, as `k`: one is made for each time, and not for each row.
    static func labels(of rows: String) -> String {
        """

                LEFT JOIN (
                    SELECT quarter, <time one> AS one, <time two> AS two
                    FROM (SELECT DISTINCT quarter FROM \(rows) WHERE quarter IS NOT NULL) q
                    OFFSET 0) k ON k.quarter = s.quarter
        """
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

    private static let openingJoin = """
        LEFT JOIN opening o ON o.is_total = c.is_total
                    AND o.key = ARRAY[c.app, c.campaign_id, c.one, c.two]
                LEFT JOIN pressed b ON b.is_total = c.is_total
                    AND b.key = ARRAY[c.app, c.campaign_id, c.one, c.two]
        """
    private static let noOpening = """
        CROSS JOIN (
                    SELECT NULL::bigint AS reversed, NULL::float8 AS p50, NULL::float8 AS p90,
                        NULL::float8 AS p99, NULL::text AS opened, NULL::text AS buttons) o
        """

    /// CTEs `unit`, `alike` and `sending`, and a comma.
    private static func allUnits(
        _ scope: EventScope,
        sending: String = "sending AS (SELECT DISTINCT app FROM source WHERE type = 1),\n"
    ) -> String {
        let whole =
            "unit AS (SELECT \(unitColumns), 0 AS part\(scope.hasJourney ? named : "") FROM exact)"
        return
            (scope.isCut
            ? report(.piece).filled(["delivered": delivered, "pieces of units": "unit"]) : whole)
                + """
                ,
                alike AS (\(alikeUnits)),
                \(sending)
                """.filled(["quarter": "NULL::int", "units": "unit"])
    }
    /// What tells a unit, and its pieces, apart from others.
    private static let named = ", unit, NULL::text AS piece_one, NULL::text AS piece_two"
    /// CTE `unit` of special units, and a comma.
    private static func special(_ pieces: UnitPieces?, named: String = "") -> String {
        pieces == nil
            ? "unit AS MATERIALIZED (SELECT \(unitColumns), 0 AS part\(named) FROM exact),\n"
            : report(.piece).filled(["delivered": delivered, "pieces of units": "unit"]) + ",\n"
    }
    private static let plainUnits = "SELECT * FROM plain"
    private static let sendingApps =
        "sending AS (SELECT app FROM tapline.sending_app WHERE batch <= $1),\n"
    private static let unitColumns = """
        app, campaign_id, first, second, first_at, states, is_test, campaign_mismatch, sent_unknown,
            failed_unknown, n, clicks, late
        """
    /// Few units differ in all of these.
    static let alikeUnits = """
        SELECT app, <campaign> AS campaign_id, <one> AS one, <two> AS two, <quarter> AS quarter, states,
            is_test, campaign_mismatch, sent_unknown, failed_unknown, part, tapline.total(n) AS n,
            tapline.total(clicks) AS clicks, tapline.total(late) AS late
        FROM <units> GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        """

    /// Whether a unit is special: SQL.
    private static func isSpecial(_ unit: String, isPast: Bool) -> String {
        "EXISTS (SELECT FROM tapline.special_unit s WHERE s.unit = \(unit)"
            + (isPast ? " AND s.batch <= $1" : "") + ")"
    }

    /// The events of special units: what other sent events `special` has are not of them.
    private static func ofSpecial(isPast: Bool) -> String {
        "(SELECT * FROM special x WHERE \(isSpecial("x.unit", isPast: isPast))) e"
    }

    /// Of CTE `unit` those that cells do not have.
    private static func specialUnits(_ isPast: Bool) -> String {
        "(SELECT * FROM unit u WHERE \(isSpecial("u.unit", isPast: isPast))) u"
    }

    /// What journeys change of the units that cells have: one less that is as it is there, one more that is
    /// as it is in truth.
    private static func effects(_ isPast: Bool) -> String {
        let units = """
            (SELECT app, campaign_id, first, second, first_at, v.states, is_test,
                campaign_mismatch, sent_unknown, failed_unknown, part, v.n, 0 AS clicks, 0 AS late
            FROM unit u, LATERAL (VALUES (states, 1), (states & ~(7 << 23), -1)) v(states, n)
            WHERE u.states & (7 << 23) <> 0 AND NOT \(isSpecial("u.unit", isPast: isPast))) u
            """
        return alikeUnits.filled(["units": units])
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
        let hasEffects = fromSpecial && scope.hasJourney
        let isOfActive = fromSpecial && scope.isByActivity
        var values = [
            "from": fromSpecial ? ofSpecial(isPast: isPast) : events,
            "columns": report(.columns),
            "effects": isOfActive ? report(.active) : hasEffects ? report(.effects) : "",
            "is special": isSpecial("e.unit", isPast: isPast),
            // Others without a campaign have no sent that names one.
            "orphan": hasEffects || isOfActive
                ? " AND \(isSpecial("folded.unit", isPast: false))" : "",
            "sibling": siblings,
            "in piece": scope.isByActivity ? inPeriod : "true",
            "any time": scope.isByActivity ? "true" : "false",
            "journey": scope.hasJourney
                ? report(.journey).filled([
                    "delivered": delivered,
                    "life of no message": hasEffects ? "effects e WHERE is_outside" : report(.life),
                ]) : "",
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
        if hasEffects {
            parts.insert(report(.outside).filled(values), at: 0)
        }
        return parts.map { $0 + ",\n" }.joined()
    }

    /// CTE `plain`, and a comma; what the cells do not know is null.
    ///
    /// - Parameters:
    ///   - name: Of the CTE.
    ///   - quarter: Its `quarter`: SQL.
    ///   - isEach: Whether each cell is a row, and none are grouped.
    static func units(
        _ name: String = "plain", from table: CellTable, _ pieces: UnitPieces? = nil,
        quarter: String, isEach: Bool = false, isPast: Bool = false
    ) -> String {
        // A condition on the quarter or the hour itself, which an index can answer.
        func inPeriod(_ time: String, seconds: Int) -> String {
            """
            ($2::timestamptz IS NULL
                OR \(time) >= (extract(epoch FROM $2::timestamptz) / \(seconds))::bigint)
            AND ($3::timestamptz IS NULL
                OR \(time) < (extract(epoch FROM $3::timestamptz) / \(seconds))::bigint)
            """
        }
        // These are asked only without a period.
        let isTimeless = table == .campaign || table == .dimension
        let always = "$2::timestamptz IS NULL AND $3::timestamptz IS NULL"
        let hasDimensions = table != .campaign && table != .quarter && table != .hour
        func rows(_ name: String, ofHours: Bool = false, _ condition: String) -> String {
            var columns = ["states", "units", "clicks", "late", "app"]
            columns.append(table == .time ? "NULL::text AS campaign_id" : "campaign_id")
            columns.append(
                isTimeless ? "NULL::int AS quarter" : ofHours ? "hour * 4 AS quarter" : "quarter")
            columns += cellDimensions.map { hasDimensions ? $0 : "NULL::text AS \($0)" }
            let period =
                ofHours
                ? inPeriod("hour", seconds: 3600) : inPeriod("quarter", seconds: 900)
            return """
                SELECT \(columns.joined(separator: ", ")) FROM \(name)
                WHERE \(isTimeless ? always : period)
                    AND \(condition)
                """
        }
        var parts = [
            rows(
                "tapline.\(table.name)", ofHours: table == .hour,
                isPast ? "segment < \(segmentOfReport)" : "true")
        ]
        if table != .campaign {
            // Of all loads at once; the others say only what closed segments were.
            parts.append(rows("tapline.cell_change", isPast ? "batch <= $1" : "$1::bigint > -1"))
        }
        if isPast {
            parts.append(
                rows("tapline.cell_past", "segment = \(segmentOfReport) AND batch <= $1"))
        }
        let counts = ["units", "clicks", "late"]
        var values = [
            "name": name, "quarter": quarter,
            "cells": "(\(parts.joined(separator: "\nUNION ALL\n")))",
            "counts of cells": counts.map {
                (isEach ? "e.\($0)::bigint" : "tapline.total(e.\($0))") + " AS \($0)"
            }.joined(separator: ", "),
            "groups of cells": isEach ? "" : "GROUP BY 1, 2, 3, 4, 5, 6, 7",
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

    /// Makes function `tapline.report`, and the views over it, with the text of this version; harmless
    /// when repeated.
    package static var reportFunction: String {
        let scope = EventScope()
        func time(_ day: String, _ hour: String) -> String {
            "CASE $8 WHEN 'day' THEN \(day) WHEN 'hour' THEN \(hour) END"
        }
        func key(of quarter: String) -> String {
            time(
                CellKeys.Time.day.key(of: quarter, isUTC: false),
                CellKeys.Time.hour.key(of: quarter, isUTC: false))
        }
        let first =
            "CASE $8 " + deviceDimensions.map { "WHEN '\($0)' THEN e.\($0) " }.joined() + "END"
        let one = time(dayKey("first_at"), hourKey("first_at"))
        var values = [
            "units of events": units(fromSpecial: false)
                + allUnits(scope).filled(["one": "coalesce(\(one), first)"]),
            "special": units(fromSpecial: true),
            "units of special": special(nil)
                + "alike AS (\(alikeUnits) UNION ALL \(plainUnits)),\n"
                .filled(["quarter": key(of: unitQuarter), "units": "unit"]) + sendingApps,
            "units of cells": "alike AS (\(plainUnits)),\n" + sendingApps, "zone": zone,
            "counts": counts(hasJourney: false, hasTime: true) + functionSelection,
            "first": first, "second": "NULL::text", "one": "first", "two": "NULL::text",
            "time one": time(dayKey(CellKeys.Time.day.at), hourKey(CellKeys.Time.hour.at)),
            "time two": "NULL::text", "page": "OFFSET 0",
            "cell first": first, "cell second": "NULL::text",
            "plain first": "e.first", "plain second": "e.second",
            "campaign": "CASE WHEN $9 THEN coalesce(campaign_id, '(unattributed)') END",
            "cell campaign": "CASE WHEN $9 THEN e.campaign_id END",
            "version flags": "",
        ]
        for table in CellTable.allCases {
            values["cells by \(table.rawValue)"] = units(from: table, quarter: key(of: "e.quarter"))
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
