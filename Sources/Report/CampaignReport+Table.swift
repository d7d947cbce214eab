extension CampaignReport {
    /// The width of a terminal that everything fits, unless the numbers alone are wider.
    private static let columns = 80

    /// The report for people: what it is of, counts, rates, and what is suspect in them.
    ///
    /// - Parameter style: Puts a text in a colour, by its terminal code.
    func table(style: (String, Int) -> String = { text, _ in text }) -> String {
        var lines = heading()
        let keyed = rows.isEmpty ? [] : rows.map(labels) + [["totals"]]
        let all = rows.isEmpty ? [] : rows + [totals]
        if rows.isEmpty {
            lines += ["", "no messages in this period"]
        } else {
            let highest = all.compactMap { $0[.ctrDelivered].value }.max() ?? 0
            let bars = all.map { row in
                highest > 0 ? (row[.ctrDelivered].value ?? 0) / highest : 0
            }
            lines += [""] + block(keyed, Self.countColumns, all.map(countCells), bars, style)
            lines += [""] + block(keyed, Self.rateColumns, all.map(rateCells), nil, style)
            lines += names
            lines += notes(all, keyed, style)
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private func heading() -> [String] {
        facts.map { spread($0.name) + $0.text } + [
            spread("formulas") + "ctr_delivered = \(ReportRate.ctrDelivered.formula)",
            spread("") + "ctr_sent = \(ReportRate.ctrSent.formula)",
            spread("") + "engagement = \(ReportRate.engagementRate.formula)",
            spread("brackets") + "Wilson's 95 % interval"
                + (hasIntervals ? "" : ": no room here, see --format json or csv"),
        ] + clicksOverTime
    }

    /// A name of the heading, as wide as all of them.
    private func spread(_ name: String) -> String { name + spaces(14 - name.count) }

    /// Clicks of the days or hours that the rows are of, as one line.
    private var clicksOverTime: [String] {
        guard by.first(where: { $0 != .campaign })?.isTime == true else { return [] }
        let plot = TimePlot(self)
        guard let first = plot.points.first?.slot, let last = plot.points.last?.slot,
            plot.slots > 1
        else { return [] }
        // Some slots in one where there are many.
        let width = (plot.slots + 59) / 60
        var sums = [Int64](repeating: 0, count: (plot.slots + width - 1) / width)
        for point in plot.points { sums[(point.slot.index - first.index) / width] += point.clicked }
        return [
            spread("clicked") + sparkline(sums), spread("") + "\(first.key) to \(last.key)",
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
        decimal(value * 100, digits: isLong ? 2 : 1)
    }

    // Labels.

    /// Three columns of labels leave no room for intervals.
    private var hasIntervals: Bool { labelNames.count < 3 }

    // Layout.

    /// The least and the most characters of a bar.
    private static let barWidths = 5...12

    /// Lines of one table: labels to the left, numbers to the right, in `columns` if they fit; then
    /// bars of `shares`, where there is room.
    private func block(
        _ labels: [[String]], _ heads: [[String]], _ cells: [[String]], _ shares: [Double]?,
        _ style: (String, Int) -> String
    ) -> [String] {
        let widths = heads.indices.map { column in
            (heads[column] + cells.map { $0[column] }).map(\.count).max() ?? 0
        }
        let room = Self.columns - widths.reduce(0) { $0 + $1 + 2 }
        let labelWidths = labelWidths(labels, room: room)
        let left = room - labelWidths.reduce(-2) { $0 + $1 + 2 } - 2
        let bar = min(left, Self.barWidths.upperBound)

        func line(_ labels: [String], _ cells: [String]) -> String {
            let left = labelWidths.indices.map { index in
                let text = index < labels.count ? elided(labels[index], to: labelWidths[index]) : ""
                return text + spaces(labelWidths[index] - text.count)
            }
            let right = zip(cells, widths).map { spaces($1 - $0.count) + $0 }
            return (left + right).joined(separator: "  ")
        }
        let hasBars = shares != nil && bar >= Self.barWidths.lowerBound
        let headLines = heads.first?.count ?? 0
        return (0..<headLines).map { index in
            let isLast = index == headLines - 1
            let text = line(isLast ? labelNames : [], heads.map { $0[index] })
            return style(trimmed(text + (hasBars && isLast ? "  ctr" : "")), 1)
        }
            + labels.indices.map { index in
                let isTotal = index == labels.count - 1
                let text = line(labels[index], cells[index])
                let whole = isTotal ? style(trimmed(text), 1) : trimmed(text)
                guard hasBars, let share = shares?[index], share > 0 else { return whole }
                return (isTotal ? style(text, 1) : text) + "  " + style(self.bar(share, bar), 36)
            }
    }

    private func trimmed(_ text: String) -> String {
        String(text.reversed().drop { $0 == " " }.reversed())
    }

    /// A share of a bar of so many characters, in eighths; never nothing.
    private func bar(_ share: Double, _ width: Int) -> String {
        let eighths = max(Int((share * Double(width * 8)).rounded()), 1)
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
        return String(repeating: "█", count: eighths / 8) + rest
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

    // Names.

    /// What campaigns are called, for which the columns have no room.
    private var names: [String] {
        var seen: Set<[String?]> = []
        let known = rows.filter { $0.about != nil && seen.insert([$0.app, $0.campaign]).inserted }
        guard !known.isEmpty else { return [] }
        let ids = known.map { elided(printable($0.campaign ?? ""), to: 26) }
        let width = ids.map(\.count).max() ?? 0
        let lines = zip(known, ids).flatMap { row, id in
            // Names may be long, and are nowhere else in full.
            wrapped(row.about?.text ?? "", width: Self.columns - width - 2).enumerated().map {
                ($0 == 0 ? id + spaces(width - id.count) : spaces(width)) + "  " + $1
            }
        }
        return [""] + lines
    }

    // Notes.

    private func notes(
        _ rows: [ReportRow], _ labels: [[String]], _ style: (String, Int) -> String
    ) -> [String] {
        var lines: [String] = []
        for (row, label) in zip(rows, labels) where !row.flags.isEmpty {
            let names = row.flags.joined(separator: ", ")
            let room = max(Self.columns - names.count - 8, 8)
            let name = elided(label.joined(separator: " "), to: room)
            lines.append(style("flag", 33) + "  \(name): \(names)")
        }
        let seen = Set(rows.flatMap(\.flags))
        for flag in ReportFlag.allCases where seen.contains(flag.rawValue) {
            lines += wrapped("\(flag.rawValue): \(flag.meaning) \(flag.advice)")
        }
        return lines.isEmpty ? [] : [""] + lines
    }
}
