extension Schema {
    /// The units of some events by the rules of reports, as a statement that gives a row a unit: unit,
    /// app, campaign_id, first, second, first_at, states, is_test, campaign_mismatch, sent_unknown.
    ///
    /// $1 to $5 are those of a report; the placeholders `<first>` and `<second>` are left.
    ///
    /// - Parameter events: SQL that stands after FROM and names the events `e`: all events of their
    ///   messages, and of the messages that an inbox event joins to them.
    package static func explainedUnits(of events: String) -> String {
        "WITH " + units(fromSpecial: false, events: events).dropLast(2) + """

            SELECT unit::text, app, campaign_id, first, second, first_at, states, is_test,
                campaign_mismatch, sent_unknown
            FROM exact ORDER BY app, first_at, unit
            """
    }

    /// What a report counts of each of these units: unit, flags, then ``explainedCounts``; $6 is
    /// whether test units are included.
    ///
    /// - Parameter events: As for ``explainedUnits(of:)``.
    package static func explainedCounts(of events: String) -> String {
        let statement =
            "WITH " + units(fromSpecial: false, events: events) + """
                unit AS (
                    SELECT app, campaign_id, unit::text AS first, NULL::text AS second, first_at,
                        states, is_test, campaign_mismatch, sent_unknown, failed_unknown, n, clicks,
                        late, 0 AS part
                    FROM exact),
                alike AS (\(alikeUnits)),
                sending AS (SELECT app FROM tapline.sending_app),

                """ + counts(hasJourney: false)
            + "SELECT one, flag_names, "
            + explainedCounts.map { "\($0)::bigint" }.joined(separator: ", ")
            + " FROM result WHERE NOT is_total"
        return statement.filled([
            "first": "NULL::text", "second": "NULL::text", "one": "first", "two": "NULL::text",
            "quarter": "NULL::int", "campaign": "campaign_id", "version flags": "", "units": "unit",
            "page": "OFFSET 0",
        ])
    }

    /// Columns of a report that a unit counts in.
    package static let explainedCounts = [
        "sent", "failed", "accepted", "observed", "delivered", "implied", "clicked",
        "clicks_total", "actions", "dismissed", "inbox_opened", "engaged", "clicks_without_send",
        "failed_but_clicked", "late", "test_excluded",
    ]
}
