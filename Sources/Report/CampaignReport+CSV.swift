extension CampaignReport {
    /// A line of names and a line a row (RFC 4180, but with plain newlines); no totals, so that
    /// columns can be added up.
    func csv() -> String {
        var names = ["app", "campaign_id"] + dimensionNames + labelled.map(\.name)
        names += ReportCount.allCases.map(\.rawValue)
        for rate in ReportRate.allCases.map(\.rawValue) {
            names += [rate, rate + "_low", rate + "_high"]
            names += [rate + "_numerator", rate + "_denominator"]
        }
        names += ["time_to_open_p50", "time_to_open_p90", "time_to_open_p99", "flags"]
        names += CampaignAbout.names
        let lines = [names] + rows.map(fields)
        return lines.map { $0.map(field).joined(separator: ",") + "\n" }.joined()
    }

    private func fields(_ row: ReportRow) -> [String] {
        var fields = [row.app ?? "", row.campaign ?? ""] + row.dimensions.map { $0 ?? "" }
        fields += labelled.map { row.label($0.place) ?? "" }
        fields += row.counts.map(text)
        for rate in row.rates {
            fields += [text(rate.value), text(rate.low), text(rate.high)]
            fields += [text(rate.numerator), text(rate.denominator)]
        }
        let open = row.timeToOpen
        fields += [text(open?.p50), text(open?.p90), text(open?.p99)]
        fields.append(row.flags.joined(separator: " "))
        fields += row.about?.values.map { $0 ?? "" } ?? CampaignAbout.names.map { _ in "" }
        return fields
    }

    private func text(_ value: (some CustomStringConvertible)?) -> String {
        value?.description ?? ""
    }

    private func field(_ text: String) -> String {
        let isPlain = !text.unicodeScalars.contains { ",\"\r\n".unicodeScalars.contains($0) }
        return isPlain ? text : "\"" + text.replacing("\"", with: "\"\"") + "\""
    }
}
