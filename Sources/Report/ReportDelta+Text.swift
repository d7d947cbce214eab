import Platform

extension ReportDelta {
    /// The changes as text in UTF-8.
    ///
    /// - Throws: ``ReportError/invalidOption(name:value:reason:)`` for a format that has no changes.
    package func render(_ format: ReportFormat) throws(ReportError) -> [UInt8] {
        switch format {
        case .table: Array(table().utf8)
        case .json: Array(json().utf8)
        default: throw Self.noSuch(format: format.rawValue)
        }
    }

    /// The error of a format that changes are not written in.
    package static func noSuch(format: String) -> ReportError {
        .invalidOption(
            name: "format", value: format, reason: "not table or json, as with --since")
    }

    private func table() -> String {
        var lines = [
            "as_of   \(report.asOf)", "since   \(since)",
            "loaded  \(Self.text(totals.arrivals))", "",
        ]
        if changes.isEmpty { lines.append("no row has changed") }
        for change in changes {
            var name = change.row.dimensions.map { $0 ?? "(unknown)" }
            if let campaign = change.row.campaign { name.insert(campaign, at: 0) }
            lines += wrapped(
                "\(printable(name.joined(separator: " "))): \(Self.text(change.counts))"
                    + (change.arrivals.map { ", from \(Self.text($0))" } ?? ""))
        }
        if !totals.counts.isEmpty { lines += [""] + wrapped("totals: \(Self.text(totals.counts))") }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func text(_ counts: [(count: ReportCount, difference: Int64)]) -> String {
        counts.map { count, difference in
            "\(difference > 0 ? "+" : "−")\(difference.magnitude) "
                + count.rawValue.replacing("_", with: " ")
        }.joined(separator: ", ")
    }

    private static func text(_ arrivals: Arrivals?) -> String {
        guard let arrivals, arrivals.events > 0 else { return "no events" }
        let events = arrivals.events == 1 ? "1 event" : "\(arrivals.events) events"
        return "\(events) up to \(duration(arrivals.latestSeconds)) late"
    }

    /// In the largest unit that it has one of, rounded up.
    private static func duration(_ seconds: Double) -> String {
        for (name, length) in [("day", 86_400.0), ("hour", 3600), ("minute", 60)]
        where seconds >= length {
            let count = Int((seconds / length).rounded(.up))
            return "\(count) \(name)\(count == 1 ? "" : "s")"
        }
        let count = max(0, Int(seconds.rounded(.up)))
        return "\(count) second\(count == 1 ? "" : "s")"
    }

    /// The changes as JSON.
    package func json() -> String {
        func member(_ name: String, _ value: String?) -> String {
            "\"\(name)\":\(value.map(JSONString.quoted) ?? "null")"
        }
        func object(_ change: Change) -> String {
            var members = [
                member("app", change.row.app), member("campaign_id", change.row.campaign),
            ]
            members += zip(report.dimensionNames, change.row.dimensions).map(member)
            let counts = change.counts.map { "\"\($0.count.rawValue)\":\($0.difference)" }
            members.append("\"changes\":{\(counts.joined(separator: ","))}")
            members.append("\"events\":\(change.arrivals.map { "\($0.events)" } ?? "null")")
            members.append(
                "\"latest_seconds\":\(change.arrivals.map { "\($0.latestSeconds)" } ?? "null")")
            return "{\(members.joined(separator: ","))}"
        }
        let head = [
            member("as_of", report.asOf), member("since", since),
            member("data_through", report.dataThrough), member("from", report.from),
            member("to", report.to), member("timezone", report.timeZone),
            member("cohort", report.cohort),
        ].joined(separator: ",")
        let rows = changes.map { "\n" + object($0) }.joined(separator: ",")
        return
            "{\(head),\n\"totals\":\(object(totals)),\n\"campaigns\":[\(rows)\(rows.isEmpty ? "" : "\n")]}\n"
    }
}
