extension CommandSpec {
    /// The command that the words select, or nil.
    package func command(at path: [String]) -> CommandSpec? {
        var command = self
        for word in path {
            guard let next = command.commands.first(where: { $0.name == word }) else { return nil }
            command = next
        }
        return command
    }

    /// The synopsis after the command's own words.
    package var synopsis: String {
        var parts: [String] = []
        if !commands.isEmpty { parts.append("COMMAND") }
        for option in options where !option.hidden {
            let text = option.display
            parts.append(option.required ? text : "[\(text)]\(option.repeats ? "..." : "")")
        }
        if let operand {
            let many = operand.count.upperBound > max(1, operand.count.lowerBound) ? "..." : ""
            parts.append(
                operand.count.lowerBound > 0 ? operand.name + many : "[\(operand.name)\(many)]")
        }
        return parts.joined(separator: " ")
    }

    /// The text of `--help`: at most 80 columns.
    ///
    /// - Parameter path: The words that select this command, without `tapline`.
    package func helpText(path: [String]) -> String {
        let title = (["tapline"] + path).joined(separator: " ")
        var text = wrapped("Usage: \(title) \(synopsis)", indent: 4)
        text += "\n" + wrapped(summary.prefix(1).uppercased() + summary.dropFirst() + ".")
        for paragraph in details { text += "\n" + wrapped(paragraph) }
        if !commands.isEmpty {
            text += "\nCommands:\n" + columns(commands.map { ($0.name, $0.summary) })
        }
        if let operand { text += "\nArguments:\n" + columns([(operand.name, operand.help)]) }
        text += "\nOptions:\n" + columns(shownOptions.map { ($0.listed, $0.explained) })
        if !examples.isEmpty {
            text += "\nExamples:\n" + examples.map { "  \($0)\n" }.joined()
        }
        if !commands.isEmpty {
            text += "\nRun \"\(title) COMMAND --help\" for the options of a command.\n"
        }
        return text
    }
}

extension OptionSpec {
    /// `--name VALUE` or `--name`.
    package var display: String { "--\(name)" + (placeholder.map { " \($0)" } ?? "") }

    /// `-n, --name VALUE`.
    package var listed: String { (short.map { "-\($0), " } ?? "") + display }

    /// The help with its default.
    package var explained: String { help + (defaultText.map { " (default: \($0))" } ?? "") }
}

/// Breaks a paragraph at spaces; lines after the first are indented. Ends with a newline.
func wrapped(_ text: String, indent: Int = 0, width: Int = 80) -> String {
    var lines: [String] = []
    var line = ""
    for word in synopsisWords(text) {
        if !line.isEmpty, line.count + 1 + word.count > width {
            lines.append(line)
            line = String(repeating: " ", count: indent) + word
        } else {
            line += line.isEmpty ? word : " " + word
        }
    }
    return (lines + [line]).joined(separator: "\n") + "\n"
}

/// Words between spaces, but never a break inside brackets.
private func synopsisWords(_ text: String) -> [String] {
    var words: [String] = []
    var word = ""
    var depth = 0
    for character in text {
        if character == "[" { depth += 1 }
        if character == "]" { depth -= 1 }
        if character == " ", depth == 0 {
            words.append(word)
            word = ""
        } else {
            word.append(character)
        }
    }
    return words + [word]
}

private func columns(_ rows: [(left: String, right: String)]) -> String {
    let left = min(rows.map(\.left.count).max() ?? 0, 26)
    var text = ""
    for row in rows {
        let lines = wrapped(row.right, width: 80 - left - 4).split(separator: "\n")
        var first = "  " + padded(row.left, to: left) + "  "
        if row.left.count > left {
            text += "  \(row.left)\n"
            first = String(repeating: " ", count: left + 4)
        }
        for (index, line) in lines.enumerated() {
            text += (index == 0 ? first : String(repeating: " ", count: left + 4)) + line + "\n"
        }
    }
    return text
}
