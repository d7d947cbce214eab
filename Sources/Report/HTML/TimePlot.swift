/// What happened in each day or hour: two counts below each other, each with a scale of its own.
struct TimePlot {
    struct Point {
        var slot: ReportSlot
        var delivered: Int64
        var clicked: Int64
    }
    /// In their order.
    let points: [Point]

    /// Adds up the apps of a report by day or by hour: a unit is of one app.
    init(_ report: CampaignReport) {
        var sums: [ReportSlot: Point] = [:]
        for row in report.rows {
            guard let key = row.dimensions.first ?? nil, let slot = ReportSlot(key) else {
                continue
            }
            sums[slot, default: Point(slot: slot, delivered: 0, clicked: 0)].delivered +=
                row[.delivered] ?? 0
            sums[slot]?.clicked += row[.clicked] ?? 0
        }
        points = sums.values.sorted { $0.slot.index < $1.slot.index }
    }

    /// How many days or hours there are from the first to the last.
    var slots: Int {
        guard let first = points.first, let last = points.last else { return 0 }
        return last.slot.index - first.slot.index + 1
    }

    var most: Point? { points.max { $0.delivered < $1.delivered } }

    private static let panelHeight = 120.0
    private static let panelTop = 30.0

    var height: Double { 2 * (Self.panelTop + Self.panelHeight) + 40 }

    var markup: Markup {
        let unit = points.first?.slot.isDay ?? true ? "day" : "hour"
        let second = Self.panelTop + Self.panelHeight + 12
        return panel("delivered per \(unit)", \.delivered, y: 0, style: "bar")
            + panel("clicked per \(unit)", \.clicked, y: second, style: "bar click")
            + times(y: second + Self.panelTop + Self.panelHeight)
    }

    private func panel(
        _ name: String, _ count: KeyPath<Point, Int64>, y: Double, style: String
    ) -> Markup {
        let most = points.map { $0[keyPath: count] }.max() ?? 0
        let scale = Scale(upTo: Double(most), ticks: 3, step: 1)
        let top = y + Self.panelTop
        func height(_ value: Double) -> Double { Self.panelHeight * scale.share(value) }
        var axis: Markup = ""
        var content: Markup = ""
        for tick in scale.ticks {
            let place = top + Self.panelHeight - height(tick)
            axis += axisLabel(countTick(tick), y: place + 4)
            content += line(0, place, 1, place, style: tick == 0 ? "axis" : "grid")
        }
        var path = Path()
        let gap = slots > 150 ? 0 : 0.12
        for point in points where point[keyPath: count] > 0 {
            let x = share(point.slot.index)
            let (left, right) = (x + gap / 2 / Double(slots), x + (1 - gap / 2) / Double(slots))
            let high = Self.panelHeight - height(Double(point[keyPath: count]))
            path.move(left, Self.panelHeight)
            path.draw(left, high)
            path.draw(right, high)
            path.draw(right, Self.panelHeight)
            path.close()
        }
        content += path.markup(y: top, height: Self.panelHeight, style: style)
        return axisName(name, y: y + 13) + axis + content
    }

    private func share(_ index: Int) -> Double {
        Double(index - (points.first?.slot.index ?? 0)) / Double(max(slots, 1))
    }

    /// The words of the x axis: of those days or hours that have a row.
    private func times(y: Double) -> Markup {
        guard let first = points.first?.slot else { return "" }
        let step = max((slots + 7) / 8, 1)
        var content: Markup = ""
        var ticks = 0
        var next = first.index
        for point in points where point.slot.index >= next {
            let x = share(point.slot.index) + 0.5 / Double(slots)
            let text = slots > 300 && first.isDay ? point.slot.month : point.slot.short
            let anchor: Anchor = x < 0.05 ? .start : x > 0.95 ? .end : .middle
            let style = ticks % 2 == 0 ? "tick" : "tick wide"
            content += label(text, x: anchor == .end ? 1 : x, y: y + 16, anchor, style: style)
            if !first.isDay, ticks == 0 || point.slot.hour < step {
                content += label(
                    point.slot.day?.short ?? "", x: x, y: y + 30, anchor, style: style)
            }
            ticks += 1
            next = point.slot.index + step
        }
        return content
    }

    func table(caption: String) -> NumberTable {
        NumberTable(
            caption: caption,
            heads: [points.first?.slot.isDay ?? true ? "day" : "hour", "delivered", "clicked"],
            rows: points.map { [$0.slot.key, grouped($0.delivered), grouped($0.clicked)] })
    }
}
