import HTTPServer
import Ingest
import Platform
import Report

/// What a path of reports gives.
package enum ReportKind: Equatable, Sendable {
    /// All campaigns of an app.
    case campaigns
    /// One campaign.
    case campaign(String)
    /// Campaigns side by side.
    case comparison
}

/// The parameters of a request for a report: those of the command line by their names, and the page.
package struct ReportRequest: Sendable {
    /// Rows of an answer where the request does not say.
    static let limitDefault = 1000
    /// Rows of an answer at most, which bounds the memory of each.
    package static let limitMax = 5000
    private static let offsetMax = 100_000_000
    private static let comparedMax = 26

    let kind: ReportKind
    /// What the report is of, without its pages.
    package var options = ReportOptions()
    var format = ReportFormat.json
    /// Whether the answer is a page to look at, in place of ``format``.
    private(set) var isPage = false
    /// The `as_of` of the earlier report that this one is held against.
    private(set) var since: ReportTime?
    var limit = limitDefault
    /// The campaigns to compare.
    package private(set) var campaigns: [String] = []
    private(set) var rate: String?
    /// What was asked for, by the names of the command line, in their order.
    package private(set) var parameters: [(name: String, value: String)] = []

    private static let names = [
        "from", "to", "tz", "app", "campaign", "by", "by-activity", "as-of", "conversion-window",
        "journeys", "include-test", "sort", "top", "format", "limit", "offset", "since",
    ]
    private static let comparisonNames = [
        "campaign", "rate", "from", "to", "tz", "app", "as-of", "include-test",
    ]
    private static let flags = ["by-activity", "include-test"]

    /// The formats of answers, each with its media type.
    private static let types: KeyValuePairs = [
        "json": "application/json", "ndjson": "application/x-ndjson",
        "csv": "text/csv; charset=utf-8", "html": "text/html; charset=utf-8",
    ]

    /// Reads the query.
    ///
    /// - Parameter app: The app of the key, the only one that the answer is about.
    /// - Throws: 400 that names the parameter, its value and what is allowed; 403 for another app.
    package init(
        _ kind: ReportKind, _ items: [(name: String, value: String)], app: String
    ) throws(ServiceRefusal) {
        self.kind = kind
        options.app = app
        if case .campaign(let id) = kind { options.campaign = id }
        let isComparison = kind == .comparison
        var known = isComparison ? Self.comparisonNames : Self.names
        if case .campaign = kind { known.removeAll { $0 == "campaign" } }
        for (written, value) in items {
            // `as_of` is `as-of`.
            let name = written.replacing("_", with: "-")
            guard known.contains(name) else { throw .unknownParameter(written, known) }
            let mayRepeat = isComparison && name == "campaign"
            guard mayRepeat || !parameters.contains(where: { $0.name == name }) else {
                throw .repeatedParameter(name)
            }
            guard !value.contains("\0") else { throw .parameter(name, value, "has a NUL") }
            guard !value.isEmpty || Self.flags.contains(name) else {
                throw .parameter(name, value, "is empty")
            }
            try set(name, value)
            parameters.append((name, value))
        }
        try checkTogether()
        guard isComparison else { return }
        guard (2...Self.comparedMax).contains(campaigns.count),
            Set(campaigns).count == campaigns.count
        else {
            throw .parameter(
                "campaign", campaigns.joined(separator: " "),
                "not 2 to \(Self.comparedMax) different campaigns, each as campaign=ID")
        }
    }

    /// What is whole has no pages, and what changed is JSON.
    private func checkTogether() throws(ServiceRefusal) {
        guard isPage || since != nil else { return }
        let whole = isPage ? "format=html" : "since"
        for (name, value) in parameters {
            if name == "limit" || name == "offset" {
                throw .parameter(name, value, "there are no pages with \(whole)")
            }
            if name == "format", since != nil, value != "json" {
                throw .parameter(name, value, "not json, which is all there is with since")
            }
        }
    }

    private mutating func set(_ name: String, _ value: String) throws(ServiceRefusal) {
        switch name {
        case "app":
            guard value == options.app else { throw .wrongApp(options.app ?? "", asked: value) }
        case "campaign" where kind == .comparison: campaigns.append(value)
        case "rate":
            guard ReportRate(rawValue: value) != nil else {
                throw .parameter(
                    name, value,
                    "not of \(ReportRate.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            rate = value
        case "format":
            guard Self.types.contains(where: { $0.key == value }) else {
                throw .parameter(
                    name, value, "not of \(Self.types.map(\.key).joined(separator: ", "))")
            }
            isPage = value == "html"
            format = ReportFormat(rawValue: value) ?? .json
        case "since":
            guard let time = ReportTime(value) else {
                throw .parameter(name, value, ReportTime.expected)
            }
            since = time
        case "limit": limit = try Self.number(name, value, 1...Self.limitMax)
        case "offset": options.offset = try Self.number(name, value, 0...Self.offsetMax)
        default:
            do throws(ReportError) {
                try options.set(name, value)
            } catch {
                throw ServiceRefusal(error)
            }
        }
    }

    private static func number(
        _ name: String, _ value: String, _ range: ClosedRange<Int>
    ) throws(ServiceRefusal) -> Int {
        guard let number = Int(value), range.contains(number) else {
            throw .parameter(
                name, value, "not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// The media type of the answer.
    var mediaType: String {
        let name = isPage ? "html" : format.rawValue
        return Self.types.first { $0.key == name }?.value ?? "application/json"
    }

    /// How many rows this page has at most.
    package var rowsMax: Int {
        options.top.map { max(0, min(limit, $0 - options.offset)) } ?? limit
    }

    /// The target of the page after this one, as known at the same time and for the same period, so
    /// that all pages together have each row once.
    func next(after report: CampaignReport, path: String) -> String {
        let fixed = ["from", "to", "as-of", "offset", "journeys"]
        var items = parameters.filter { !fixed.contains($0.name) }
        if let from = report.from { items.append(("from", from)) }
        if let to = report.to { items.append(("to", to)) }
        items.append(("as-of", report.asOf))
        items.append(("journeys", report.hasJourneys ? "always" : "never"))
        items.append(("offset", "\(options.offset + rowsMax)"))
        let query = items.map { "\($0.name)=\(percentEncoded($0.value))" }
        return path + "?" + query.joined(separator: "&")
    }
}

extension ServiceRefusal {
    /// A parameter with a value that means nothing.
    static func parameter(_ name: String, _ value: String, _ reason: String) -> ServiceRefusal {
        var refusal = ServiceRefusal(
            400, "invalid_parameter",
            "parameter \"\(name)\" has value \(shown(value.utf8)): \(reason)")
        refusal.words = [("parameter", name), ("value", value)]
        return refusal
    }

    static func unknownParameter(_ name: String, _ known: [String]) -> ServiceRefusal {
        var refusal = ServiceRefusal(
            400, "unknown_parameter",
            "there is no parameter \(shown(name.utf8)); there are \(known.joined(separator: ", "))")
        refusal.words = [("parameter", name)]
        return refusal
    }

    static func repeatedParameter(_ name: String) -> ServiceRefusal {
        var refusal = ServiceRefusal(
            400, "repeated_parameter", "parameter \"\(name)\" is given more than once")
        refusal.words = [("parameter", name)]
        return refusal
    }

    static func wrongApp(_ app: String, asked: String) -> ServiceRefusal {
        ServiceRefusal(
            403, "wrong_app",
            "the key is of app \(shown(app.utf8)) and sees nothing of \(shown(asked.utf8))")
    }

    static func noCampaign(_ id: String, app: String) -> ServiceRefusal {
        ServiceRefusal(
            404, "no_campaign",
            "app \(shown(app.utf8)) has no event of campaign \(shown(id.utf8))")
    }

    static func tooManyReports(limit: Int) -> ServiceRefusal {
        ServiceRefusal(
            503, "too_many_reports", "\(limit) reports wait already", details: [("limit", limit)],
            retryAfter: jittered(2))
    }

    static func reportTimeout(milliseconds: Int) -> ServiceRefusal {
        ServiceRefusal(
            503, "report_timeout",
            "the report took longer than report.timeout, which is \(milliseconds) ms: ask for a "
                + "shorter period, or without journeys",
            details: [("limit_milliseconds", milliseconds)], retryAfter: jittered(30))
    }

    static var databaseAway: ServiceRefusal {
        ServiceRefusal(
            503, "database_unavailable", "the database does not answer", retryAfter: jittered(2))
    }

    /// The answer to an option that has no meaning, or to a report that could not be made; its cause is
    /// in the log.
    init(_ error: ReportError) {
        switch error {
        case .invalidOption(let name, let value, let reason):
            self = .parameter(name, value, reason)
        case .database, .unexpectedAnswer: self = .databaseAway
        }
    }
}
