import Options

/// What `tapline report` is asked for. The Report module reads names and values: they are the
/// same on the command line and over HTTP.
struct ReportRequest {
    /// Names without dashes, in a fixed order; a flag has an empty value.
    let settings: [(name: String, value: String)]
    /// `table`, `json` or `csv`.
    let format: String
    /// Nil for stdout.
    let output: String?
}

/// `tapline report`.
func runReport(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let names = [
        "tz", "from", "to", "as-of", "app", "campaign", "by", "include-test", "sort", "top",
    ]
    let request = ReportRequest(
        settings: names.compactMap { name in parsed.value(name).map { (name, $0) } },
        format: parsed.value("format") ?? "table", output: parsed.value("output"))
    return report(request, try StoreOptions(parsed))
}
