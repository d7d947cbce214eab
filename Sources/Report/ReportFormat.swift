/// How a report is written.
package enum ReportFormat: String, CaseIterable, Sendable {
    case table, json, ndjson, csv
}

extension CampaignReport {
    /// The report as text in UTF-8, with a newline at its end.
    ///
    /// - Parameter style: Puts parts of a table in a colour: `1` bold, `33` yellow, `36` cyan.
    package func render(
        _ format: ReportFormat, style: (String, Int) -> String = { text, _ in text }
    ) -> [UInt8] {
        switch format {
        case .table: Array(table(style: style).utf8)
        case .json: Array(json().utf8)
        case .ndjson: Array(ndjson().utf8)
        case .csv: Array(csv().utf8)
        }
    }
}
