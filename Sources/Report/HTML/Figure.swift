/// A table of numbers; the first columns of a row are its name.
struct NumberTable {
    var caption: String
    var heads: [String]
    var rows: [[String]]
    /// How many columns name the row.
    var names = 1

    var markup: Markup {
        let head = heads.enumerated().map { index, name -> Markup in
            "<th scope=\"col\"\(align(index))>\(name)</th>"
        }
        let body = rows.map { row -> Markup in
            let cells = row.enumerated().map { index, text -> Markup in
                index < names
                    ? "<th scope=\"row\">\(text)</th>" : "<td>\(text)</td>"
            }
            return "<tr>\(cells)</tr>\n"
        }
        return """
            <div class="scroll" role="region" aria-label="\(caption)" tabindex="0"><table>
            <caption>\(caption)</caption>
            <thead><tr>\(head)</tr></thead>
            <tbody>
            \(body)</tbody></table></div>

            """
    }

    private func align(_ index: Int) -> Markup { index < names ? " class=\"first\"" : "" }
}

/// A plot with what it says in words and in numbers.
struct Figure {
    /// A word, of which ids are made.
    var id: String
    var title: String
    /// What is to be known about it; shown.
    var note: String
    /// What a person sees in the plot; read aloud.
    var description: String
    /// Pixels.
    var height: Double
    /// Nil where there is nothing to draw: the note says why.
    var plot: Markup?
    /// Whether there are labels left of the plot.
    var hasAxis = false
    var table: NumberTable?

    var markup: Markup {
        """
        <section class="figure" id="\(id)"><h2>\(title)</h2>
        <p class="note">\(note)</p>
        \(drawing)\(numbers)</section>

        """
    }

    private var drawing: Markup {
        guard let plot else { return "" }
        let place: Markup = hasAxis ? " class=\"beside\"" : ""
        return """
            <svg role="img"\(place) width="100%" height="\(coordinate(height))" \
            aria-labelledby="\(id)-title \(id)-text">
            <title id="\(id)-title">\(title)</title>
            <desc id="\(id)-text">\(description)</desc>
            \(plot)
            </svg>

            """
    }

    private var numbers: Markup {
        guard let table, !table.rows.isEmpty else { return "" }
        return "<details><summary>Numbers</summary>\(table.markup)</details>\n"
    }
}
