import Client
import Platform
import Top

/// What a running daemon says of itself, for the laws that tables cannot show.
package struct DaemonProbe: Sendable {
    /// The daemon's URL.
    package let url: String
    /// The app's ingest key; nil leaves the fresh event out.
    package let key: String?

    /// Makes a probe.
    package init(url: String, key: String?) {
        self.url = url
        self.key = key
    }

    /// A fresh event must be stored in so many seconds.
    static let freshSecondsMax = 30.0
    /// What the daemon's process may hold: far above what any load of the tests makes it take, and far
    /// below what a leak of an hour would.
    static let limits: [(metric: String, name: String, limit: Double)] = [
        ("process_resident_memory_bytes", "bytes of memory", 1_073_741_824),
        ("process_open_fds", "descriptors", 2048),
        ("tapline_threads", "threads", 64),
    ]

    /// L5: sends an event that was never sent and waits until the database has it.
    func freshEvent() throws(ClientError) -> LawVerdict {
        guard let key else { return LawVerdict(.fresh, nil, "not looked at: no --key") }
        var configuration = SendConfiguration()
        let events = try Target(url: url, key: key).url
        configuration.url = events + (events.contains("?") ? "&" : "?") + "ack=stored"
        configuration.key = key
        configuration.retrySeconds = Self.freshSecondsMax
        configuration.userAgent = "tapline-bench"
        let id = "bench-fresh-\(Hex.encode(Random.bytes(16)))"
        let line = #"{"type":"screen_view","device_id":"\#(id)","event_uid":"\#(id)"}"# + "\n"
        let began = Clock.monotonic()
        let summary = try Sender(configuration).send([.memory(name: "fresh", Array(line.utf8))])
        let milliseconds = (Clock.monotonic() - began) / 1000
        guard summary.accepted == 1 else {
            let reason = summary.stopReason ?? summary.problems.first?.message ?? "not accepted"
            return LawVerdict(
                .fresh, false, "a fresh event is not stored after \(milliseconds) ms: \(reason)")
        }
        return LawVerdict(.fresh, true, "a fresh event was stored in \(milliseconds) ms")
    }

    /// L6: reads the size of the process.
    func process() throws(ClientError) -> LawVerdict {
        var fetcher = try Fetcher(
            url: Target(url: url, key: nil).page("/metrics").url, path: "/metrics",
            userAgent: "tapline-bench", timeoutMilliseconds: 10_000)
        do throws(ClientError) {
            return Self.judge(try fetcher.get())
        } catch {
            guard case .notAnswered = error else { throw error }
            return LawVerdict(.bounded, false, "\(error)")
        }
    }

    /// Judges what /metrics has.
    static func judge(_ page: [UInt8]) -> LawVerdict {
        guard let metrics = Scrape(page, at: Clock.monotonic()) else {
            return LawVerdict(.bounded, false, "/metrics is not of a daemon of Tapline")
        }
        var parts: [String] = []
        var tooMuch: [String] = []
        for (metric, name, limit) in limits {
            guard let value = metrics[metric] else {
                tooMuch.append("\(metric) is not among the metrics")
                continue
            }
            parts.append("\(Int(value)) \(name)")
            if value > limit { tooMuch.append("\(Int(value)) \(name), limit is \(Int(limit))") }
        }
        return LawVerdict(.bounded, tooMuch.isEmpty, parts.joined(separator: ", "), tooMuch)
    }
}
