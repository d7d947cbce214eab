import Options

/// `tapline completion SHELL`: the script of a shell on stdout.
func runCompletion(_ parsed: Parsed) -> Int32 {
    guard let script = parsed.operands.first.flatMap(completionScript) else { return 2 }
    return print(script)
}
