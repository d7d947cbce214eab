import Client
import Glibc
import Options
import Platform
import Top

/// `tapline top`: live ingestion metrics in the terminal.
func runTop(_ parsed: Parsed) -> Int32 {
    let url =
        parsed.value("url") ?? surroundings.variable("TAPLINE_URL") ?? "http://127.0.0.1:8080"
    let interval = max(100, parsed.milliseconds("interval") ?? 1_000)
    let isJSON = parsed.value("format") == "json"
    let isOnce = parsed.flag("once")
    let terminal = Terminal(descriptor: 1, surroundings: surroundings)
    let isDrawn = terminal.isTerminal && !isOnce && !isJSON
    var view = TopView(url: url)
    var before: Scrape?
    do throws(ClientError) {
        var fetcher = try Fetcher(
            url: url, path: "/metrics", userAgent: "tapline-top/\(taplineVersion)")
        while true {
            let now = try scrape(&fetcher, url, mayFail: !isOnce)
            if let now, let old = before {
                let frame = TopFrame(before: old, now: now, wallClock: Clock.now())
                let lines = isJSON ? [] : view.lines(frame)
                let text = isJSON ? frame.json(at: Clock.now()) : show(lines, isDrawn: isDrawn)
                let code = print(text)
                if isOnce || code != 0 { return code }
            }
            before = now ?? before
            usleep(UInt32(clamping: interval * 1_000))
        }
    } catch {
        complain("tapline top: \(error.message)")
        if case .badURL = error { return 2 }
        return 1
    }
}

/// The metrics now; a daemon that does not answer is complained of, or waited for.
private func scrape(
    _ fetcher: inout Fetcher, _ url: String, mayFail: Bool
) throws(ClientError) -> Scrape? {
    do throws(ClientError) {
        guard let scrape = Scrape(try fetcher.get(), at: Clock.monotonic()) else {
            throw .notAnswered(url: url, reason: "it is not a daemon of tapline")
        }
        return scrape
    } catch {
        guard mayFail, case .notAnswered = error else { throw error }
        complain("tapline top: \(error.message)")
        return nil
    }
}

/// Lines below what was printed, or on a terminal in place of it.
private func show(_ lines: [String], isDrawn: Bool) -> String {
    guard isDrawn else { return lines.map { $0 + "\n" }.joined() + "\n" }
    // From the upper left corner; what a line before left is erased.
    return "\u{1B}[H" + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
}
