import Metrics
import Platform
import Testing

struct MetricsTests {
    static func text(_ registry: Registry) -> String {
        String(decoding: registry.render(), as: UTF8.self)
    }

    @Test func aFamilyHasOneHelpAndOneLineASeries() {
        let registry = Registry()
        let accepted = registry.counter("x_total", "Events seen.", ["verdict": "accepted"])
        let rejected = registry.counter("x_total", "Events seen.", ["verdict": "rejected"])
        accepted.add(41)
        accepted.add()
        rejected.add(0)
        #expect(
            Self.text(registry) == """
                # HELP x_total Events seen.
                # TYPE x_total counter
                x_total{verdict="accepted"} 42
                x_total{verdict="rejected"} 0

                """)
    }

    @Test func labelsAndHelpAreEscaped() {
        let registry = Registry()
        _ = registry.gauge("g", "a\\b\n\"c\"", ["path": "C:\\x\n\"y\"", "b": "ü"])
        #expect(
            Self.text(registry) == """
                # HELP g a\\\\b\\n"c"
                # TYPE g gauge
                g{path="C:\\\\x\\n\\"y\\"",b="ü"} 0

                """)
    }

    @Test func aCallbackIsAskedAtEachRendering() {
        let registry = Registry()
        let gauge = Gauge()
        registry.gauge("g", "G.") { gauge.value }
        registry.counter("c_total", "C.") { 7 }
        gauge.set(1.5)
        #expect(Self.text(registry).contains("\ng 1.5\n"))
        gauge.add(-2)
        #expect(Self.text(registry).contains("\ng -0.5\n"))
        #expect(Self.text(registry).contains("# TYPE c_total counter\nc_total 7\n"))
    }

    @Test(arguments: [
        (Double.nan, "NaN"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (3, "3"), (1e300, "1e+300"),
    ])
    func numbersAreInThePrometheusForm(value: Double, expected: String) {
        let registry = Registry()
        registry.gauge("g", "G.").set(value)
        #expect(Self.text(registry).hasSuffix("g \(expected)\n"))
    }

    @Test func aBoundIsInclusiveAndBucketsAreCumulative() {
        let registry = Registry()
        let histogram = registry.histogram(
            "h_seconds", "H.", ["op": "copy"], bounds: [0.5, 1, 2])
        for value in [0.5, 0.500001, 1, 2, 2.5, .nan] { histogram.observe(value) }
        #expect(histogram.cumulativeCounts == [1, 3, 4, 5])
        #expect(
            Self.text(registry) == """
                # HELP h_seconds H.
                # TYPE h_seconds histogram
                h_seconds_bucket{op="copy",le="0.5"} 1
                h_seconds_bucket{op="copy",le="1"} 3
                h_seconds_bucket{op="copy",le="2"} 4
                h_seconds_bucket{op="copy",le="+Inf"} 5
                h_seconds_sum{op="copy"} 6.500001
                h_seconds_count{op="copy"} 5

                """)
    }

    @Test func nothingIsLostBetweenThreads() {
        let counter = Counter()
        let histogram = Histogram(bounds: [1])
        let gauge = Gauge()
        let threads = (0..<4).map { _ in
            Thread.start(name: "count") {
                for _ in 0..<10_000 {
                    counter.add()
                    histogram.observe(1)
                    gauge.add(1)
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(counter.value == 40_000)
        #expect(histogram.sum == 40_000)
        #expect(histogram.cumulativeCounts == [40_000, 40_000])
        #expect(gauge.value == 40_000)
    }
}
