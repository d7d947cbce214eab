import Testing

@testable import Top

@Suite struct TopTests {
    private static func scrape(_ text: String, at seconds: Int64) throws -> Scrape {
        let head = "# HELP x y\ntapline_build_info{version=\"9.9\"} 1\n"
        return try #require(Scrape(Array((head + text).utf8), at: seconds * 1_000_000))
    }

    private static func buckets(_ counts: [Int]) -> String {
        zip(["0.01", "0.1", "1", "+Inf"], counts).map {
            "tapline_acknowledge_seconds_bucket{le=\"\($0)\"} \($1)\n"
        }.joined()
    }

    @Test func otherPagesAreNotADaemon() {
        #expect(Scrape(Array("<html>up 1\n".utf8), at: 0) == nil)
        #expect(Scrape([], at: 0) == nil)
    }

    @Test func ratesAreGrowthByTimeAndUnknownAfterARestart() throws {
        let old = try Self.scrape("a_total 100\nb_total 7\nc{l=\"x\"} 1\n", at: 10)
        let new = try Self.scrape("a_total 160\nb_total 3\nc{l=\"x\"} 5\nc{l=\"y\"} 8\n", at: 12)
        let interval = Interval(before: old, now: new)
        #expect(interval.rate("a_total") == 30)
        #expect(interval.rate("b_total") == nil)
        #expect(interval.rate("none") == nil)
        #expect(interval.rates("c", "l") == ["x": 2, "y": 4])
    }

    /// By hand, from the rule of `histogram_quantile`.
    @Test func quantilesAreOfTheIntervalAlone() throws {
        let name = "tapline_acknowledge_seconds"
        let old = try Self.scrape(Self.buckets([1_000, 1_000, 1_000, 1_000]), at: 0)
        // 10 up to 10 ms, 80 up to 100 ms, 10 up to 1 s.
        let new = try Self.scrape(Self.buckets([1_010, 1_090, 1_100, 1_100]), at: 1)
        let interval = Interval(before: old, now: new)
        let half = try #require(interval.quantile(0.5, name))
        #expect(abs(half - (0.01 + 0.09 * 40 / 80)) < 1e-12)
        let most = try #require(interval.quantile(0.99, name))
        #expect(abs(most - (0.1 + 0.9 * 9 / 10)) < 1e-12)
        #expect(Interval(before: old, now: old).quantile(0.5, name) == nil)
        let slow = try Self.scrape(Self.buckets([1_000, 1_000, 1_000, 1_002]), at: 1)
        #expect(Interval(before: old, now: slow).quantile(0.5, name) == 1, "the last bound known")
    }

    @Test(arguments: [0.0, 1, 999, 12_345.6, 9e15]) func aFrameFitsEightyColumns(
        value: Double
    ) throws {
        let names = [
            "tapline_events_received_total", "tapline_events_stored_total", "tapline_spool_bytes",
            "tapline_spool_unloaded_bytes", "tapline_spool_bytes_max", "tapline_http_connections",
            "tapline_spool_quarantined_records", "tapline_spool_oldest_unloaded_seconds",
            "process_resident_memory_bytes", "tapline_events_spooled",
        ]
        var text = names.map { "\($0) \(value)\n" }.joined()
        for code in ["bad_json", "missing_message_uid", "too_deep", "invalid_utf8", "no_identity"] {
            text += "tapline_lines_rejected_total{code=\"\(code)\"} \(value)\n"
        }
        let old = try Self.scrape("tapline_events_received_total 0\n", at: 0)
        let frame = TopFrame(
            before: old, now: try Self.scrape(text, at: 1), wallClock: 1_000_000)
        var view = TopView(url: "http://127.0.0.1:8080")
        for _ in 0..<100 { #expect(view.lines(frame).allSatisfy { $0.count <= 80 }) }
        let first = view.lines(frame)[0]
        #expect(first.hasPrefix("tapline 9.9 at http://127.0.0.1:8080"))
    }

    @Test func numbersAreForPeople() {
        #expect(TopView.count(1_234_567) == "1,234,567" && TopView.count(-1_234) == "-1,234")
        #expect([nil, 0, 1.25, 1_234].map(TopView.rate) == ["-", "0/s", "1.3/s", "1,234/s"])
        #expect(TopView.duration(0.0012) == "1.2 ms" && TopView.duration(75) == "1 min 15 s")
    }
}
