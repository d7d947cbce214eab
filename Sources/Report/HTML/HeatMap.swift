/// Clicks by weekday and hour of day.
struct HeatMap {
    /// Of each hour of each weekday, Monday first.
    private(set) var clicks = [[Int64]](repeating: [Int64](repeating: 0, count: 24), count: 7)

    /// Adds up a report by hour.
    init(_ report: CampaignReport) {
        for row in report.rows {
            guard let key = row.dimensions.first ?? nil, let slot = ReportSlot(key) else {
                continue
            }
            clicks[slot.weekday][slot.hour] += row[.clicksTotal] ?? 0
        }
    }

    var most: Int64 { clicks.joined().max() ?? 0 }

    /// The weekday and the hour with the most clicks.
    var peak: (weekday: String, hour: Int)? {
        for (weekday, hours) in clicks.enumerated() {
            if most > 0, let hour = hours.firstIndex(of: most) {
                return (ReportSlot.weekdays[weekday], hour)
            }
        }
        return nil
    }

    /// Shades but that of none.
    static let shades = 5
    private static let rowHeight = 26.0

    var height: Double { 7 * Self.rowHeight + 54 }

    private func shade(_ count: Int64) -> Int {
        most > 0 ? Int((Double(count) / Double(most) * Double(Self.shades)).rounded(.up)) : 0
    }

    var markup: Markup {
        var names: Markup = ""
        var content: Markup = ""
        for (weekday, hours) in clicks.enumerated() {
            let y = Double(weekday) * Self.rowHeight
            names += axisName(
                ReportSlot.weekdays[weekday], y: y + Self.rowHeight / 2 + 4)
            for (hour, count) in hours.enumerated() {
                content += box(
                    x: Double(hour) / 24, y: y, width: 1.0 / 24 - 0.002,
                    height: Self.rowHeight - 2, style: "shade\(shade(count))",
                    tip: "\(ReportSlot.weekdays[weekday]) \(Self.time(hour)): \(grouped(count))")
            }
        }
        let bottom = 7 * Self.rowHeight
        for hour in stride(from: 0, to: 24, by: 3) {
            content += label(
                Self.time(hour), x: Double(hour) / 24, y: bottom + 14,
                style: hour % 6 == 0 ? "tick" : "tick wide")
        }
        // From nothing to the most.
        content += label("0", x: 0, y: bottom + 46, style: "tick")
        for shade in 0...Self.shades {
            content += box(
                x: 0.04 + Double(shade) * 0.05, y: bottom + 34, width: 0.048, height: 14,
                style: "shade\(shade)")
        }
        content += label(
            "\(grouped(most)) clicks an hour of the week", x: 0.36, y: bottom + 46, style: "tick")
        return names + content
    }

    static func time(_ hour: Int) -> String { hour < 10 ? "0\(hour):00" : "\(hour):00" }

    func table(caption: String) -> NumberTable {
        NumberTable(
            caption: caption, heads: ["hour"] + ReportSlot.weekdays,
            rows: (0..<24).map { hour in
                [Self.time(hour)] + clicks.map { grouped($0[hour]) }
            })
    }
}
