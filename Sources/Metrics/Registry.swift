import Platform

/// All metrics of the process, and their rendering in Prometheus' text format 0.0.4.
///
/// Instruments are made up front and held by those who count; only making and rendering lock.
/// One name may be registered many times with different label values: that is a family, with
/// the help of the first.
package final class Registry: Sendable {
    /// The labels of one series: `["code": "not_json"]`.
    package typealias Labels = KeyValuePairs<String, String>

    private enum Kind: String {
        case counter
        case gauge
        case histogram
    }

    private enum Source: Sendable {
        case counter(Counter)
        case gauge(Gauge)
        case histogram(Histogram)
        case callback(@Sendable () -> Double)
    }

    private struct Family {
        let name: String
        let help: String
        let kind: Kind
        var series: [(labels: String, source: Source)]
    }

    private let families = Sync.Monitor<[Family]>([])

    package init() {}

    /// Makes a counter; its name should end in `_total`.
    package func counter(_ name: String, _ help: String, _ labels: Labels = [:]) -> Counter {
        let counter = Counter()
        register(name, help, .counter, labels, .counter(counter))
        return counter
    }

    /// Makes a gauge that is set by hand.
    package func gauge(_ name: String, _ help: String, _ labels: Labels = [:]) -> Gauge {
        let gauge = Gauge()
        register(name, help, .gauge, labels, .gauge(gauge))
        return gauge
    }

    /// Registers a gauge that is asked for its value at each rendering.
    ///
    /// - Parameter read: Runs on the rendering thread and must not use this registry.
    package func gauge(
        _ name: String, _ help: String, _ labels: Labels = [:],
        read: @escaping @Sendable () -> Double
    ) {
        register(name, help, .gauge, labels, .callback(read))
    }

    /// Registers a counter whose total is kept elsewhere and asked for at each rendering.
    ///
    /// - Parameter read: Runs on the rendering thread and must not use this registry.
    package func counter(
        _ name: String, _ help: String, _ labels: Labels = [:],
        read: @escaping @Sendable () -> Double
    ) {
        register(name, help, .counter, labels, .callback(read))
    }

    /// Makes a histogram.
    package func histogram(
        _ name: String, _ help: String, _ labels: Labels = [:],
        bounds: [Double] = Histogram.seconds
    ) -> Histogram {
        let histogram = Histogram(bounds: bounds)
        register(name, help, .histogram, labels, .histogram(histogram))
        return histogram
    }

    private func register(
        _ name: String, _ help: String, _ kind: Kind, _ labels: Labels, _ source: Source
    ) {
        precondition(Self.isName(name), "metric name \"\(name)\" is not valid")
        for (label, _) in labels {
            precondition(
                Self.isName(label) && !label.contains(":") && !label.hasPrefix("__"),
                "label name \"\(label)\" is not valid")
        }
        let text = labels.map { "\($0)=\"\(Self.escaped($1, quotes: true))\"" }
            .joined(separator: ",")
        families.withLock { families in
            guard let index = families.firstIndex(where: { $0.name == name }) else {
                families.append(
                    Family(name: name, help: help, kind: kind, series: [(text, source)]))
                return
            }
            precondition(families[index].kind == kind, "metric \"\(name)\" has two kinds")
            precondition(
                families[index].series.allSatisfy { $0.labels != text },
                "metric \"\(name)\" {\(text)} is registered twice")
            families[index].series.append((text, source))
        }
    }

    /// The media type of ``render()``.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// All metrics as text, families in the order of their making.
    package func render() -> [UInt8] {
        // Callbacks run after the lock, so that one that blocks holds up nobody else.
        let snapshot = families.withLock { $0 }
        var text = ""
        for family in snapshot {
            text += "# HELP \(family.name) \(Self.escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for (labels, source) in family.series {
                Self.render(family.name, labels, source, into: &text)
            }
        }
        return Array(text.utf8)
    }

    private static func render(
        _ name: String, _ labels: String, _ source: Source, into text: inout String
    ) {
        let braced = labels.isEmpty ? "" : "{\(labels)}"
        switch source {
        case .counter(let counter): text += "\(name)\(braced) \(counter.value)\n"
        case .gauge(let gauge): text += "\(name)\(braced) \(number(gauge.value))\n"
        case .callback(let read): text += "\(name)\(braced) \(number(read()))\n"
        case .histogram(let histogram):
            // The sum is read first: it may lag behind the counts, never run ahead of them.
            let sum = histogram.sum
            let counts = histogram.cumulativeCounts
            let before = labels.isEmpty ? "" : labels + ","
            for (bound, count) in zip(histogram.bounds.map(number) + ["+Inf"], counts) {
                text += "\(name)_bucket{\(before)le=\"\(bound)\"} \(count)\n"
            }
            text += "\(name)_sum\(braced) \(number(sum))\n"
            text += "\(name)_count\(braced) \(counts.last ?? 0)\n"
        }
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
        return "\(value)"
    }

    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
                || byte == 95 || byte == 58
        }
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
