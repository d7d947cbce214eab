import Glibc

/// What a file descriptor's terminal can do. The one place that decides on colour and progress.
package struct Terminal: Sendable {
    /// The descriptor.
    package let descriptor: Int32
    /// Whether it is a terminal at all; progress is shown only then.
    package let isTerminal: Bool
    /// Whether to colour: a terminal, not `dumb`, and `NO_COLOR` is not set.
    package let usesColour: Bool

    /// Looks at a descriptor.
    package init(descriptor: Int32, surroundings: Surroundings) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        usesColour =
            isTerminal && surroundings.variable("NO_COLOR") == nil
            && surroundings.variable("TERM") != "dumb"
    }

    /// Its width now; 80 where that is not known.
    package var columns: Int {
        var size = winsize()
        // SAFETY: the request fills exactly this structure.
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return 80
        }
        return Int(size.ws_col)
    }

    /// Writes text, as often as it takes.
    package func write(_ text: String) {
        writeAll(Array(text.utf8), to: descriptor)
    }

    /// Puts text in a colour (`31` red, `32` green, `1` bold), where colours are used.
    package func styled(_ text: String, _ code: Int) -> String {
        usesColour ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

/// Writes bytes to a descriptor, as often as it takes.
///
/// - Returns: Whether all were written; false for example when the reader is gone.
@discardableResult
package func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var written = 0
    while written < bytes.count {
        // SAFETY: the range written .. count lies inside the buffer.
        let count = unsafe bytes.withUnsafeBytes { buffer in
            unsafe write(descriptor, buffer.baseAddress! + written, buffer.count - written)
        }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        written += count
    }
    return true
}

/// A line at the bottom of the terminal that is written over and over; silent elsewhere.
package struct ProgressLine {
    private let terminal: Terminal
    private var isShown = false

    /// Makes a line that is not shown yet.
    package init(terminal: Terminal) { self.terminal = terminal }

    /// Shows a fraction as a bar with text at its right; without a fraction, the text alone.
    package mutating func show(fraction: Double?, _ text: String) {
        guard terminal.isTerminal else { return }
        let columns = terminal.columns
        terminal.write("\r" + progressText(fraction: fraction, text, columns: columns) + "\u{1B}[K")
        isShown = true
    }

    /// Takes the line away.
    package mutating func clear() {
        guard isShown else { return }
        terminal.write("\r\u{1B}[K")
        isShown = false
    }
}

/// A bar and a text that fit on one line of the terminal.
package func progressText(fraction: Double?, _ text: String, columns: Int) -> String {
    let width = columns - text.count - 10
    guard let fraction, width >= 10 else { return String(text.prefix(max(columns - 1, 0))) }
    let cells = min(width, 40)
    let whole = min(max(fraction, 0), 1)
    let filled = Int(whole * Double(cells))
    let bar = String(repeating: "=", count: filled) + String(repeating: " ", count: cells - filled)
    let percent = String(Int(whole * 100))
    return "[\(bar)] " + String(repeating: " ", count: 3 - percent.count) + "\(percent)% \(text)"
}

/// Bytes for people: `812 B`, `14.2 MB`.
package func humanBytes(_ bytes: Int) -> String {
    var value = Double(bytes)
    var unit = "B"
    for larger in ["kB", "MB", "GB", "TB"] where value >= 999.5 {
        value /= 1000
        unit = larger
    }
    return unit == "B" ? "\(bytes) B" : "\(fixed(value, value < 100 ? 1 : 0)) \(unit)"
}

/// A count for people, its thousands apart: `200,141`.
package func grouped(_ count: Int) -> String {
    var text = ""
    for (index, digit) in String(count.magnitude).enumerated() {
        let left = String(count.magnitude).count - index
        if index > 0, left % 3 == 0 { text += "," }
        text.append(digit)
    }
    return count < 0 ? "-" + text : text
}

/// Seconds for people: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`.
package func humanSeconds(_ seconds: Double) -> String {
    if seconds < 9.95 { return "\(fixed(max(seconds, 0), 1)) s" }
    let whole = Int(seconds.rounded())
    if whole < 60 { return "\(whole) s" }
    func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    if whole < 3600 { return "\(whole / 60) min \(two(whole % 60)) s" }
    return "\(whole / 3600) h \(two(whole / 60 % 60)) min"
}

/// A number with a fixed count of decimals, rounded half away from zero.
package func fixed(_ value: Double, _ decimals: Int) -> String {
    var scale = 1.0
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int((abs(value) * scale).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard decimals > 0 else { return sign + String(scaled) }
    var digits = String(scaled)
    while digits.count <= decimals { digits = "0" + digits }
    return sign + digits.dropLast(decimals) + "." + digits.suffix(decimals)
}

/// Says what went wrong on stderr: one line, and a hint where there is one.
package func complain(_ message: String, hint: String? = nil) {
    writeAll(Array((message + "\n" + (hint.map { "hint: \($0)\n" } ?? "")).utf8), to: 2)
}
