import Platform

extension CampaignReport {
    /// One JSON object, a row a line; its names are those of docs/reports.md.
    func json() -> String {
        var head = [
            member("as_of", asOf), member("data_through", dataThrough), member("from", from),
            member("to", to), member("timezone", timeZone), member("cohort", "first_seen"),
        ].joined(separator: ",")
        head += ",\n\"totals\":\(json(totals)),\n\"campaigns\":["
        let lines = rows.map { "\n" + json($0) }.joined(separator: ",")
        return "{\(head)\(lines)\(rows.isEmpty ? "" : "\n")]}\n"
    }

    private func json(_ row: ReportRow) -> String {
        var members = [member("app", row.app), member("campaign_id", row.campaign)]
        members += zip(dimensionNames, row.dimensions).map(member)
        members += ReportCount.allCases.map { "\"\($0.rawValue)\":\(number(row[$0]))" }
        // Not computed yet, and so not known.
        members += ["influenced", "converted", "time_to_open"].map { "\"\($0)\":null" }
        members += ReportRate.allCases.map { rate in
            let value = row[rate]
            return "\"\(rate.rawValue)\":{\"numerator\":\(number(value.numerator)),"
                + "\"denominator\":\(number(value.denominator)),\"value\":\(number(value.value)),"
                + "\"low\":\(number(value.low)),\"high\":\(number(value.high))}"
        }
        members.append("\"flags\":[\(row.flags.map(JSONString.quoted).joined(separator: ","))]")
        return "{\(members.joined(separator: ","))}"
    }

    private func member(_ name: String, _ value: String?) -> String {
        "\"\(name)\":\(value.map(JSONString.quoted) ?? "null")"
    }

    private func number(_ value: (some CustomStringConvertible)?) -> String {
        value?.description ?? "null"
    }
}
