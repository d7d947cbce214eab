/// What a written quantity measures.
package enum QuantityUnit: Equatable, Sendable {
    /// A plain whole number.
    case count
    /// Bytes: `B`, `KiB`, `MiB`, `GiB`, `TiB`, or decimal `kB`, `MB`, `GB`, `TB`; bare is bytes.
    case bytes
    /// Milliseconds: `ms`, `s`, `m` or `min`, `h`, `d`; a bare number only with a `bareUnit`.
    case milliseconds(bareUnit: String?)

    fileprivate var factors: [(suffix: String, factor: Int)] {
        switch self {
        case .count: [("", 1)]
        case .bytes:
            [
                ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
                ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000),
                ("kB", 1000), ("KB", 1000), ("B", 1), ("", 1),
            ]
        case .milliseconds(let bareUnit):
            QuantityUnit.durations
                + QuantityUnit.durations.filter { $0.suffix == bareUnit }.map { ("", $0.factor) }
        }
    }

    private static let durations: [(suffix: String, factor: Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("m", 60_000), ("s", 1000),
        ("ms", 1),
    ]

    fileprivate var expected: String {
        switch self {
        case .count: "a whole number"
        case .bytes: "a size such as 64MiB"
        case .milliseconds: "a duration such as 24h, 30s or 500ms"
        }
    }
}

/// Why a written quantity could not be read; the text continues "expected …".
package struct QuantityMismatch: Error, Equatable, Sendable {
    /// What would have fitted.
    package let expected: String
}

/// Reads a size, a duration or a count: digits, then a unit (`64MiB`, `24h`, `500ms`, `20000`).
///
/// - Returns: Bytes, milliseconds or the count; a failure for anything else, signs and fractions
///   and what does not fit in 63 bits included.
package func parseQuantity(
    _ text: String, _ unit: QuantityUnit
) -> Result<Int, QuantityMismatch> {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let suffix = text.dropFirst(digits.count)
    guard let number = Int(digits),
        let factor = unit.factors.first(where: { $0.suffix == suffix })?.factor
    else { return .failure(QuantityMismatch(expected: unit.expected)) }
    let (value, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? .failure(QuantityMismatch(expected: unit.expected)) : .success(value)
}

/// Writes a quantity so that `parseQuantity` reads the same: in the largest unit that divides it.
package func formatQuantity(_ value: Int, _ unit: QuantityUnit) -> String {
    let binary = unit.factors.filter { !["TB", "GB", "MB", "kB", "KB", "m"].contains($0.suffix) }
    for (suffix, factor) in binary where value >= factor && value % factor == 0 {
        // Plain bytes and counts carry no unit.
        return suffix == "B" ? String(value) : "\(value / factor)\(suffix)"
    }
    switch unit {
    case .milliseconds: return "\(value)ms"
    default: return String(value)
    }
}
