import Options

/// `tapline check`: do the books balance?
func runCheck(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    check(try StoreOptions(parsed), json: parsed.value("format") == "json")
}
