import Options

/// `tapline serve`: the daemon.
func runServe(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let resolved = try resolveSettings(flags: parsed, surroundings: surroundings)
    if parsed.flag("print-config") { return print(resolved.printed) }
    if parsed.flag("check-config") { return 0 }
    return serve(resolved.settings) { () throws(OptionsError) -> ServeSettings in
        try resolveSettings(flags: parsed, surroundings: surroundings).settings
    }
}
