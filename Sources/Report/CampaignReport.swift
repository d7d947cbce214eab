/// A count of a row; the names and their meaning are those of docs/reports.md.
package enum ReportCount: String, CaseIterable, Sendable {
    case sent, failed, accepted, observed, delivered, implied, clicked
    case clicksTotal = "clicks_total"
    case actions, dismissed
    case inboxOpened = "inbox_opened"
    case engaged, influenced, converted
    case testExcluded = "test_excluded"
    case late
    case clicksWithoutSend = "clicks_without_send"
    case failedButClicked = "failed_but_clicked"
    case clicksBeforeReceipts = "clicks_before_receipts"
}

/// A rate of a row; the names and their meaning are those of docs/reports.md.
package enum ReportRate: String, CaseIterable, Sendable {
    case deliveryRate = "delivery_rate"
    case ctrDelivered = "ctr_delivered"
    case ctrSent = "ctr_sent"
    case ctrAccepted = "ctr_accepted"
    case engagementRate = "engagement_rate"
    case dismissRate = "dismiss_rate"
    case influencedRate = "influenced_rate"
    case conversionRate = "conversion_rate"

    /// Of what, in words.
    package var formula: String {
        switch self {
        case .deliveryRate: "delivered of sent / sent"
        case .ctrDelivered: "clicked / delivered"
        case .ctrSent: "clicked of sent / sent"
        case .ctrAccepted: "clicked of accepted / accepted"
        case .engagementRate: "engaged / delivered"
        case .dismissRate: "dismissed, not clicked / delivered"
        case .influencedRate: "influenced / delivered"
        case .conversionRate: "converted / delivered"
        }
    }
}

/// A part of a whole, with its Wilson 95 % interval.
package struct RateValue: Equatable, Sendable {
    /// The part; nil when it hangs on a SENT that is not known.
    package let numerator: Int64?
    /// The whole; nil when it is not known.
    package let denominator: Int64?
    /// In 0…1; nil when the whole is 0 or not known.
    package let value: Double?
    /// The lower bound of the interval.
    package let low: Double?
    /// The upper bound of the interval.
    package let high: Double?
}

/// Seconds from the first receipt of a message to its first click, over the units that have both in
/// that order: percentiles with linear interpolation.
package struct TimeToOpen: Equatable, Sendable {
    package let p50: Double
    package let p90: Double
    package let p99: Double
}

/// A button of interactive notifications, and the share of the units with an action that pressed it.
package struct ActionShare: Equatable, Sendable {
    /// Nil where the events name none.
    package let category: String?
    /// Nil where the events name none.
    package let action: String?
    package let share: RateValue
    /// What they are called; nil where nobody said it.
    package var categoryLabel: String?
    package var actionLabel: String?
}

/// One row of a report, or its totals.
package struct ReportRow: Equatable, Sendable {
    /// Nil in totals over all apps.
    package var app: String?
    /// `(unattributed)` for units without one; nil in totals and where rows are not by campaign.
    package var campaign: String?
    /// The values of the dimensions asked for but campaign, in their order; nil where no event says.
    package var dimensions: [String?]
    /// What the values of category and action are called, in the order of ``dimensions``; nil elsewhere.
    package var dimensionLabels: [String?] = []
    /// In the order of ``ReportCount``; nil where not known.
    package var counts: [Int64?]
    /// In the order of ``ReportRate``.
    package var rates: [RateValue]
    /// Nil where no unit has one, or nobody looked.
    package var timeToOpen: TimeToOpen?
    /// The most pressed first; nil where nobody looked.
    package var actionShares: [ActionShare]?
    /// Names of impossible or suspect states.
    package var flags: [String]
    /// How many units were opened within each of `Schema.openLimits` of their receipt, then how many at
    /// all; nil where no unit has a time to open, or nobody looked.
    package var opened: [Int64]?
    /// What is known of the campaign beside its events; nil for totals and where nothing is.
    package var about: CampaignAbout?

    /// What the value of a dimension is called, by its place; nil where nobody said it.
    func label(_ place: Int) -> String? {
        place < dimensionLabels.count ? dimensionLabels[place] : nil
    }

    /// A count; nil where it is not known.
    package subscript(count: ReportCount) -> Int64? {
        counts[ReportCount.allCases.firstIndex(of: count)!]
    }

    /// A rate.
    package subscript(rate: ReportRate) -> RateValue {
        rates[ReportRate.allCases.firstIndex(of: rate)!]
    }
}

/// What an import said of a campaign, as it is known now: `tapline campaign import`.
package struct CampaignAbout: Equatable, Sendable {
    package let name: String?
    package let variant: String?
    package let audience: String?
    package let provider: String?
    /// RFC 3339 in the report's time zone.
    package let sentAt: String?

    /// The names of what is known, as they stand in a report.
    static let names = [
        "campaign_name", "campaign_variant", "campaign_audience", "campaign_provider",
        "campaign_sent_at",
    ]

    /// In the order of ``names``.
    var values: [String?] { [name, variant, audience, provider, sentAt] }

    /// For people.
    var text: String {
        var parts = [name].compactMap { $0 }
        if let variant { parts.append("variant \(variant)") }
        if let audience { parts.append("to \(audience)") }
        if let provider { parts.append("by \(provider)") }
        if let sentAt { parts.append("sent \(sentAt)") }
        return printable(parts.joined(separator: ", "))
    }
}

/// What was known at one moment about the messages first seen in a period.
package struct CampaignReport: Sendable {
    /// The newest stored_at that the report knows; the same `as_of` gives the same events for ever.
    package let asOf: String
    /// Everything received before this time is in the report, if it was stored by `asOf`.
    package let dataThrough: String
    /// The beginning of the period; nil without one.
    package let from: String?
    /// The end of the period, which is not in it; nil without one.
    package let to: String?
    /// The IANA time zone of dates, days and hours.
    package let timeZone: String
    /// What rows are by.
    package let by: [ReportDimension]
    /// Whether events in the period count, and not all events of messages first seen in it.
    package let isByActivity: Bool
    /// Whether it was looked at what devices did around their messages.
    package let hasJourneys: Bool
    /// Whether units of test devices count.
    package let includesTest: Bool
    /// Whether it was asked what was known in the past.
    package let isHistoric: Bool
    /// Over everything, rows left out by `--top` included.
    package let totals: ReportRow
    /// In their order.
    package var rows: [ReportRow]
    /// Whether all events are soon read; false where nobody asked.
    package var isOfFewEvents = false
    /// Whether it was made of cells, or of some events, and not of all.
    var isFromCells = false
    /// The same stamp and the same options give the same counts; empty where nobody asked for one.
    package var stamp = ""

    /// The dimensions whose values have labels: the name of the label, and its place.
    var labelled: [(name: String, place: Int)] {
        by.filter { $0 != .campaign }.enumerated().compactMap { place, dimension in
            dimension == .category || dimension == .action
                ? ("\(dimension.rawValue)_label", place) : nil
        }
    }

    /// What the period chooses, as it stands in JSON.
    package var cohort: String { isByActivity ? "activity" : "first_seen" }

    /// The names of the dimensions but campaign, as in ``ReportRow/dimensions``.
    package var dimensionNames: [String] { by.filter { $0 != .campaign }.map(\.rawValue) }

    /// What the report is of, for people: names and texts.
    var facts: [(name: String, text: String)] {
        let period =
            switch (from, to) {
            case (nil, nil): "everything"
            case (let from?, nil): "from \(from)"
            case (nil, let to?): "before \(to)"
            case (let from?, let to?): "\(from) to before \(to)"
            }
        let left = totals[.testExcluded].map { "\($0)" } ?? "n/a"
        let late = totals[.late].map { "\($0)" } ?? "n/a"
        return [
            ("as_of", asOf + (isHistoric ? ", test devices as marked today" : "")),
            ("data_through", dataThrough),
            ("period", period),
            ("tz", timeZone),
            isByActivity
                ? ("activity", "what happened in the period")
                : ("cohort", "messages first seen in the period, with all that came of them"),
            ("test units", includesTest ? "counted" : "\(left) left out"),
            ("late events", "\(late), received more than 24 h after they happened"),
        ]
    }

    /// Names the app only where there are several.
    private var hasApps: Bool { Set(rows.map(\.app)).count > 1 }

    /// What the labels of a row are of.
    var labelNames: [String] { (hasApps ? ["app"] : []) + by.map(\.rawValue) }

    /// The name of a row, in parts that are safe on a terminal.
    func labels(_ row: ReportRow) -> [String] {
        var others = row.dimensions.indices.map { index -> String? in
            guard let value = row.dimensions[index], index < row.dimensionLabels.count,
                let label = row.dimensionLabels[index]
            else { return row.dimensions[index] }
            return "\(label) (\(value))"
        }.makeIterator()
        let values = by.map { $0 == .campaign ? row.campaign : others.next() ?? nil }
        return ((hasApps ? [row.app] : []) + values).map { printable($0 ?? "(unknown)") }
    }

    /// The labels of a row as one, with the name of its campaign before them.
    func name(of row: ReportRow) -> String {
        let labels = labels(row).joined(separator: " ")
        guard let about = row.about, let name = about.name else { return labels }
        let variant = about.variant.map { " \($0)" } ?? ""
        return printable("\(name)\(variant)") + " (\(labels))"
    }
}
