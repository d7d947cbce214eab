// How numbers and names look in text that people read.

/// A number that is not negative, with so many digits after the point.
func decimal(_ value: Double, digits: Int) -> String {
    var scale = 1
    for _ in 0..<digits { scale *= 10 }
    let scaled = Int((value * Double(scale)).rounded())
    guard digits > 0 else { return "\(scaled)" }
    let fraction = String(scaled % scale)
    return "\(scaled / scale)." + String(repeating: "0", count: digits - fraction.count) + fraction
}

/// The text without what would move a terminal's cursor, turn the direction of what comes after it, or
/// is no character at all.
func printable(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        let isBad =
            switch scalar.value {
            case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069, 0xFDD0...0xFDEF: true
            default: scalar.value & 0xFFFE == 0xFFFE
            }
        result.append(isBad ? "\u{FFFD}" : scalar)
    }
    return String(result)
}

/// A count, its thousands apart: `200,141`; `n/a` where it is not known.
func grouped(_ count: Int64?) -> String {
    guard let count else { return "n/a" }
    var text = String(count.magnitude)
    for place in stride(from: text.count - 3, to: 0, by: -3) {
        text.insert(",", at: text.index(text.startIndex, offsetBy: place))
    }
    return count < 0 ? "-" + text : text
}

/// Seconds for people: `4.2 s`, `12 min`, `3 h`, `2 d`.
func duration(_ seconds: Double) -> String {
    var value = max(seconds, 0)
    var unit = "s"
    for (size, larger) in [(60.0, "min"), (60, "h"), (24, "d")] {
        guard value >= size else { break }
        value /= size
        unit = larger
    }
    let text = decimal(value, digits: value < 9.95 ? 1 : 0)
    return (text.hasSuffix(".0") ? String(text.dropLast(2)) : text) + "\u{A0}" + unit
}

/// The text in at most `width` characters, its middle left out.
func elided(_ text: String, to width: Int) -> String {
    guard text.count > width else { return text }
    let head = width / 2
    return text.prefix(head) + "…" + text.suffix(width - head - 1)
}

/// The text in lines of at most `width` characters, broken at spaces.
func wrapped(_ text: String, width: Int = 80) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
        if !line.isEmpty, line.count + word.count + 1 > width {
            lines.append(line)
            line = ""
        }
        line += (line.isEmpty ? "" : " ") + word
    }
    return lines + (line.isEmpty ? [] : [line])
}

/// Counts as a line of bars, the tallest for the most.
func sparkline(_ counts: [Int64]) -> String {
    let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
    let most = max(counts.max() ?? 0, 1)
    // The lowest is for none alone.
    return String(counts.map { bars[Int((Double($0) / Double(most) * 7).rounded(.up))] })
}
