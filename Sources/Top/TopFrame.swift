import Platform

/// What `tapline top` shows: a daemon now, and what it did since the look before.
package struct TopFrame: Sendable {
    /// A term of the books (law 4).
    package struct Term: Sendable {
        package let name: String
        package let count: Double
        /// Nil where it is not known.
        package let perSecond: Double?
    }

    package let version: String
    package let uptimeSeconds: Double
    /// `received` first, then those that add up to it.
    package let terms: [Term]
    package let isBalanced: Bool
    package let isDatabaseUp: Bool
    /// Age of the oldest event that is not loaded.
    package let lagSeconds: Double
    package let spoolBytes: Double
    package let spoolUnloadedBytes: Double
    package let spoolBytesMax: Double
    package let quarantinedRecords: Double
    package let connections: Double
    package let requestsInFlight: Double
    /// Answers a second by status, of those that there were.
    package let answers: [String: Double]
    /// Rejected lines a second by code, of those that there were.
    package let rejections: [String: Double]
    /// Bytes of bodies a second, as they were sent.
    package let bodyBytesPerSecond: Double?
    /// Seconds from the head of a request to its 200: half of them were faster, 99 % were.
    package let acknowledgeSeconds: (half: Double?, most: Double?)
    package let batchesPerSecond: Double?
    package let batchSeconds: (half: Double?, most: Double?)
    package let residentBytes: Double
    /// Of one core.
    package let cpuShare: Double?
    package let openFiles: Double

    private static let terms = [
        "received", "stored", "duplicate", "conflict", "rejected", "dead_lettered",
    ]

    /// - Parameter wallClock: Microseconds since 1970 UTC.
    package init(before: Scrape, now: Scrape, wallClock: Microseconds) {
        let interval = Interval(before: before, now: now)
        func value(_ name: String) -> Double { now[name] ?? 0 }
        func quantiles(_ name: String) -> (Double?, Double?) {
            (interval.quantile(0.5, name), interval.quantile(0.99, name))
        }
        version = now.byLabel("tapline_build_info", "version").keys.first ?? "?"
        uptimeSeconds = max(
            0, Double(wallClock) / 1_000_000 - value("process_start_time_seconds"))
        terms =
            Self.terms.map { name in
                let metric = "tapline_events_\(name)_total"
                return Term(name: name, count: value(metric), perSecond: interval.rate(metric))
            } + [Term(name: "spooled", count: value("tapline_events_spooled"), perSecond: nil)]
        isBalanced = value("tapline_books_balanced") == 1
        isDatabaseUp = value("tapline_database_up") == 1
        lagSeconds = value("tapline_spool_oldest_unloaded_seconds")
        spoolBytes = value("tapline_spool_bytes")
        spoolUnloadedBytes = value("tapline_spool_unloaded_bytes")
        spoolBytesMax = value("tapline_spool_bytes_max")
        quarantinedRecords = value("tapline_spool_quarantined_records")
        connections = value("tapline_http_connections")
        requestsInFlight = value("tapline_http_requests_in_flight")
        answers = interval.rates("tapline_http_responses_total", "status").filter { $0.value > 0 }
        rejections = interval.rates("tapline_lines_rejected_total", "code").filter { $0.value > 0 }
        bodyBytesPerSecond = interval.rate("tapline_http_body_bytes_total")
        acknowledgeSeconds = quantiles("tapline_acknowledge_seconds")
        batchesPerSecond = interval.rate("tapline_load_batches_total")
        batchSeconds = quantiles("tapline_load_batch_seconds")
        residentBytes = value("process_resident_memory_bytes")
        cpuShare = interval.rate("process_cpu_seconds_total")
        openFiles = value("process_open_fds")
    }

    /// One JSON object.
    ///
    /// - Parameter at: Microseconds since 1970 UTC.
    package func json(at: Microseconds) -> String {
        var members = [
            "\"at\":\"\(Clock.rfc3339(at))\"", "\"version\":\(JSONString.quoted(version))",
            "\"uptime_seconds\":\(Self.number(uptimeSeconds))",
        ]
        for term in terms { members.append("\"\(term.name)\":\(Self.number(term.count))") }
        members += ["\"balanced\":\(isBalanced)", "\"database_up\":\(isDatabaseUp)"]
        for term in terms where term.name != "spooled" {
            members.append("\"\(term.name)_per_second\":\(Self.number(term.perSecond))")
        }
        let (acknowledge, batch) = (acknowledgeSeconds, batchSeconds)
        let numbers: [(String, Double?)] = [
            ("lag_seconds", lagSeconds), ("spool_bytes", spoolBytes),
            ("spool_unloaded_bytes", spoolUnloadedBytes), ("spool_bytes_max", spoolBytesMax),
            ("quarantined_records", quarantinedRecords), ("connections", connections),
            ("requests_in_flight", requestsInFlight),
            ("body_bytes_per_second", bodyBytesPerSecond),
            ("acknowledge_p50_seconds", acknowledge.half),
            ("acknowledge_p99_seconds", acknowledge.most),
            ("batches_per_second", batchesPerSecond), ("batch_p50_seconds", batch.half),
            ("batch_p99_seconds", batch.most), ("resident_bytes", residentBytes),
            ("cpu_cores", cpuShare), ("open_files", openFiles),
        ]
        members += numbers.map { "\"\($0.0)\":\(Self.number($0.1))" }
        for (name, rates) in [("answers", answers), ("rejections", rejections)] {
            let items = rates.sorted { $0.key < $1.key }.map {
                "\(JSONString.quoted($0.key)):\(Self.number($0.value))"
            }
            members.append("\"\(name)_per_second\":{\(items.joined(separator: ","))}")
        }
        return "{\(members.joined(separator: ","))}\n"
    }

    private static func number(_ value: Double?) -> String {
        guard let value, value.isFinite else { return "null" }
        if value == value.rounded(), abs(value) < 1e15 { return "\(Int64(value))" }
        return "\((value * 10_000).rounded() / 10_000)"
    }
}
