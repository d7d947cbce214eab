import Platform
import Report

/// The campaigns of the live page: the largest of an app, and what is odd about them.
struct LiveBoard: Sendable {
    /// Something odd about a campaign.
    struct Flag: Hashable, Sendable {
        let campaign: String
        let flag: ReportFlag
    }

    private static let rowsShown = 10
    private static let rowsRead = 100

    /// The totals and the largest campaigns.
    let report: CampaignReport
    /// Of some more campaigns than those, the largest campaign's first.
    let flags: [Flag]

    static func options(_ app: String) -> ReportOptions {
        var options = ReportOptions()
        options.app = app
        options.top = rowsRead
        // It needs no event to be read, so it costs little however often it is made.
        options.journeys = .never
        return options
    }

    init(_ report: CampaignReport) {
        flags = report.rows.flatMap { row in
            row.flags.compactMap(ReportFlag.init).map {
                Flag(campaign: row.campaign ?? "", flag: $0)
            }
        }
        var report = report
        report.rows = Array(report.rows.prefix(Self.rowsShown))
        self.report = report
    }

    /// The flags with their sentences, the newest first.
    static func json(_ flags: [(flag: Flag, since: Microseconds)]) -> String {
        let newest = flags.enumerated().sorted {
            ($1.element.since, $0.offset) < ($0.element.since, $1.offset)
        }
        let items = newest.prefix(rowsShown).map { item in
            let (flag, since) = item.element
            return "{\"campaign_id\":\(JSONString.quoted(flag.campaign)),"
                + "\"flag\":\"\(flag.flag.rawValue)\",\"since\":\"\(Clock.rfc3339(since))\","
                + "\"meaning\":\(JSONString.quoted(flag.flag.meaning)),"
                + "\"advice\":\(JSONString.quoted(flag.flag.advice))}"
        }
        return "[\(items.joined(separator: ","))]"
    }
}
