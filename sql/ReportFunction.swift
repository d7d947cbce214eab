extension Schema {
    /// Where the units of a report come from.
    package enum UnitSource: Sendable {
        /// All events: slow, and right for every batch.
        case events
        /// The events of units `$2`, and tapline.unit for all others.
        case units
    }

    /// The statement of a report up to its CTE `result`, from `sql/report/`; the placeholders
    /// `<first>`, `<second>`, `<one>`, `<two>` and `<campaign>` are left.
    package static func reportResult(from source: UnitSource) -> String {
        let parts: [String]
        switch source {
        case .events:
            parts = [
                report(.source).replacing("<from>", with: "tapline.event e"), report(.exact),
                "unit AS (SELECT * FROM exact)",
                "sending AS (SELECT DISTINCT app FROM source WHERE type = 1)", report(.cells),
            ]
        case .units:
            // Distinct, or else the planner would rather hash all events than these.
            let asked =
                "(SELECT DISTINCT unnest($2::uuid[]) AS asked) a "
                + "JOIN tapline.event e ON e.unit = a.asked"
            parts = [
                report(.source).replacing("<from>", with: asked), report(.exact), report(.plain),
                "unit AS (SELECT * FROM exact UNION ALL SELECT * FROM plain)",
                "sending AS (SELECT app FROM tapline.sending_app "
                    + "UNION SELECT app FROM source WHERE type = 1)",
                report(.cells),
            ]
        }
        return "WITH " + parts.joined(separator: ",\n")
    }

    /// The key of a day, of the session's time zone.
    package static let dayKey = "to_char(first_at, 'YYYY-MM-DD')"
    /// The key of an hour, of the session's time zone.
    package static let hourKey = "to_char(first_at, 'YYYY-MM-DD\"T\"HH24:00TZH:TZM')"

    /// Makes function `tapline.report` with the text of this version; harmless when repeated.
    package static var reportFunction: String {
        report(.function)
            .replacing("<statement of events>", with: functionStatement(from: .events))
            .replacing("<statement of units>", with: functionStatement(from: .units))
    }

    private static let columns = [
        "platform", "app_version", "os_version", "locale", "country", "provider",
    ]

    private static func functionStatement(from source: UnitSource) -> String {
        let first = "CASE $9 " + columns.map { "WHEN '\($0)' THEN e.\($0) " }.joined() + "END"
        let one = "CASE $9 WHEN 'day' THEN \(dayKey) WHEN 'hour' THEN \(hourKey) ELSE first END"
        var text = reportResult(from: source) + functionSelection
        for (name, value) in [
            "first": first, "second": "NULL::text", "one": one, "two": "NULL::text",
            "campaign": "CASE WHEN $10 THEN coalesce(campaign_id, '(unattributed)') END",
        ] {
            text = text.replacing("<\(name)>", with: value)
        }
        return text
    }

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
        ORDER BY is_total DESC, CASE WHEN $9 IN ('day', 'hour') THEN one END COLLATE "C",
            delivered DESC, app COLLATE "C", campaign_id COLLATE "C", one COLLATE "C"
        LIMIT $8
        """
}
