import Platform

/// The metrics of a daemon at one time.
package struct Scrape: Sendable {
    /// When it was taken: monotonic microseconds.
    package let at: Microseconds
    /// The values by name with labels, as they are written: `name{label="value"}`.
    private let values: [String: Double]

    /// Reads the text format of Prometheus, as a daemon writes it.
    ///
    /// - Returns: Nil when it is not of a daemon of Tapline.
    package init?(_ bytes: [UInt8], at: Microseconds) {
        var values: [String: Double] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " "),
                let value = Double(line[line.index(after: space)...])
            else { continue }
            values[String(line[..<space])] = value
        }
        guard values.keys.contains(where: { $0.hasPrefix("tapline_build_info") })
        else { return nil }
        self.at = at
        self.values = values
    }

    package subscript(_ name: String) -> Double? { values[name] }

    /// The values of a metric by one of its labels, which has to be its only one.
    func byLabel(_ name: String, _ label: String) -> [String: Double] {
        let start = "\(name){\(label)=\""
        var found: [String: Double] = [:]
        for (key, value) in values where key.hasPrefix(start) && key.hasSuffix("\"}") {
            found[String(key.dropFirst(start.count).dropLast(2))] = value
        }
        return found
    }

    /// The cumulative counts of a histogram by their bounds, which rise; the last is infinite.
    func histogram(_ name: String) -> [(bound: Double, count: Double)] {
        byLabel("\(name)_bucket", "le").compactMap { text, count in
            Double(text == "+Inf" ? "inf" : text).map { ($0, count) }
        }.sorted { $0.bound < $1.bound }
    }
}

/// What happened between two times.
struct Interval {
    let before: Scrape
    let now: Scrape

    private var seconds: Double { Double(now.at - before.at) / 1_000_000 }

    /// How much a counter grew a second; nil when it is not there, or the daemon was started anew.
    func rate(_ name: String) -> Double? {
        guard let new = now[name], let old = before[name] else { return nil }
        return rate(new, old)
    }

    /// The same for each value of a label; what is new began at 0.
    func rates(_ name: String, _ label: String) -> [String: Double] {
        let old = before.byLabel(name, label)
        var found: [String: Double] = [:]
        for (value, count) in now.byLabel(name, label) {
            found[value] = rate(count, old[value] ?? 0)
        }
        return found
    }

    private func rate(_ new: Double, _ old: Double) -> Double? {
        new >= old && seconds > 0 ? (new - old) / seconds : nil
    }

    /// A quantile of what a histogram observed in the interval, linear within a bucket, as
    /// `histogram_quantile` of Prometheus has it; nil when nothing was observed.
    func quantile(_ quantile: Double, _ name: String) -> Double? {
        let old = before.histogram(name)
        let new = now.histogram(name)
        guard old.count == new.count, let last = new.last, let first = old.last else { return nil }
        let total = last.count - first.count
        guard total > 0 else { return nil }
        let rank = quantile * total
        var (bound, count) = (0.0, 0.0)
        for (index, bucket) in new.enumerated() {
            let upTo = bucket.count - old[index].count
            if upTo >= rank {
                guard bucket.bound.isFinite else { return bound }
                guard upTo > count else { return bucket.bound }
                return bound + (bucket.bound - bound) * (rank - count) / (upTo - count)
            }
            (bound, count) = (bucket.bound, upTo)
        }
        return bound
    }
}
