import Platform

/// What a run did and how fast.
package struct BenchSummary: Equatable, Sendable {
    /// Chooses the run's events again.
    package var seed: UInt64 = 0
    /// Events of bodies that may have been sent.
    package var issued = 0
    /// Events that were acknowledged, each once.
    package var acknowledged = 0
    /// Bodies that were acknowledged, each once.
    package var bodies = 0
    /// Tries that came to nothing and were made again.
    package var retries = 0
    /// Bodies sent again after their acknowledgement, for `--resend`, and acknowledged again.
    package var resent = 0
    /// Bodies of the clients that ignore `Retry-After`: acknowledged, and refused or failed.
    package var stormAcknowledged = 0
    package var stormRefused = 0
    /// Bytes of acknowledged bodies, inflated and as sent.
    package var bytes = 0
    package var bytesSent = 0
    /// From the first body to the last answer.
    package var seconds = 0.0
    /// From the start of a try to its acknowledgement, of bodies that were not resent.
    package var latencies = Latencies()
    /// The first few answers that break the contract, and why bodies were given up.
    package var problems: [String] = []
    /// How many of them there were.
    package var problemCount = 0
    /// Why it ended before the last event, if it did.
    package var stopReason: String?

    /// Makes an empty summary.
    package init() {}

    /// Whether every event was issued and acknowledged.
    package var isComplete: Bool { stopReason == nil && problemCount == 0 }

    /// Events acknowledged a second.
    package var eventsPerSecond: Double { seconds > 0 ? Double(acknowledged) / seconds : 0 }

    /// How many problems are kept.
    static let problemsMax = 10

    mutating func note(_ problem: String) {
        problemCount += 1
        if problems.count < Self.problemsMax { problems.append(problem) }
    }

    /// The percentiles that are shown, by name, in microseconds.
    package var percentiles: [(name: String, microseconds: Int64)] {
        [("p50", 500), ("p90", 900), ("p99", 990)].map {
            ($0.0, latencies.quantile(perThousand: $0.1))
        } + [("max", latencies.max)]
    }

    /// One JSON object on one line.
    package var json: String {
        let times = percentiles.map { ",\"\($0.name)_us\":\($0.microseconds)" }.joined()
        let list = problems.map(JSONString.quoted).joined(separator: ",")
        return """
            {"seed":\(seed),"issued":\(issued),"acknowledged":\(acknowledged),"bodies":\(bodies),\
            "retries":\(retries),"resent":\(resent),"storm_acknowledged":\(stormAcknowledged),\
            "storm_refused":\(stormRefused),"bytes":\(bytes),"bytes_sent":\(bytesSent),\
            "milliseconds":\(Int((seconds * 1000).rounded())),\
            "events_per_second":\(Int(eventsPerSecond))\(times),"complete":\(isComplete),\
            "stopped":\(stopReason.map(JSONString.quoted) ?? "null"),"problems":[\(list)]}

            """
    }
}

/// How far a run is.
package struct BenchProgress: Sendable {
    package let acknowledged: Int
    package let events: Int
    /// Events a second since the last progress.
    package let rate: Double
    /// Since the start.
    package let seconds: Double
    package let p99Microseconds: Int64
    /// Why it is waiting, while no body is under way.
    package let waiting: String?
}
