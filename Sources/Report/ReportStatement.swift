import Schema

/// Puts the statement of a report together from `sql/report/`.
struct ReportStatement {
    /// The statement; its parameters are described in the files.
    let sql: String

    init(_ options: ReportOptions, from source: Schema.UnitSource) {
        let others = options.by.filter { $0 != .campaign }
        func place(_ index: Int) -> (column: String, key: String) {
            guard index < others.count else { return ("NULL::text", "NULL::text") }
            switch others[index] {
            case .day: return ("NULL::text", Schema.dayKey)
            case .hour: return ("NULL::text", Schema.hourKey)
            case let other: return ("e.\(other.rawValue)", index == 0 ? "first" : "second")
            }
        }
        let (one, two) = (place(0), place(1))
        var text =
            Schema.reportResult(from: source) + Self.selection
            + "ORDER BY \(Self.order(options)) LIMIT $7"
        let isByCampaign = options.by.contains(.campaign)
        for (name, value) in [
            "first": one.column, "second": two.column, "one": one.key, "two": two.key,
            "campaign": isByCampaign ? "coalesce(campaign_id, '(unattributed)')" : "NULL::text",
            "cell campaign": isByCampaign ? "e.campaign_id" : "NULL::text",
            "quarter": options.by.contains(where: \.isTime) ? "e.quarter" : "NULL::int",
        ] {
            text = text.replacing("<\(name)>", with: value)
        }
        sql = text
    }

    /// Totals flag, keys, flags, then counts, then rates with five columns each.
    private static var selection: String {
        var columns = ["is_total", "app", "campaign_id", "one", "two", "flags"]
        columns += ReportCount.allCases.map { "\($0.rawValue)::bigint" }
        for rate in ReportRate.allCases {
            let name = rate.rawValue
            let parts = "\(name)_numerator::bigint, \(name)_denominator::bigint"
            columns += [
                parts, name, "tapline.wilson_low(\(parts))", "tapline.wilson_high(\(parts))",
            ]
        }
        return "\nSELECT \(columns.joined(separator: ", "))\nFROM result\n"
    }

    private static func order(_ options: ReportOptions) -> String {
        let others = options.by.filter { $0 != .campaign }
        func key(_ dimension: ReportDimension) -> String? {
            dimension == .campaign
                ? "campaign_id" : others.firstIndex(of: dimension).map { $0 == 0 ? "one" : "two" }
        }
        func rising(_ column: String) -> String { "\(column) COLLATE \"C\" NULLS LAST" }
        var terms = ["is_total DESC"]
        switch options.sort {
        case .count(let count): terms.append("\(count.rawValue) DESC NULLS LAST")
        case .rate(let rate): terms.append("\(rate.rawValue) DESC NULLS LAST")
        case .dimension(let dimension): terms += [key(dimension)].compactMap { $0 }.map(rising)
        case .app: break
        case nil where options.by.contains(where: \.isTime):
            terms += options.by.compactMap(key).map(rising)
        case nil: terms.append("delivered DESC")
        }
        terms += ["app", "campaign_id", "one", "two"].map(rising)
        return terms.joined(separator: ", ")
    }
}
