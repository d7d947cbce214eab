/// What to report; the same for the command line and HTTP.
package struct ReportOptions: Sendable {
    /// Messages first seen at or after this time.
    package var from: ReportTime?
    /// Messages first seen before this time.
    package var to: ReportTime?
    /// The IANA time zone of dates, days and hours.
    package var timeZone = "UTC"
    /// Only this app.
    package var app: String?
    /// Only this campaign; `(unattributed)` for units without one.
    package var campaign: String?
    /// One or two different dimensions.
    package var by: [ReportDimension] = [.campaign]
    /// Whether events in the period count, and not all events of messages first seen in it.
    package var isByActivity = false
    /// Whether to find out what devices did around their messages.
    package var journeys = ReportJourneys.auto
    /// How long after a click a conversion is its.
    package var conversionHours = 24
    /// What was known at that time; nil means now.
    package var asOf: ReportTime?
    /// Whether units of test devices count.
    package var includesTest = false
    /// What rows are sorted by; nil means time, or else `delivered`.
    package var sort: ReportSort?
    /// How many rows at most; totals are over all all the same.
    package var top: Int?
    /// How many rows are left out before the first one.
    package var offset = 0
    /// The oldest received_at still spooled, in microseconds since 1970; nil if nothing is.
    package var dataThrough: Int64?
    /// Whether all is computed from the events, as for a past time: slow, and the same.
    package var isFromEvents = false

    /// Whether rows are sorted by their keys alone.
    var isByKeys: Bool {
        switch sort {
        case .count, .rate: false
        case .dimension, .app: true
        case nil: by.contains(where: \.isTime)
        }
    }
    /// Whether rows are sorted by how many units were delivered, then by their keys.
    var isByDelivered: Bool { sort == .count(.delivered) || sort == nil && !isByKeys }

    /// Everything, by campaign.
    package init() {}

    /// Sets an option as written on a command line or in a URL, whose names are the same.
    ///
    /// - Parameters:
    ///   - name: Without dashes in front: `from`, `to`, `tz`, `app`, `campaign`, `by`, `as-of`,
    ///     `by-activity`, `journeys`, `conversion-window`, `include-test`, `sort` or `top`.
    ///   - value: Its text; of a flag empty, `true`, `1`, `false` or `0`.
    /// - Throws: ``ReportError/invalidOption(name:value:reason:)``; nothing is set then.
    package mutating func set(_ name: String, _ value: String) throws(ReportError) {
        func invalid(_ reason: String) -> ReportError {
            .invalidOption(name: name, value: value, reason: reason)
        }
        func time() throws(ReportError) -> ReportTime {
            guard let time = ReportTime(value) else {
                throw invalid(ReportTime.expected)
            }
            return time
        }
        func flag() throws(ReportError) -> Bool {
            guard let isOn = ["": true, "true": true, "1": true, "false": false, "0": false][value]
            else { throw invalid("not true or false") }
            return isOn
        }
        switch name {
        case "from": from = try time()
        case "to": to = try time()
        case "as-of", "as_of": asOf = try time()
        case "tz": timeZone = value
        case "app": app = value
        case "campaign": campaign = value
        case "by":
            let names = value.split(separator: ",", omittingEmptySubsequences: false).map(
                String.init)
            let dimensions = names.compactMap(ReportDimension.init)
            let known = ReportDimension.allCases.map(\.rawValue).joined(separator: ", ")
            guard dimensions.count == names.count else { throw invalid("not of \(known)") }
            guard dimensions.count <= 2, Set(dimensions).count == dimensions.count else {
                throw invalid("not one or two different dimensions")
            }
            by = dimensions
        case "include-test", "include_test": includesTest = try flag()
        case "by-activity", "by_activity": isByActivity = try flag()
        case "journeys":
            guard let journeys = ReportJourneys(rawValue: value) else {
                throw invalid("not auto, always or never")
            }
            self.journeys = journeys
        case "conversion-window", "conversion_window":
            guard case .some(let hours) = ReportTime.hours(value), hours > 0 else {
                throw invalid("not a number of hours or days, as 24h or 7d")
            }
            conversionHours = hours
        case "sort":
            guard let sort = ReportSort(value) else {
                throw invalid("not the name of a count, a rate or a dimension")
            }
            self.sort = sort
        case "top":
            guard let top = Int(value), top > 0 else { throw invalid("not a number above 0") }
            self.top = top
        default: throw invalid("no such option")
        }
    }
}

/// Whether a report has what needs the events of devices around each message: influenced, converted,
/// time to open.
package enum ReportJourneys: String, Sendable {
    /// Where there are few events, so that it is soon done.
    case auto
    /// However long it takes.
    case always
    /// Never.
    case never

    /// How many stored events are few: nobody who did not ask for it should wait.
    static let fewEvents = 300_000
    /// The same of a report of one campaign, for which the units of a few devices are looked at.
    static let fewEventsOfCampaign = 3_000_000
}

/// What rows are sorted by: numbers fall, names rise.
package enum ReportSort: Equatable, Sendable {
    /// A count, the largest first.
    case count(ReportCount)
    /// A rate, the largest first and those without one last.
    case rate(ReportRate)
    /// A dimension, in the order of its text.
    case dimension(ReportDimension)
    /// The app, in the order of its text.
    case app

    /// Reads a name as it stands in a report.
    package init?(_ name: String) {
        if let count = ReportCount(rawValue: name) {
            self = .count(count)
        } else if let rate = ReportRate(rawValue: name) {
            self = .rate(rate)
        } else if let dimension = ReportDimension(rawValue: name) {
            self = .dimension(dimension)
        } else if name == "campaign_id" {
            self = .dimension(.campaign)
        } else if name == "app" {
            self = .app
        } else {
            return nil
        }
    }
}
