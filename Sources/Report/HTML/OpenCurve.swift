import Glibc
import Schema

/// Which share of those who tapped had done so how soon.
struct OpenCurve {
    let time: TimeToOpen
    /// Seconds, and how many had tapped by then; from the last limit before anybody had to the first
    /// at which all had.
    private(set) var points: [(seconds: Int, units: Int64)] = []
    /// All who tapped.
    let units: Int64

    /// - Returns: Nil where nobody looked, or nobody tapped.
    init?(_ row: ReportRow) {
        guard let time = row.timeToOpen, let opened = row.opened,
            opened.count == Schema.openLimits.count + 1, let units = opened.last, units > 0
        else { return nil }
        self.time = time
        self.units = units
        for (seconds, count) in zip(Schema.openLimits, opened) {
            if count == 0 { points = [] }
            points.append((seconds, count))
            if count == units { break }
        }
    }

    func share(_ units: Int64) -> Double { Double(units) / Double(self.units) }

    private static let top = 14.0
    private static let plotHeight = 200.0

    var height: Double { Self.top + Self.plotHeight + 28 }

    /// Times are on a logarithmic axis.
    private func x(_ seconds: Double) -> Double {
        guard let first = points.first?.seconds, let last = points.last?.seconds, last > first
        else { return 0 }
        let place = log(max(seconds, 1e-3) / Double(first)) / log(Double(last) / Double(first))
        return min(max(place, 0), 1)
    }

    private func y(_ share: Double) -> Double { Self.top + Self.plotHeight * (1 - share) }

    var markup: Markup {
        var axis: Markup = ""
        var content: Markup = ""
        for tick in [0, 0.25, 0.5, 0.75, 1] {
            axis += axisLabel(percentTick(tick), y: y(tick) + 4)
            content += line(0, y(tick), 1, y(tick), style: tick == 0 ? "axis" : "grid")
        }
        var used = -1.0
        var usedNarrow = -1.0
        for (index, point) in points.enumerated() {
            let place = x(Double(point.seconds))
            let isLast = index == points.count - 1
            guard isLast || place >= used + 0.07, isLast || place < 0.93 else { continue }
            let isWide = !isLast && (place < usedNarrow + 0.2 || place > 0.8)
            used = place
            if !isWide { usedNarrow = place }
            content += label(
                duration(Double(point.seconds)), x: place, y: y(0) + 17,
                place < 0.04 ? .start : place > 0.96 ? .end : .middle,
                style: isWide ? "tick wide" : "tick")
        }
        let marks = [
            ("p50", 0.5, time.p50), ("p90", 0.9, time.p90), ("p99", 0.99, time.p99),
        ]
        // Through the percentiles as well, which lie between the limits.
        let corners =
            points.map { (x: x(Double($0.seconds)), share: share($0.units)) }
            + marks.map { (x: x($0.2), share: $0.1) }
        var path = Path()
        for (index, corner) in corners.sorted(by: { ($0.x, $0.share) < ($1.x, $1.share) })
            .enumerated()
        {
            let height = y(corner.share) - Self.top
            if index == 0 { path.move(corner.x, height) } else { path.draw(corner.x, height) }
        }
        content += path.markup(y: Self.top, height: Self.plotHeight, style: "curve")
        for (name, part, seconds) in marks {
            let text = "\(name) \(duration(seconds))"
            content += dot(x: x(seconds), y: y(part), tip: text)
            // The curve rises: there is room above it to the left.
            let isLeft = x(seconds) > 0.25
            content += label(
                text, x: x(seconds) + (isLeft ? -0.015 : 0.015), y: y(part) + (isLeft ? 0 : 16),
                isLeft ? .end : .start, style: "value halo")
        }
        return axis + content
    }

    func table(caption: String) -> NumberTable {
        NumberTable(
            caption: caption, heads: ["within", "clicked", "share"],
            rows: points.map {
                [duration(Double($0.seconds)), grouped($0.units), percentText(share($0.units))]
            } + [["at all", grouped(units), percentText(1)]])
    }
}
