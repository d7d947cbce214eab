/// The manual page, in the man macros of groff. `man/tapline.1` is this text.
package func manPage() -> String {
    let root = CommandSpec.tapline
    var page = """
        .\\" Made by "tapline help --man" from the table of options; do not edit.
        .TH TAPLINE 1 "" "tapline \(taplineVersion)" "User Commands"
        .SH NAME
        tapline \\- \(roff(root.summary))
        .SH SYNOPSIS
        .B tapline
        .I COMMAND
        [\\fIoption\\fR ...]
        .SH DESCRIPTION

        """
    page += root.details.map { roff($0) + "\n" }.joined(separator: ".PP\n")
    page += ".SH COMMANDS\n"
    for command in root.commands { page += section(command, path: [command.name]) }
    page += ".SH SETTINGS\n"
    page +=
        roff(
            "A setting is a key of the file given by --config, a variable of the environment, or a "
                + "flag; flags win over variables, variables over the file. The file has lines of "
                + "the form key = value; # begins a comment.") + "\n"
    let defaults = ServeSettings()
    for spec in SettingSpec.all {
        let text = spec.text(of: defaults).flatMap { $0.isEmpty ? nil : " (default: \($0))" }
        page += ".TP\n.BR \(roff(spec.key)) \", \" \(roff(spec.variable))\n"
        page += roff(spec.help + (text ?? "")) + "\n"
    }
    page += """
        .SH EXIT STATUS
        .TP
        0
        Good.
        .TP
        1
        Failed; a line on stderr says why.
        .TP
        2
        Wrong usage or settings; nothing was done.
        .SH ENVIRONMENT
        .TP
        .B TAPLINE_URL, TAPLINE_KEY
        Where and with which key tapline send sends.
        .TP
        .B TAPLINE_CONFIG
        The file of settings, as \\-\\-config.
        .TP
        .B DATABASE_URL, PGHOST, ...
        The database, as for every program on libpq.
        .TP
        .B NO_COLOR
        When set, no colours on a terminal.

        """
    return page
}

private func section(_ command: CommandSpec, path: [String]) -> String {
    guard command.commands.isEmpty else {
        return command.commands.map { section($0, path: path + [$0.name]) }.joined()
    }
    let title = "tapline " + path.joined(separator: " ")
    var text = ".SS \(roff("\(title) \(command.synopsis)"))\n"
    text += roff(command.summary.prefix(1).uppercased() + command.summary.dropFirst() + ".") + "\n"
    for paragraph in command.details { text += ".PP\n" + roff(paragraph) + "\n" }
    for option in command.options where !option.hidden {
        text += ".TP\n.B \(roff(option.listed))\n\(roff(option.explained))\n"
    }
    if let operand = command.operand {
        text += ".TP\n.I \(roff(operand.name))\n\(roff(operand.help))\n"
    }
    if !command.examples.isEmpty {
        text += ".PP\n.EX\n" + command.examples.map { roff($0) + "\n" }.joined() + ".EE\n"
    }
    return text
}

/// Makes text safe for groff: backslashes, dashes that are typed, and a dot at the start.
private func roff(_ text: String) -> String {
    var result = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
    if result.hasPrefix(".") || result.hasPrefix("'") { result = "\\&" + result }
    return result
}
