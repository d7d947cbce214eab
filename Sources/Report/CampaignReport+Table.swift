extension CampaignReport {
    /// The width of a terminal that everything fits, unless the numbers alone are wider.
    private static let columns = 80

    /// The report for people: what it is of, counts, rates, and what is suspect in them.
    func table() -> String {
        var lines = heading()
        let keyed = rows.isEmpty ? [] : rows.map(labels) + [["totals"]]
        let all = rows.isEmpty ? [] : rows + [totals]
        if rows.isEmpty {
            lines += ["", "no messages in this period"]
        } else {
            lines += [""] + block(keyed, Self.countColumns, all.map(countCells))
            lines += [""] + block(keyed, Self.rateColumns, all.map(rateCells))
            lines += notes(all, keyed)
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func heading() -> [String] {
        let period =
            switch (from, to) {
            case (nil, nil): "everything"
            case (let from?, nil): "from \(from)"
            case (nil, let to?): "before \(to)"
            case (let from?, let to?): "\(from) to before \(to)"
            }
        return [
            "as_of         \(asOf)\(isHistoric ? ", test devices as marked today" : "")",
            "data_through  \(dataThrough)",
            "period        \(period)",
            "tz            \(timeZone)",
            "cohort        messages first seen in the period, with all that came of them",
            "test units    \(includesTest ? "counted" : "\(count(totals[.testExcluded])) left out")",
            "late events   \(count(totals[.late])), received more than 24 h after they happened",
            "formulas      ctr_delivered = clicked / delivered",
            "              ctr_sent = clicked of sent / sent",
            "              engagement = engaged / delivered",
            "brackets      Wilson's 95 % interval"
                + (hasIntervals ? "" : ": no room here, see --format json or csv"),
        ]
    }

    // Cells.

    private static let countColumns = [
        ["", "sent"], ["", "delivered"], ["", "clicked"], ["clicks", "total"], ["inbox", "opened"],
        ["", "engaged"],
    ]
    private static let rateColumns = [["ctr_delivered %"], ["ctr_sent %"], ["engagement %"]]

    private func countCells(_ row: ReportRow) -> [String] {
        let shown: [ReportCount] = [
            .sent, .delivered, .clicked, .clicksTotal, .inboxOpened, .engaged,
        ]
        return shown.map { count(row[$0]) }
    }

    private func rateCells(_ row: ReportRow) -> [String] {
        let shown: [ReportRate] = [.ctrDelivered, .ctrSent, .engagementRate]
        return shown.map { rate in
            guard let value = row[rate].value, let low = row[rate].low, let high = row[rate].high
            else { return "n/a" }
            guard hasIntervals else { return percent(value, isLong: true) }
            // Two digits after the point of bounds that a column has room for.
            let bounds = [low, high].map { percent($0, isLong: high < 0.1) }
            return "\(percent(value, isLong: true)) [\(bounds[0]) \(bounds[1])]"
        }
    }

    private func count(_ value: Int64?) -> String { value.map { "\($0)" } ?? "n/a" }

    /// Percent with one digit after the point, or two.
    private func percent(_ value: Double, isLong: Bool) -> String {
        let scale = isLong ? 100 : 10
        let scaled = Int((value * 100 * Double(scale)).rounded())
        let fraction = String(scaled % scale)
        return "\(scaled / scale)." + (isLong && fraction.count < 2 ? "0" : "") + fraction
    }

    // Labels.

    /// Names the app only where there are several.
    private var hasApps: Bool { Set(rows.map(\.app)).count > 1 }

    private func labels(_ row: ReportRow) -> [String] {
        var others = row.dimensions.makeIterator()
        let values = by.map { $0 == .campaign ? row.campaign : others.next() ?? nil }
        return ((hasApps ? [row.app] : []) + values).map { printable($0 ?? "(unknown)") }
    }

    /// Three columns of labels leave no room for intervals.
    private var hasIntervals: Bool { labelNames.count < 3 }

    private var labelNames: [String] { (hasApps ? ["app"] : []) + by.map(\.rawValue) }

    /// The text without what would move a terminal's cursor.
    private func printable(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            result.append(isControl ? "\u{FFFD}" : scalar)
        }
        return String(result)
    }

    /// The text in at most `width` characters, its middle left out.
    private func elided(_ text: String, to width: Int) -> String {
        guard text.count > width else { return text }
        let head = width / 2
        return text.prefix(head) + "…" + text.suffix(width - head - 1)
    }

    // Layout.

    /// Lines of one table: labels to the left, numbers to the right, in `columns` if they fit.
    private func block(
        _ labels: [[String]], _ heads: [[String]], _ cells: [[String]]
    ) -> [String] {
        let widths = heads.indices.map { column in
            (heads[column] + cells.map { $0[column] }).map(\.count).max() ?? 0
        }
        let room = Self.columns - widths.reduce(0) { $0 + $1 + 2 }
        let labelWidths = labelWidths(labels, room: room)

        func line(_ labels: [String], _ cells: [String]) -> String {
            let left = labelWidths.indices.map { index in
                let text = index < labels.count ? elided(labels[index], to: labelWidths[index]) : ""
                return text + spaces(labelWidths[index] - text.count)
            }
            let right = zip(cells, widths).map { spaces($1 - $0.count) + $0 }
            let whole = (left + right).joined(separator: "  ")
            return String(whole.reversed().drop { $0 == " " }.reversed())
        }
        let headLines = heads.first?.count ?? 0
        return (0..<headLines).map { index in
            line(index == headLines - 1 ? labelNames : [], heads.map { $0[index] })
        } + zip(labels, cells).map(line)
    }

    /// Takes from the widest label column until all fit, but leaves each 6 characters.
    private func labelWidths(_ labels: [[String]], room: Int) -> [Int] {
        var widths = labelNames.indices.map { column in
            ([labelNames[column]] + labels.map { column < $0.count ? $0[column] : "" })
                .map(\.count).max() ?? 0
        }
        while widths.reduce(0, +) + 2 * (widths.count - 1) > room,
            let widest = widths.indices.max(by: { widths[$0] < widths[$1] }), widths[widest] > 6
        {
            widths[widest] -= 1
        }
        return widths
    }

    private func spaces(_ count: Int) -> String { String(repeating: " ", count: max(count, 0)) }

    // Notes.

    private func notes(_ rows: [ReportRow], _ labels: [[String]]) -> [String] {
        var lines: [String] = []
        for (row, label) in zip(rows, labels) where !row.flags.isEmpty {
            let names = row.flags.joined(separator: ", ")
            let room = max(Self.columns - names.count - 8, 8)
            lines.append("flag  \(elided(label.joined(separator: " "), to: room)): \(names)")
        }
        return lines.isEmpty ? [] : [""] + lines
    }
}
