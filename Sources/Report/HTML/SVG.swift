// Plots are SVG whose x is a share of the width and whose y and text are in pixels: the same picture
// fits a phone and a screen, and its text is never scaled.

/// Maps values from 0 to `max` onto a length.
struct Scale {
    /// The value at the end; above 0.
    let max: Double
    let ticks: [Double]

    /// Ends at a round number, with about `count` ticks.
    ///
    /// - Parameter step: Ticks are no closer: 1 for what is counted.
    init(upTo value: Double, ticks count: Int = 4, step least: Double = 0) {
        let wanted = Swift.max(value, least, 1e-6) / Double(count)
        var step = 1e-6
        while step < wanted * 0.999 {
            // 1, 2, 5, 10.
            for factor in [2, 2.5, 2] where step < wanted * 0.999 { step *= factor }
        }
        step = Swift.max(step, least)
        let steps = Swift.max((value / step - 1e-9).rounded(.up), 1)
        max = step * steps
        ticks = (0...Int(steps)).map { Double($0) * step }
    }

    /// The share of the length at which a value is, in 0…1.
    func share(_ value: Double) -> Double { Swift.min(Swift.max(value / max, 0), 1) }
}

/// A number of an SVG attribute.
func coordinate(_ value: Double) -> Markup {
    let text = decimal(abs(value), digits: 2)
    return value < 0 ? "-\(text)" : "\(text)"
}

/// A share of the width.
func across(_ share: Double) -> Markup { "\(coordinate(share * 100))%" }

/// Where a text stands to its point.
enum Anchor: String {
    case start, middle, end
}

/// A text; `style` names classes of the page's style sheet.
func label(
    _ text: String, x: Double, y: Double, _ anchor: Anchor = .start, style: String = "tick"
) -> Markup {
    """
    <text x="\(across(x))" y="\(coordinate(y))" text-anchor="\(anchor.rawValue)" \
    class="\(style)">\(text)</text>
    """
}

/// A straight line.
func line(
    _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, style: String = "grid"
) -> Markup {
    """
    <line x1="\(across(x1))" y1="\(coordinate(y1))" x2="\(across(x2))" y2="\(coordinate(y2))" \
    class="\(style)"/>
    """
}

/// A rectangle, with a text that shows where the mouse rests on it.
func box(
    x: Double, y: Double, width: Double, height: Double, style: String = "bar", tip: String? = nil
) -> Markup {
    """
    <rect x="\(across(x))" y="\(coordinate(y))" width="\(across(width))" \
    height="\(coordinate(height))" class="\(style)">\(title(tip))</rect>
    """
}

/// A dot.
func dot(x: Double, y: Double, radius: Double = 4.5, style: String = "dot", tip: String? = nil)
    -> Markup
{
    """
    <circle cx="\(across(x))" cy="\(coordinate(y))" r="\(coordinate(radius))" \
    class="\(style)">\(title(tip))</circle>
    """
}

private func title(_ text: String?) -> Markup {
    text.map { "<title>\($0)</title>" } ?? ""
}

/// A part of the width, with shares of its own; what leaves it is cut off.
func clipped(x: Double, y: Double, width: Double, height: Double, _ content: Markup) -> Markup {
    """
    <svg x="\(across(x))" y="\(coordinate(y))" width="\(across(width))" \
    height="\(coordinate(height))">\(content)</svg>
    """
}

/// The pixels left of a plot, for the labels of a y axis.
let axisWidth = 46.0

/// A label of a y axis.
func axisLabel(_ text: String, y: Double) -> Markup {
    "<text x=\"-8\" y=\"\(coordinate(y))\" text-anchor=\"end\" class=\"tick\">\(text)</text>"
}

/// A text that begins where the labels of a y axis do.
func axisName(_ text: String, y: Double) -> Markup {
    """
    <text x="-\(coordinate(axisWidth))" y="\(coordinate(y))" class="name">\(text)</text>
    """
}

/// The name of a row in a clipped place: shorter on a phone.
func rowName(_ name: String, width: Double, y: Double, height: Double) -> Markup {
    clipped(
        x: 0, y: y, width: width, height: height,
        """
        <g><title>\(name)</title>\
        \(label(elided(name, to: 40), x: 0, y: height / 2 + 4, style: "name wide"))\
        \(label(elided(name, to: 13), x: 0, y: height / 2 + 4, style: "name narrow"))</g>
        """)
}

/// A path over shares of the width and pixels of height, stretched to fit.
struct Path {
    private var commands: Markup = ""

    /// Points in the order of x; y grows downwards.
    mutating func move(_ x: Double, _ y: Double) { add("M", x, y) }
    mutating func draw(_ x: Double, _ y: Double) { add("L", x, y) }
    mutating func close() { commands += "Z" }

    private mutating func add(_ command: Markup, _ x: Double, _ y: Double) {
        commands += "\(command)\(coordinate(x * 1000)) \(coordinate(y))"
    }

    /// The path in a place that is `height` high.
    func markup(y: Double, height: Double, style: String) -> Markup {
        """
        <svg x="0" y="\(coordinate(y))" width="100%" height="\(coordinate(height))" \
        viewBox="0 0 1000 \(coordinate(height))" preserveAspectRatio="none" class="open">\
        <path d="\(commands)" class="\(style)"/></svg>
        """
    }
}
