/// XHTML in the making. What stands in a literal is markup; a `String` that is interpolated is text,
/// and cannot become markup: names come from events, and so from anybody.
struct Markup: ExpressibleByStringInterpolation {
    /// The source so far.
    private(set) var source: String

    init(stringLiteral value: String) { source = value }

    init(stringInterpolation: StringInterpolation) { source = stringInterpolation.source }

    /// Adds more markup.
    static func += (left: inout Markup, right: Markup) { left.source += right.source }

    /// One after the other.
    static func + (left: Markup, right: Markup) -> Markup { "\(left)\(right)" }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var source = ""

        init(literalCapacity: Int, interpolationCount: Int) {
            source.reserveCapacity(literalCapacity * 2)
        }

        mutating func appendLiteral(_ literal: String) { source += literal }

        /// Text, in content or in a quoted attribute.
        mutating func appendInterpolation(_ text: String) { source += escaped(text) }
        mutating func appendInterpolation(_ number: some BinaryInteger) { source += "\(number)" }
        mutating func appendInterpolation(_ markup: Markup) { source += markup.source }
        mutating func appendInterpolation(_ parts: [Markup]) {
            for part in parts { source += part.source }
        }
    }
}

/// The text as XML may have it: no markup, no control characters, nothing that turns the direction of
/// what comes after it.
private func escaped(_ text: String) -> String {
    var result = ""
    for scalar in printable(text).unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "'": result += "&#39;"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}
