import Platform
import Postgres

/// Reports that are made of sums (cells) held against the same ones made of the events.
package struct ReportProof: Sendable {
    /// How many reports were made both ways.
    package private(set) var reports = 0
    /// How many rows they had together, as made of the events.
    package private(set) var rows = 0
    /// What is not the same, in words; ``differencesMax`` at most.
    package private(set) var differences: [String] = []
    /// Reports that are made of events anyway, in words, so that there was nothing to compare.
    package private(set) var unproved: [String] = []
    /// How many rows are not the same.
    package private(set) var differing = 0

    static let differencesMax = 10
    /// Of how many campaigns there is a report of each, those with the most delivered.
    static let campaignsMax = 3

    /// Makes reports by each dimension, by campaign and day, of each of a few campaigns, by activity and with
    /// journeys, all of them both ways and in one snapshot of the database; blocks while all events are read
    /// that often.
    ///
    /// - Parameters:
    ///   - connection: As for ``CampaignReport/load(_:on:plans:)``.
    ///   - progress: Called with how many reports are done, and of how many.
    /// - Throws: ``ReportError``.
    package static func run(
        _ connection: borrowing PostgresConnection, progress: (Int, Int) -> Void = { _, _ in }
    ) throws(ReportError) -> ReportProof {
        var questions = ReportDimension.allCases.map { question(by: [$0]) }
        questions.append(question(by: [.campaign, .day]))
        questions.append(question { $0.isByActivity = true })
        questions.append(question { $0.journeys = .always })
        return try CampaignReport.inSnapshot(of: connection) { connection throws(ReportError) in
            let most = question { $0.top = campaignsMax }
            for row in try ReportReader(options: most).read(connection).rows {
                questions.append(question { ($0.app, $0.campaign) = (row.app, row.campaign) })
            }
            var proof = ReportProof()
            for (index, options) in questions.enumerated() {
                progress(index, questions.count)
                let fromCells = try ReportReader(options: options).read(connection)
                // Where the sums cannot answer, it was made of events already.
                guard fromCells.isFromCells else {
                    proof.unproved.append(name(of: options))
                    continue
                }
                var options = options
                options.isFromEvents = true
                proof.compare(fromCells, try ReportReader(options: options).read(connection))
            }
            return proof
        }
    }

    private static func question(
        by: [ReportDimension] = [.campaign], _ set: (inout ReportOptions) -> Void = { _ in }
    ) -> ReportOptions {
        var options = ReportOptions()
        options.by = by
        options.journeys = .never
        options.includesTest = true
        set(&options)
        return options
    }

    private static func name(of options: ReportOptions) -> String {
        "by " + options.by.map(\.rawValue).joined(separator: ",")
            + (options.isByActivity ? " by activity" : "")
            + (options.journeys == .always ? " with journeys" : "")
            + (options.campaign.map { " of \(printable($0))" } ?? "")
    }

    private mutating func compare(_ cells: CampaignReport, _ events: CampaignReport) {
        reports += 1
        rows += events.rows.count
        var rest: [[String?]: ReportRow] = [:]
        for row in cells.rows { rest[Self.key(row)] = row }
        for row in [events.totals] + events.rows {
            let isTotals = Self.key(row) == Self.key(events.totals)
            let other = isTotals ? cells.totals : rest.removeValue(forKey: Self.key(row))
            if other != row { note(by: events.by, fromCells: other, fromEvents: row) }
        }
        for row in rest.values { note(by: events.by, fromCells: row, fromEvents: nil) }
    }

    /// What tells a row from the others of its report.
    private static func key(_ row: ReportRow) -> [String?] {
        [row.app, row.campaign] + row.dimensions
    }

    private mutating func note(
        by: [ReportDimension], fromCells: ReportRow?, fromEvents: ReportRow?
    ) {
        differing += 1
        guard differences.count < Self.differencesMax, let row = fromEvents ?? fromCells else {
            return
        }
        let name = Self.key(row).compactMap { $0 }.map(printable).joined(separator: ", ")
        var text = "by " + by.map(\.rawValue).joined(separator: ",")
        text += ": \(name.isEmpty ? "in all" : name): "
        let count = ReportCount.allCases.first { (name: ReportCount) in
            fromCells?[name] != fromEvents?[name]
        }
        if let count {
            text += "\(count.rawValue) is \(grouped(fromCells?[count])) by the sums, "
            text += "\(grouped(fromEvents?[count])) by the events"
        } else {
            text += "other rates or flags by the sums than by the events"
        }
        differences.append(text)
    }

    /// One JSON object.
    package var json: String {
        func list(_ texts: [String]) -> String {
            "[" + texts.map { JSONString.quoted($0) }.joined(separator: ",") + "]"
        }
        return "{\"compared\":\(reports),\"rows\":\(rows),\"differing\":\(differing),"
            + "\"differences\":\(list(differences)),\"not_compared\":\(list(unproved))}"
    }

    /// For people.
    package var table: String {
        var text = differences.map { "\($0)\n" }.joined()
        if differing > 0 {
            text += "REPORTS DIFFER in \(grouped(Int64(differing))) rows: run \"tapline rebuild\"\n"
        } else if reports > 0 {
            text += "\(reports) reports from sums are those from events, "
            text += "all \(grouped(Int64(rows))) rows\n"
        }
        for name in unproved { text += "made of events anyway, nothing to compare: \(name)\n" }
        return text
    }
}
