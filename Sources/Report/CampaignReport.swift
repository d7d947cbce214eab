/// A count of a row; the names and their meaning are those of docs/reports.md.
package enum ReportCount: String, CaseIterable, Sendable {
    case sent, failed, accepted, observed, delivered, implied, clicked
    case clicksTotal = "clicks_total"
    case actions, dismissed
    case inboxOpened = "inbox_opened"
    case engaged
    case testExcluded = "test_excluded"
    case late
    case clicksWithoutSend = "clicks_without_send"
    case failedButClicked = "failed_but_clicked"
}

/// A rate of a row; the names and their meaning are those of docs/reports.md.
package enum ReportRate: String, CaseIterable, Sendable {
    case deliveryRate = "delivery_rate"
    case ctrDelivered = "ctr_delivered"
    case ctrSent = "ctr_sent"
    case ctrAccepted = "ctr_accepted"
    case engagementRate = "engagement_rate"
    case dismissRate = "dismiss_rate"
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

/// One row of a report, or its totals.
package struct ReportRow: Equatable, Sendable {
    /// Nil in totals over all apps.
    package var app: String?
    /// `(unattributed)` for units without one; nil in totals and where rows are not by campaign.
    package var campaign: String?
    /// The values of the dimensions asked for but campaign, in their order; nil where no event says.
    package var dimensions: [String?]
    /// In the order of ``ReportCount``; nil where not known.
    package var counts: [Int64?]
    /// In the order of ``ReportRate``.
    package var rates: [RateValue]
    /// Names of impossible or suspect states.
    package var flags: [String]

    /// A count; nil where it is not known.
    package subscript(count: ReportCount) -> Int64? {
        counts[ReportCount.allCases.firstIndex(of: count)!]
    }

    /// A rate.
    package subscript(rate: ReportRate) -> RateValue {
        rates[ReportRate.allCases.firstIndex(of: rate)!]
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
    /// Whether units of test devices count.
    package let includesTest: Bool
    /// Whether it was asked what was known in the past.
    package let isHistoric: Bool
    /// Over everything, rows left out by `--top` included.
    package let totals: ReportRow
    /// In their order.
    package let rows: [ReportRow]

    /// The names of the dimensions but campaign, as in ``ReportRow/dimensions``.
    package var dimensionNames: [String] { by.filter { $0 != .campaign }.map(\.rawValue) }
}
