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
    /// How many rows are not the same.
    package private(set) var differing = 0

    static let differencesMax = 10

    /// Makes a report by each dimension, and one by campaign and day, both ways and in one snapshot of the
    /// database; blocks while all events are read that often.
    ///
    /// - Parameters:
    ///   - connection: As for ``CampaignReport/load(_:on:plans:)``.
    ///   - progress: Called with how many reports are done, and of how many.
    /// - Throws: ``ReportError``.
    package static func run(
        _ connection: borrowing PostgresConnection, progress: (Int, Int) -> Void = { _, _ in }
    ) throws(ReportError) -> ReportProof {
        let questions = ReportDimension.allCases.map { [$0] } + [[.campaign, .day]]
        return try CampaignReport.inSnapshot(of: connection) { connection throws(ReportError) in
            var proof = ReportProof()
            for (index, by) in questions.enumerated() {
                progress(index, questions.count)
                var options = ReportOptions()
                options.by = by
                options.journeys = .never
                options.includesTest = true
                let fromCells = try ReportReader(options: options).read(connection)
                options.isFromEvents = true
                let fromEvents = try ReportReader(options: options).read(connection)
                proof.compare(fromCells, fromEvents)
            }
            return proof
        }
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
        let texts = differences.map { JSONString.quoted($0) }.joined(separator: ",")
        return "{\"compared\":\(reports),\"rows\":\(rows),\"differing\":\(differing),"
            + "\"differences\":[\(texts)]}"
    }

    /// For people.
    package var table: String {
        if differing == 0 {
            return "\(reports) reports from sums are those from events, "
                + "all \(grouped(Int64(rows))) rows\n"
        }
        return differences.map { "\($0)\n" }.joined()
            + "REPORTS DIFFER in \(grouped(Int64(differing))) rows: run \"tapline rebuild\"\n"
    }
}
