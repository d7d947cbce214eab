import Glibc

/// The statistics of reports and comparisons. Formulas, sources and test vectors: docs/reports.md.
package enum Statistics {
    /// The 97.5 % quantile of the normal distribution.
    package static let z95 = 1.959963984540054
    /// The 80 % quantile of the normal distribution.
    package static let z80 = 0.8416212335729143

    /// Wilson's 95 % interval of `k` of `n` (Wilson 1927, without continuity correction), as
    /// `tapline.wilson_low` and `wilson_high` compute it.
    ///
    /// - Returns: Nil when `n` is 0.
    package static func wilson(_ k: Int64, of n: Int64) -> (low: Double, high: Double)? {
        guard n > 0 else { return nil }
        let (k, n) = (Double(k), Double(n))
        let square = z95 * z95
        let middle = k + square / 2
        let width = z95 * (k * (n - k) / n + square / 4).squareRoot()
        let low = k == 0 ? 0 : max(0, (middle - width) / (n + square))
        let high = k == n ? 1 : min(1, (middle + width) / (n + square))
        return (low, high)
    }

    /// A part of a whole that is known.
    package static func rate(_ k: Int64, of n: Int64) -> RateValue {
        let bounds = wilson(k, of: n)
        return RateValue(
            numerator: k, denominator: n, value: n > 0 ? Double(k) / Double(n) : nil,
            low: bounds?.low, high: bounds?.high)
    }

    /// A difference of two proportions.
    package struct Difference: Equatable, Sendable {
        /// The first proportion less the second.
        package let value: Double
        /// Newcombe's 95 % interval (1998, method 10: of two Wilson intervals).
        package let low: Double
        package let high: Double
        /// The pooled two-proportion statistic; nil where both are 0, or both 1.
        package let z: Double?
        /// Two-sided; nil without `z`.
        package let p: Double?
        /// Whether every pooled expected count is 5 or more: else `p` is no verdict.
        package let hasEnoughData: Bool
    }

    /// Compares `a` of `n` with `b` of `m`.
    ///
    /// - Returns: Nil when one of the wholes is 0.
    package static func difference(
        _ a: Int64, of n: Int64, _ b: Int64, of m: Int64
    ) -> Difference? {
        guard let first = wilson(a, of: n), let second = wilson(b, of: m) else { return nil }
        let (p1, p2) = (Double(a) / Double(n), Double(b) / Double(m))
        let value = p1 - p2
        func length(_ x: Double, _ y: Double) -> Double { (x * x + y * y).squareRoot() }
        let pooled = Double(a + b) / Double(n + m)
        let error = (pooled * (1 - pooled) * (1 / Double(n) + 1 / Double(m))).squareRoot()
        let z = error > 0 ? value / error : nil
        let least = Double(min(n, m)) * min(pooled, 1 - pooled)
        return Difference(
            value: value, low: max(-1, value - length(p1 - first.low, second.high - p2)),
            high: min(1, value + length(first.high - p1, p2 - second.low)),
            z: z, p: z.map { erfc(abs($0) / 2.0.squareRoot()) }, hasEnoughData: least >= 5)
    }

    /// Holm's adjustment (1979) of p values: so that of all pairs together one in twenty is wrong.
    package static func holm(_ values: [Double]) -> [Double] {
        var adjusted = values
        var largest = 0.0
        for (rank, index) in values.indices.sorted(by: { values[$0] < values[$1] }).enumerated() {
            largest = max(largest, min(1, Double(values.count - rank) * values[index]))
            adjusted[index] = largest
        }
        return adjusted
    }

    /// How many units each of two campaigns needs so that a difference as large as that of `p1` and
    /// `p2` is seen at 5 %, two-sided, with power 0.8 (Fleiss, Levin and Paik, "Statistical Methods for
    /// Rates and Proportions", equal groups, without continuity correction).
    ///
    /// - Returns: Nil when they are equal.
    package static func unitsNeeded(_ p1: Double, _ p2: Double) -> Int64? {
        guard p1 != p2 else { return nil }
        let mean = (p1 + p2) / 2
        let root =
            z95 * (2 * mean * (1 - mean)).squareRoot()
            + z80 * (p1 * (1 - p1) + p2 * (1 - p2)).squareRoot()
        let units = root * root / ((p1 - p2) * (p1 - p2))
        return units < 1e18 ? Int64(units.rounded(.up)) : nil
    }
}
