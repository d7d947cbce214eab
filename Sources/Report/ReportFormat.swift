/// How a report is written.
package enum ReportFormat: String, CaseIterable, Sendable {
    case table, json, csv
}

extension CampaignReport {
    /// The report as text in UTF-8, with a newline at its end.
    package func render(_ format: ReportFormat) -> [UInt8] {
        switch format {
        case .table: Array(table().utf8)
        case .json: Array(json().utf8)
        case .csv: Array(csv().utf8)
        }
    }
}
