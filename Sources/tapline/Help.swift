import Options

/// `tapline help [COMMAND]`, and by hidden flags the manual page and the sample configuration.
func runHelp(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    if parsed.flag("man") { return print(manPage()) }
    if parsed.flag("sample-config") { return print(sampleConfig()) }
    guard CommandSpec.tapline.command(at: parsed.operands) != nil else {
        let word = parsed.operands.joined(separator: " ")
        throw .unknownCommand(
            word, command: "tapline help",
            suggestion: nearest(to: word, among: CommandSpec.tapline.commands.map(\.name)))
    }
    return showHelp(parsed.operands)
}

/// Prints the help of the command at a path that is known to exist.
func showHelp(_ path: [String]) -> Int32 {
    guard let command = CommandSpec.tapline.command(at: path) else { return 2 }
    return print(command.helpText(path: path))
}
