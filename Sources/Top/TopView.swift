/// Frames as text of at most 80 columns.
package struct TopView: Sendable {
    private static let columns = 80
    private static let nameColumns = 11
    private let url: String
    /// Lines received a second, the newest last.
    private var history: [Double] = []

    package init(url: String) { self.url = url }

    /// The lines of the next frame.
    package mutating func lines(_ frame: TopFrame) -> [String] {
        let received = frame.terms.first?.perSecond ?? 0
        history = Array((history + [received]).suffix(Self.columns - Self.nameColumns - 12))
        var lines = ["tapline \(frame.version) at \(url), up \(Self.duration(frame.uptimeSeconds))"]
        lines.append("")
        lines += Self.terms(frame)
        lines.append("")
        let most = history.max() ?? 0
        lines.append(Self.row("received", Self.sparkline(history) + " \(Self.rate(most)) at most"))
        lines.append(
            Self.row(
                "database",
                frame.isDatabaseUp ? "up, \(Self.duration(frame.lagSeconds)) behind" : "NOT REACHED"
            ))
        lines.append(Self.row("load", Self.load(frame)))
        lines.append(Self.row("answers", Self.listed(frame.answers)))
        lines.append(
            Self.row(
                "bodies",
                "\(Self.bytes(frame.bodyBytesPerSecond))/s; 200 after "
                    + "\(Self.quantiles(frame.acknowledgeSeconds))"))
        lines.append(Self.row("rejected", Self.listed(frame.rejections)))
        lines.append(
            Self.row(
                "clients",
                "\(Self.count(frame.connections)) connections, "
                    + "\(Self.count(frame.requestsInFlight)) requests under way"))
        lines.append(Self.row("spool", Self.spool(frame)))
        lines.append(
            Self.row(
                "process",
                "\(Self.bytes(frame.residentBytes)) resident, "
                    + "\(frame.cpuShare.map { "\(Int(($0 * 100).rounded())) %" } ?? "-") of a core, "
                    + "\(Self.count(frame.openFiles)) files"))
        return lines.map { line in
            var line = line
            while line.last == " " { line.removeLast() }
            return line.count > Self.columns ? line.prefix(Self.columns - 1) + "…" : line
        }
    }

    private static func terms(_ frame: TopFrame) -> [String] {
        var lines: [String] = []
        for (index, term) in frame.terms.enumerated() {
            let sign = index == 0 ? " " : index == 1 ? "=" : "+"
            let rate = term.name == "spooled" ? "" : Self.rate(term.perSecond)
            lines.append(
                "\(sign) \(left(term.name, 14))\(right(count(term.count), 20))"
                    + "\(right(rate, 16))")
        }
        lines.append(
            frame.isBalanced ? "  what is loaded adds up" : "  WHAT IS LOADED DOES NOT ADD UP")
        return lines
    }

    private static func load(_ frame: TopFrame) -> String {
        let batches = frame.batchesPerSecond.map { "\(decimal($0)) batches/s" } ?? "-"
        return "\(batches), each \(quantiles(frame.batchSeconds))"
    }

    private static func spool(_ frame: TopFrame) -> String {
        var text = "\(bytes(frame.spoolUnloadedBytes)) wait"
        if frame.spoolBytesMax > 0 {
            let percent = frame.spoolUnloadedBytes / frame.spoolBytesMax * 100
            text += " (\(decimal(percent)) % of \(bytes(frame.spoolBytesMax)))"
        }
        text += ", \(bytes(frame.spoolBytes)) on disk"
        if frame.quarantinedRecords > 0 {
            text += ", \(count(frame.quarantinedRecords)) RECORDS QUARANTINED"
        }
        return text
    }

    // MARK: Pieces

    private static func row(_ name: String, _ text: String) -> String {
        left(name, nameColumns) + text
    }

    /// The largest first.
    private static func listed(_ rates: [String: Double]) -> String {
        guard !rates.isEmpty else { return "none" }
        return rates.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key) \(rate($0.value))" }.joined(separator: ", ")
    }

    private static func quantiles(_ pair: (half: Double?, most: Double?)) -> String {
        guard let half = pair.half, let most = pair.most else { return "-" }
        return "\(duration(half)) (p50), \(duration(most)) (p99)"
    }

    private static func sparkline(_ values: [Double]) -> String {
        let bars = Array("▁▂▃▄▅▆▇█")
        let most = max(values.max() ?? 0, 1)
        return String(
            values.map { bars[min(bars.count - 1, Int($0 / most * Double(bars.count - 1) + 0.5))] })
    }

    static func rate(_ value: Double?) -> String {
        guard let value else { return "-" }
        return value > 0 && value < 9.95 ? "\(decimal(value))/s" : "\(count(value))/s"
    }

    /// With its thousands apart.
    static func count(_ value: Double) -> String {
        var text = ""
        for (index, digit) in String(Int64(value.rounded())).reversed().enumerated() {
            if index > 0, index % 3 == 0, digit != "-" { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }

    private static func decimal(_ value: Double) -> String {
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func bytes(_ value: Double?) -> String {
        guard var value else { return "-" }
        var unit = "B"
        for larger in ["kB", "MB", "GB", "TB"] where value >= 999.5 {
            value /= 1000
            unit = larger
        }
        return unit == "B" ? "\(Int64(value)) B" : "\(decimal(value)) \(unit)"
    }

    static func duration(_ seconds: Double) -> String {
        if seconds == 0 { return "0 s" }
        if seconds < 0.9995 { return "\(decimal(seconds * 1000)) ms" }
        if seconds < 59.95 { return "\(decimal(seconds)) s" }
        let whole = Int64(seconds.rounded())
        if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
        return "\(count(Double(whole / 3600))) h \(whole / 60 % 60) min"
    }

    private static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
