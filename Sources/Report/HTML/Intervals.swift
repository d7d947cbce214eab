/// Rates with their intervals: a dot and a whisker each.
struct Intervals {
    struct Row {
        var name: String
        var rate: RateValue
    }
    var rows: [Row]
    /// The rate over everything, as a line through all rows.
    var whole: RateValue?

    private static let rowHeight = 26.0
    private static let nameWidth = 0.3
    private static let plotWidth = 0.5
    /// Of the words above the rows.
    private static let top = 18.0

    var height: Double { Self.top + Double(rows.count) * Self.rowHeight + 24 }

    var markup: Markup {
        let highest = (rows.map(\.rate) + [whole].compactMap { $0 }).compactMap(\.high).max()
        let scale = Scale(upTo: highest ?? 1)
        let bottom = Self.top + Double(rows.count) * Self.rowHeight
        func x(_ value: Double) -> Double { Self.nameWidth + Self.plotWidth * scale.share(value) }
        var content: Markup = ""
        for (index, tick) in scale.ticks.enumerated() {
            content += line(x(tick), Self.top, x(tick), bottom)
            content += label(
                percentTick(tick), x: x(tick), y: bottom + 16, .middle,
                style: index % 2 == 0 ? "tick" : "tick wide")
        }
        if let value = whole?.value {
            content += line(x(value), Self.top, x(value), bottom, style: "whole")
            content += label(
                "all " + percentText(value), x: x(value), y: Self.top - 5,
                value / scale.max > 0.7 ? .end : .start)
        }
        for (index, row) in rows.enumerated() {
            let y = Self.top + Double(index) * Self.rowHeight
            let middle = y + Self.rowHeight / 2
            content += rowName(
                row.name, width: Self.nameWidth - 0.02, y: y, height: Self.rowHeight)
            let rate = row.rate
            if let value = rate.value, let low = rate.low, let high = rate.high {
                let tip = "\(row.name): \(percentText(value)), \(intervalText(rate))"
                content += line(x(low), middle, x(high), middle, style: "whisker")
                content += line(x(low), middle - 4, x(low), middle + 4, style: "whisker")
                content += line(x(high), middle - 4, x(high), middle + 4, style: "whisker")
                content += dot(x: x(value), y: middle, tip: tip)
            }
            content += label(
                percentText(rate.value), x: 1, y: middle + 4, .end,
                style: rate.value == nil ? "tick" : "value")
        }
        return content
    }
}
