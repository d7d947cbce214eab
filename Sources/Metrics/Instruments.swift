import Synchronization

/// A number that only grows. Adding takes no lock and allocates nothing.
package final class Counter: Sendable {
    private let total = Atomic<UInt64>(0)

    package init() {}

    /// Adds to the total; safe from any thread.
    package func add(_ count: Int = 1) {
        precondition(count >= 0, "a counter cannot go down by \(count)")
        total.wrappingAdd(UInt64(count), ordering: .relaxed)
    }

    /// The total so far.
    package var value: UInt64 { total.load(ordering: .relaxed) }
}

/// A number that goes up and down. Setting takes no lock and allocates nothing.
package final class Gauge: Sendable {
    private let bits = Atomic<UInt64>(0)

    package init() {}

    /// Replaces the value; safe from any thread.
    package func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    /// Adds to the value, or takes from it; safe from any thread.
    package func add(_ difference: Double) { atomicallyAdd(difference, to: bits) }

    /// The present value.
    package var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

/// Counts of observations by size, in fixed buckets. Observing takes no lock and allocates nothing.
package final class Histogram: Sendable {
    /// The inclusive upper bounds, rising; above the last is the bucket `+Inf`.
    package let bounds: [Double]
    private let counts: [Counter]
    private let sumBits = Atomic<UInt64>(0)

    /// Bounds for waits in seconds, from half a millisecond to a minute.
    package static let seconds: [Double] = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]

    /// Creates an empty histogram.
    ///
    /// - Parameter bounds: Finite and rising.
    package init(bounds: [Double] = Histogram.seconds) {
        precondition(
            bounds.allSatisfy(\.isFinite) && zip(bounds, bounds.dropFirst()).allSatisfy(<),
            "bounds \(bounds) do not rise")
        self.bounds = bounds
        counts = (0...bounds.count).map { _ in Counter() }
    }

    /// Counts one observation; safe from any thread. A NaN is not counted.
    package func observe(_ value: Double) {
        guard !value.isNaN else { return }
        var index = 0
        while index < bounds.count, value > bounds[index] { index &+= 1 }
        counts[index].add(1)
        atomicallyAdd(value, to: sumBits)
    }

    /// The count of observations at most as large as each bound, and as `+Inf`.
    package var cumulativeCounts: [UInt64] {
        var total: UInt64 = 0
        return counts.map { counter in
            total += counter.value
            return total
        }
    }

    /// The sum of all observations.
    package var sum: Double { Double(bitPattern: sumBits.load(ordering: .relaxed)) }
}

private func atomicallyAdd(_ difference: Double, to bits: borrowing Atomic<UInt64>) {
    var old = bits.load(ordering: .relaxed)
    while true {
        let new = (Double(bitPattern: old) + difference).bitPattern
        let (exchanged, found) = bits.weakCompareExchange(
            expected: old, desired: new, ordering: .relaxed)
        if exchanged { return }
        old = found
    }
}
