/// Times of answers, kept as counts in buckets a 32nd apart: any number of them in 16 KiB.
package struct Latencies: Equatable, Sendable {
    private var counts = [Int](repeating: 0, count: 64 * 32)
    /// How many.
    package private(set) var count = 0
    /// The longest, in microseconds.
    package private(set) var max: Int64 = 0

    /// None yet.
    package init() {}

    /// Adds one, in microseconds.
    package mutating func add(_ microseconds: Int64) {
        let value = Swift.max(microseconds, 0)
        counts[Self.bucket(value)] += 1
        count += 1
        max = Swift.max(max, value)
    }

    /// What so many in a thousand did not exceed, in microseconds: at most a 32nd above the true value;
    /// 0 where there is none.
    package func quantile(perThousand: Int) -> Int64 {
        guard count > 0 else { return 0 }
        let wanted = (count * perThousand + 999) / 1000
        var seen = 0
        for (bucket, here) in counts.enumerated() where here > 0 {
            seen += here
            if seen >= wanted { return min(Self.last(of: bucket), max) }
        }
        return max
    }

    /// Values below 64 have a bucket each; above, the highest bit and the five after it choose one.
    private static func bucket(_ value: Int64) -> Int {
        guard value >= 64 else { return Int(value) }
        let shift = 58 - value.leadingZeroBitCount
        return shift * 32 + Int(value >> Int64(shift))
    }

    private static func last(of bucket: Int) -> Int64 {
        guard bucket >= 64 else { return Int64(bucket) }
        let shift = Int64(bucket / 32 - 1)
        return (Int64(bucket % 32 + 32 + 1) << shift) - 1
    }
}
