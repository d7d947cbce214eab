import Daemon
import Load
import Options
import Platform
import Postgres
import Report

/// The options of a report on a command line, whose names and values the Report module reads: they are
/// the same over HTTP.
private let reportNames = [
    "tz", "from", "to", "as-of", "app", "campaign", "by", "by-activity", "journeys",
    "conversion-window", "include-test", "sort", "top",
]

/// `tapline report`.
func runReport(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let isPage = parsed.value("format") == "html"
    let format = ReportFormat(rawValue: parsed.value("format") ?? "") ?? .table
    return withReports("report", parsed, try StoreOptions(parsed)) {
        options, connection throws(ReportError) in
        if let text = parsed.value("since") {
            guard let since = ReportTime(text) else {
                throw .invalidOption(name: "since", value: text, reason: ReportTime.expected)
            }
            guard !isPage else { throw ReportDelta.noSuch(format: "html") }
            return try ReportDelta.load(options, since: since, on: connection).render(format)
        }
        if isPage { return try HTMLReport.load(options, on: connection).render() }
        // A terminal shows none of what needs all events.
        if format == .table, parsed.value("journeys") == nil { options.journeys = .never }
        let report = try CampaignReport.load(options, on: connection)
        guard parsed.value("output") == nil else { return report.render(format) }
        let terminal = Terminal(descriptor: 1, surroundings: surroundings)
        return report.render(format, style: terminal.styled)
    }
}

/// `tapline compare`.
func runCompare(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let isJSON = parsed.value("format") == "json"
    return withReports("compare", parsed, try StoreOptions(parsed)) {
        options, connection throws(ReportError) in
        let comparison = try Comparison.load(
            parsed.operands, by: parsed.value("rate"), options, on: connection)
        return Array((isJSON ? comparison.json() : comparison.table()).utf8)
    }
}

/// Reads the options of a report, and writes what `body` makes of them.
private func withReports(
    _ command: String, _ parsed: Parsed, _ store: StoreOptions,
    _ body: (inout ReportOptions, borrowing PostgresConnection) throws(ReportError) -> [UInt8]
) -> Int32 {
    var options = ReportOptions()
    do throws(ReportError) {
        for name in reportNames {
            if let value = parsed.value(name) { try options.set(name, value) }
        }
    } catch {
        complain("tapline \(command): \(error)")
        return 2
    }
    return withStore(store, command: command) { connection throws(LoadError) in
        // A database that cannot tell has more to say about the report itself.
        options.dataThrough =
            (try? DataThrough.oldestSpooled(connection, dataDirectory: store.dataDirectory)) ?? nil
        do throws(ReportError) {
            return write(try body(&options, connection), to: parsed.value("output"), command)
        } catch .invalidOption(let name, let value, let reason) {
            complain("tapline \(command): option \"--\(name)\" has value \"\(value)\": \(reason)")
            return 2
        } catch .database(let error) {
            throw .postgres(error)
        } catch {
            complain("tapline \(command): \(error)")
            return 1
        }
    }
}

private func write(_ bytes: [UInt8], to path: String?, _ command: String) -> Int32 {
    guard let path else { return writeAll(bytes, to: 1) ? 0 : 1 }
    do throws(SystemError) {
        try File.replace(path, with: bytes.span, permissions: 0o644)
        return 0
    } catch {
        complain("tapline \(command): \(error)")
        return 1
    }
}
