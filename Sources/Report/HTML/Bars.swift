/// Counts of a few things, as bars from the left.
struct Bars {
    struct Row {
        var name: String
        /// Nil is drawn as `n/a`, not as 0.
        var count: Int64?
        var style = "bar"
    }
    var rows: [Row]

    private static let rowHeight = 28.0
    private static let nameWidth = 0.3
    /// Leaves room for a number at the end of the longest bar.
    private static let barWidth = 0.5

    var height: Double { Double(rows.count) * Self.rowHeight + 6 }

    var markup: Markup {
        let most = Double(rows.compactMap(\.count).max() ?? 0)
        var content: Markup = ""
        for (index, row) in rows.enumerated() {
            let y = Double(index) * Self.rowHeight
            content += rowName(
                row.name, width: Self.nameWidth - 0.01, y: y, height: Self.rowHeight)
            let length = most > 0 ? Double(row.count ?? 0) / most * Self.barWidth : 0
            if row.count != nil {
                content += box(
                    x: Self.nameWidth, y: y + 4, width: length, height: Self.rowHeight - 8,
                    style: row.style, tip: "\(row.name): \(grouped(row.count))")
            }
            content += label(
                grouped(row.count), x: Self.nameWidth + length + 0.01,
                y: y + Self.rowHeight / 2 + 4, style: row.count == nil ? "tick" : "value")
        }
        return content
            + line(
                Self.nameWidth, 0, Self.nameWidth, Double(rows.count) * Self.rowHeight,
                style: "axis")
    }
}
