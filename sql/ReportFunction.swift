extension Schema {
    /// Where the units of a report come from.
    package enum UnitSource: Equatable, Sendable {
        /// All events: slow, and right for every batch and period.
        case events
        /// Cells, and for units that are special, if there are any, their events.
        case cells(CellTable, withSpecial: Bool)
    }

    /// Which cells a report is made of: the fewer there are, the faster.
    package enum CellTable: String, CaseIterable, Sendable {
        /// Knows of campaigns alone.
        case campaign
        /// Knows of time as well.
        case quarter
        /// Knows of dimensions as well.
        case dimension
    }

    /// The statement of a report up to its CTE `result`, from `sql/report/`; the placeholders
    /// `<first>`, `<second>`, `<one>`, `<two>`, `<campaign>`, `<cell campaign>` and `<quarter>` are
    /// left.
    package static func reportResult(from source: UnitSource) -> String {
        switch source {
        case .events: "WITH " + units(fromSpecial: false) + allUnits + report(.cells)
        case .cells(let table, withSpecial: true):
            "WITH " + units(fromSpecial: true) + units(from: table) + specialUnits + report(.cells)
        case .cells(let table, withSpecial: false):
            "WITH " + units(from: table) + plainUnits + report(.cells)
        }
    }

    private static let allUnits = """
        unit AS (SELECT * FROM exact),
        sending AS (SELECT DISTINCT app FROM source WHERE type = 1),

        """
    private static let specialUnits = """
        unit AS (SELECT * FROM exact UNION ALL SELECT * FROM plain),
        sending AS (SELECT app FROM tapline.sending_app),

        """
    private static let plainUnits = """
        unit AS (SELECT * FROM plain),
        sending AS (SELECT app FROM tapline.sending_app),

        """

    private static let ofSpecial =
        "(SELECT * FROM special WHERE unit IN (SELECT unit FROM tapline.special_unit)) e"

    /// CTE `exact`, of all events or of those of special units, and a comma.
    private static func units(fromSpecial: Bool) -> String {
        let siblings =
            fromSpecial
            ? report(.sibling)
            : """
            SELECT o.message, s.campaign_id, s.event_time, s.key
            FROM source s JOIN orphan o ON o.message = tapline.unit_message(s.unit)
            WHERE s.type = 1 AND s.campaign_id IS NOT NULL
            """
        var parts = [
            report(.source).replacing("<from>", with: fromSpecial ? ofSpecial : "tapline.event e"),
            report(.exact).replacing("<sibling>", with: siblings),
        ]
        if fromSpecial {
            parts.insert("special AS MATERIALIZED (SELECT * FROM tapline.special_events())", at: 0)
        }
        return parts.map { $0 + ",\n" }.joined()
    }

    /// CTE `plain`, and a comma; placeholders are left where the table has what they stand for.
    private static func units(from table: CellTable) -> String {
        // A condition on the quarter itself, which an index can answer.
        func inPeriod(_ name: String, _ columns: String) -> String {
            """
            SELECT \(columns) FROM \(name)
            WHERE ($2::timestamptz IS NULL
                    OR quarter >= (extract(epoch FROM $2::timestamptz) / 900)::bigint)
                AND ($3::timestamptz IS NULL
                    OR quarter < (extract(epoch FROM $3::timestamptz) / 900)::bigint)
            """
        }
        func withChanges(_ name: String, _ columns: String) -> String {
            "(\(inPeriod(name, columns))\nUNION ALL\n"
                + "\(inPeriod("tapline.cell_change", columns)))"
        }
        let columns = "quarter, states, units, clicks, late, app, campaign_id"
        var absent: [String] = []
        let cells: String
        switch table {
        case .campaign:
            // Asked only without a period, of which it knows nothing.
            cells = """
                (SELECT * FROM tapline.cell_campaign
                WHERE $2::timestamptz IS NULL AND $3::timestamptz IS NULL)
                """
            absent = ["first", "second", "quarter"]
        case .quarter:
            cells = withChanges("tapline.cell_quarter", columns)
            absent = ["first", "second"]
        case .dimension:
            cells = withChanges("tapline.cell", ([columns] + Self.columns).joined(separator: ", "))
        }
        var text = report(.plain).replacing("<cells>", with: cells)
        for name in absent {
            text.replace("<\(name)>", with: name == "quarter" ? "NULL::int" : "NULL::text")
        }
        return text + ",\n"
    }

    /// The key of a day, of the session's time zone.
    package static let dayKey = "to_char(first_at, 'YYYY-MM-DD')"
    /// The key of an hour, of the session's time zone.
    package static let hourKey = "to_char(first_at, 'YYYY-MM-DD\"T\"HH24:00TZH:TZM')"

    /// Makes function `tapline.report` with the text of this version; harmless when repeated.
    package static var reportFunction: String {
        var text = report(.function)
            .replacing("<units of events>", with: units(fromSpecial: false) + allUnits)
            .replacing("<special>", with: units(fromSpecial: true))
            .replacing("<units of special>", with: specialUnits)
            .replacing("<units of cells>", with: plainUnits)
            .replacing("<counts>", with: report(.cells) + functionSelection)
        for table in CellTable.allCases {
            text.replace("<cells by \(table.rawValue)>", with: units(from: table))
        }
        let first = "CASE $8 " + columns.map { "WHEN '\($0)' THEN e.\($0) " }.joined() + "END"
        let one = "CASE $8 WHEN 'day' THEN \(dayKey) WHEN 'hour' THEN \(hourKey) ELSE first END"
        for (name, value) in [
            "first": first, "second": "NULL::text", "one": one, "two": "NULL::text",
            "campaign": "CASE WHEN $9 THEN coalesce(campaign_id, '(unattributed)') END",
            "cell campaign": "CASE WHEN $9 THEN e.campaign_id END",
            "quarter": "CASE WHEN $8 IN ('day', 'hour') THEN e.quarter END",
        ] {
            text.replace("<\(name)>", with: value)
        }
        return text
    }

    private static let columns = [
        "platform", "app_version", "os_version", "locale", "country", "provider",
    ]

    private static let functionSelection = """

        SELECT is_total, app, campaign_id, one, flags, sent::bigint, failed::bigint,
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
