import Daemon
import Load
import Options
import Report

/// `tapline check`: do the books balance?
func runCheck(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    check(
        try StoreOptions(parsed), json: parsed.value("format") == "json",
        reports: parsed.value("reports") != nil)
}

/// Prints whether the books balance and, if asked, whether reports from sums are those from events.
private func check(_ store: StoreOptions, json: Bool, reports: Bool) -> Int32 {
    withStore(store, command: "check") { connection throws(LoadError) in
        let outcome: CheckOutcome
        switch try Check.run(connection, dataDirectory: store.dataDirectory) {
        case .success(let found): outcome = found
        case .failure(let error):
            complain("tapline check: \(error)")
            return 1
        }
        var proof: ReportProof?
        if reports {
            do throws(ReportError) {
                proof = try ReportProof.run(connection, progress: noteReports)
            } catch .database(let error) {
                throw .postgres(error)
            } catch {
                complain("tapline check: \(error)")
                return 1
            }
        }
        _ = print(
            json ? outcome.json(reports: proof?.json) : outcome.table + (proof?.table ?? ""))
        return outcome.books.isBalanced && (proof?.differing ?? 0) == 0 ? 0 : 1
    }
}

private func noteReports(done: Int, count: Int) {
    guard standardErrorTerminal.isTerminal else { return }
    writeAll(Array("\rtapline check: report \(done + 1) of \(count)".utf8), to: 2)
    if done + 1 == count { writeAll(Array("\n".utf8), to: 2) }
}
