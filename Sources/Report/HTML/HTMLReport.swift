import Postgres

/// A report as one page to look at: XHTML with its style and its plots inside, no script, and nothing
/// to fetch.
///
/// Its parts are reports of one snapshot of the database, so they agree.
package struct HTMLReport: Sendable {
    /// What was asked for.
    let main: CampaignReport
    /// By day; by hour where that is a short time.
    let byTime: CampaignReport
    /// By hour: of the clicks themselves, or of when the messages were first seen.
    let byHour: CampaignReport
    let byPlatform: CampaignReport
    /// The app and the campaign asked for, if any.
    let scope: [String]

    /// Days up to which an hour is wide enough to see.
    private static let fewDays = 3

    /// Reads all of it in one snapshot; blocks until it is there.
    ///
    /// - Parameters:
    ///   - options: What to report; what rows are by is of the intervals and the table.
    ///   - connection: Outside of a transaction, and so again afterwards, whatever happens.
    /// - Throws: ``ReportError``; nothing in the database has changed.
    package static func load(
        _ options: ReportOptions, on connection: borrowing PostgresConnection
    ) throws(ReportError) -> HTMLReport {
        try CampaignReport.inSnapshot(of: connection) { connection throws(ReportError) in
            let main = try ReportReader(options: options).read(connection)
            func part(
                _ dimension: ReportDimension, isByActivity: Bool = options.isByActivity
            ) -> ReportReader {
                var part = options
                part.by = [dimension]
                part.isByActivity = isByActivity
                part.journeys = .never
                part.sort = nil
                part.top = nil
                return ReportReader(options: part)
            }
            var byTime = try part(.day).read(connection)
            if TimePlot(byTime).slots <= fewDays { byTime = try part(.hour).read(connection) }
            // The time of a click is of an event. Where all of them are soon read, or somebody would
            // wait, they are; else cells know when its message was first seen.
            let hasClicks =
                options.isByActivity || options.journeys == .always
                || main.hasJourneys && main.isOfFewEvents
            return HTMLReport(
                main: main, byTime: byTime,
                byHour: try part(.hour, isByActivity: hasClicks).read(connection),
                byPlatform: try part(.platform).read(connection),
                scope: [options.app, options.campaign].compactMap { $0 })
        }
    }

    /// The page in UTF-8.
    package func render() -> [UInt8] { Array(page.source.utf8) }

    /// Rows that a plot shows at most.
    static let plottedRows = 20

    private var page: Markup {
        let what = scope.isEmpty ? "all campaigns" : scope.joined(separator: ", ")
        let platforms: Markup = "<div class=\"pair\">\(platformFigures.map(\.markup))</div>\n"
        return """
            <!DOCTYPE html>
            <html xmlns="http://www.w3.org/1999/xhtml" lang="en">
            <head>
            <meta charset="utf-8"/>
            <meta name="viewport" content="width=device-width, initial-scale=1"/>
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
            style-src 'unsafe-inline'"/>
            <title>Push engagement: \(what), as of \(main.asOf)</title>
            \(PageStyle.text)
            </head>
            <body>
            <header>
            <h1>Push engagement: \(what)</h1>
            <dl class="facts">\(facts)</dl>
            \(tiles)</header>
            <main>
            \(flags)\(funnel.markup)\(intervals.markup)\(overTime.markup)\(heatMap.markup)\
            \(openCurve.markup)\(platforms)\(rates)\(allRows)</main>
            </body>
            </html>

            """
    }

    private var facts: [Markup] {
        main.facts.map { "<dt>\($0.name)</dt><dd>\($0.text)</dd>\n" }
    }

    private var tiles: Markup {
        let totals = main.totals
        func tile(_ value: String, _ name: String, _ note: String) -> Markup {
            "<li><span>\(name)</span><b>\(value)</b><span>\(note)</span></li>\n"
        }
        func tile(_ rate: ReportRate, _ name: String) -> Markup {
            let value = totals[rate]
            return tile(
                percentText(value.value), name,
                value.value == nil ? rate.formula : "95\u{A0}%: \(intervalText(value))")
        }
        return """
            <ul class="tiles">
            \(tile(.ctrDelivered, "click-through"))\(tile(.engagementRate, "engagement"))\
            \(tile(grouped(totals[.delivered]), "delivered", "messages on devices"))\
            \(tile(grouped(totals[.clicked]), "clicked",
                "in \(grouped(totals[.clicksTotal])) clicks"))\
            \(tile(totals.timeToOpen.map { duration($0.p50) } ?? "n/a", "time to open",
                "median, from receipt to first click"))\
            </ul>

            """
    }

    /// What is suspect, first of all.
    private var flags: Markup {
        let all = [(main.totals, "totals")] + main.rows.map { ($0, main.name(of: $0)) }
        let seen = ReportFlag.allCases.compactMap { flag -> Markup? in
            let names = all.filter { $0.0.flags.contains(flag.rawValue) }.map(\.1)
            guard !names.isEmpty else { return nil }
            let more = names.count > 8 ? ", and \(names.count - 8) more" : ""
            let shown = names.prefix(8).joined(separator: ", ") + more
            return """
                <dt>\(flag.rawValue)</dt><dd>\(flag.meaning) \(flag.advice)</dd>
                <dd class="rows">\(shown)</dd>

                """
        }
        guard !seen.isEmpty else { return "" }
        return """
            <section id="flags"><h2>What is suspect</h2>
            <dl class="flags">
            \(seen)</dl></section>

            """
    }

    /// Every rate of the totals, with its formula.
    private var rates: Markup {
        let rows = ReportRate.allCases.map { rate -> [String] in
            let value = main.totals[rate]
            return [
                rate.rawValue, rate.formula, grouped(value.numerator), grouped(value.denominator),
                percentText(value.value), intervalText(value),
            ]
        }
        let table = NumberTable(
            caption: "Rates over everything",
            heads: ["rate", "formula", "numerator", "denominator", "value", "95\u{A0}% interval"],
            rows: rows, names: 2)
        return """
            <section id="rates"><h2>Rates</h2>
            <p class="note">A message on a device counts once in each, however often it was tapped; \
            silent pushes count in delivery_rate alone. Intervals are Wilson's, 95\u{A0}%, not corrected \
            for looking repeatedly. Where the whole is 0 or not known, a rate is n/a.</p>
            \(table.markup)</section>

            """
    }

    private var allRows: Markup {
        let names = main.labelNames
        let hasNames = main.rows.contains { $0.about != nil }
        let about = hasNames ? ["name", "variant", "audience"] : []
        func texts(_ row: ReportRow) -> [String] {
            about.isEmpty
                ? [] : [row.about?.name, row.about?.variant, row.about?.audience].map { $0 ?? "" }
        }
        let counts: [ReportCount] = [
            .sent, .delivered, .clicked, .clicksTotal, .inboxOpened, .engaged,
        ]
        let shown: [ReportRate] = [.ctrDelivered, .ctrSent, .engagementRate]
        func cells(_ row: ReportRow) -> [String] {
            counts.map { grouped(row[$0]) }
                + shown.flatMap { [percentText(row[$0].value), intervalText(row[$0])] }
                + [row.flags.joined(separator: " ")]
        }
        let table = NumberTable(
            caption: "Every row, and the totals over everything",
            heads: names + about + counts.map(\.rawValue)
                + shown.flatMap { [$0.rawValue, "interval"] } + ["flags"],
            rows: main.rows.map { main.labels($0) + texts($0) + cells($0) }
                + [
                    ["totals"] + Array(repeating: "", count: names.count + about.count - 1)
                        + cells(main.totals)
                ],
            names: names.count + about.count)
        return "<section id=\"rows\" class=\"long\"><h2>By \(names.joined(separator: ", "))</h2>\n"
            + "\(table.markup)</section>\n"
    }
}
