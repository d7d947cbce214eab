import Platform

extension CampaignReport {
    /// One JSON object, a row a line; its names are those of docs/reports.md.
    ///
    /// - Parameter next: Where the rows after these are; nil when these are the last.
    package func json(next: String? = nil) -> String {
        var head = [
            member("as_of", asOf), member("data_through", dataThrough), member("from", from),
            member("to", to), member("timezone", timeZone), member("cohort", cohort),
        ].joined(separator: ",")
        head += ",\n\"totals\":\(json(totals)),\n\"campaigns\":["
        let lines = rows.map { "\n" + json($0) }.joined(separator: ",")
        let tail = next.map { "," + member("next", $0) } ?? ""
        return "{\(head)\(lines)\(rows.isEmpty ? "" : "\n")]\(tail)}\n"
    }

    /// A row as one object.
    func json(_ row: ReportRow) -> String {
        var members = [member("app", row.app), member("campaign_id", row.campaign)]
        members += zip(dimensionNames, row.dimensions).map(member)
        let about = row.about?.values ?? CampaignAbout.names.map { _ in nil }
        members += zip(CampaignAbout.names, about).map(member)
        members += labelled.map { member($0.name, row.label($0.place)) }
        members += ReportCount.allCases.map { "\"\($0.rawValue)\":\(number(row[$0]))" }
        members += ReportRate.allCases.map { "\"\($0.rawValue)\":{\(json(row[$0]))}" }
        members.append("\"action_share\":" + json(row.actionShares))
        members.append("\"time_to_open\":" + json(row.timeToOpen))
        members.append("\"flags\":[\(row.flags.map(JSONString.quoted).joined(separator: ","))]")
        return "{\(members.joined(separator: ","))}"
    }

    /// A row a line, each with what the report is of; the totals first, as `"is_total":true`.
    func ndjson() -> String {
        let head = [
            member("as_of", asOf), member("data_through", dataThrough), member("from", from),
            member("to", to), member("timezone", timeZone), member("cohort", cohort),
        ].joined(separator: ",")
        func line(_ row: ReportRow, isTotal: Bool) -> String {
            "{\(head),\"is_total\":\(isTotal),\(json(row).dropFirst())\n"
        }
        return line(totals, isTotal: true) + rows.map { line($0, isTotal: false) }.joined()
    }

    private func json(_ rate: RateValue) -> String {
        "\"numerator\":\(number(rate.numerator)),\"denominator\":\(number(rate.denominator)),"
            + "\"value\":\(number(rate.value)),\"low\":\(number(rate.low)),"
            + "\"high\":\(number(rate.high))"
    }

    private func json(_ shares: [ActionShare]?) -> String {
        guard let shares else { return "null" }
        let items = shares.map {
            "{\(member("category_id", $0.category)),\(member("action_id", $0.action)),"
                + "\(member("category_label", $0.categoryLabel)),"
                + "\(member("action_label", $0.actionLabel)),"
                + "\(json($0.share))}"
        }
        return "[\(items.joined(separator: ","))]"
    }

    private func json(_ time: TimeToOpen?) -> String {
        guard let time else { return "null" }
        return "{\"p50\":\(time.p50),\"p90\":\(time.p90),\"p99\":\(time.p99)}"
    }

    private func member(_ name: String, _ value: String?) -> String {
        "\"\(name)\":\(value.map(JSONString.quoted) ?? "null")"
    }

    private func number(_ value: (some CustomStringConvertible)?) -> String {
        value?.description ?? "null"
    }
}
