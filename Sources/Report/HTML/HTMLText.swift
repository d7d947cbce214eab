// Numbers as they stand in the page.

/// Percent with two digits after the point; `n/a` where it is not known.
func percentText(_ value: Double?) -> String {
    value.map { decimal($0 * 100, digits: 2) + "\u{A0}%" } ?? "n/a"
}

/// The bounds of an interval, in percent.
func intervalText(_ rate: RateValue) -> String {
    guard let low = rate.low, let high = rate.high else { return "n/a" }
    return decimal(low * 100, digits: 2) + "–" + decimal(high * 100, digits: 2) + "\u{A0}%"
}

/// A percentage for an axis, without zeros at its end.
func percentTick(_ value: Double) -> String {
    var text = decimal(value * 100, digits: 2)
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text + "\u{A0}%"
}

/// A count for an axis: `1,500`, `20k`, `3M`.
func countTick(_ value: Double) -> String {
    let count = Int64(value.rounded())
    if count >= 1_000_000, count % 100_000 == 0 { return short(value / 1_000_000) + "M" }
    if count >= 10_000, count % 100 == 0 { return short(value / 1000) + "k" }
    return grouped(count)
}

private func short(_ value: Double) -> String {
    let text = decimal(value, digits: 1)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}
