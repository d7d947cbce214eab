import Bench
import Load
import Options
import Platform

/// `tapline bench`: sends load, or checks what became of it.
func runBench(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    if parsed.flag("verify") { return verify(parsed, try StoreOptions(parsed)) }
    var configuration = BenchConfiguration()
    configuration.urls = benchURLs(parsed) ?? configuration.urls
    configuration.key = benchKey(parsed)
    configuration.connections = parsed.number("connections") ?? configuration.connections
    configuration.rate = parsed.number("rate")
    configuration.resendPercent = parsed.number("resend") ?? 0
    configuration.storm = parsed.number("storm") ?? 0
    configuration.log = parsed.value("log")
    configuration.userAgent = "tapline-bench/\(taplineVersion)"
    if let milliseconds = parsed.milliseconds("retry-for") {
        configuration.retrySeconds = Double(milliseconds) / 1000
    }
    guard configuration.key != nil else {
        complain("tapline bench: no key", hint: "Give --key or set TAPLINE_KEY.")
        return 2
    }
    var plan = BenchPlan(
        seed: parsed.number("seed").map { UInt64($0) } ?? UInt64.random(in: 0..<1 << 48),
        events: parsed.number("events") ?? 100_000, isShuffled: parsed.flag("shuffle"))
    plan.batch = parsed.number("batch") ?? plan.batch
    if let milliseconds = parsed.milliseconds("delay") { plan.delay = Int64(milliseconds) * 1000 }
    var line = ProgressLine(terminal: standardErrorTerminal)
    do throws(BenchError) {
        let run = BenchRun(configuration, plan, progress: { show($0, on: &line) })
        let summary = try run.run()
        line.clear()
        return conclude(summary, plan, json: parsed.value("format") == "json")
    } catch {
        line.clear()
        return fail(error)
    }
}

private func verify(_ parsed: Parsed, _ store: StoreOptions) -> Int32 {
    guard let path = parsed.value("log") else {
        complain("tapline bench --verify: no log", hint: "Give --log FILE, the log of the run.")
        return 2
    }
    let probe = benchURLs(parsed)?.first.map { DaemonProbe(url: $0, key: benchKey(parsed)) }
    return withStore(store, command: "bench") { connection throws(LoadError) in
        do throws(BenchError) {
            let check = try Verification(
                path: path, dataDirectory: store.dataDirectory, probe: probe, on: connection)
            let verdict = try check.run(connection)
            let text = parsed.value("format") == "json" ? verdict.json : verdict.table
            let printed = print(text)
            return verdict.holds ? printed : 1
        } catch .load(let error) {
            throw error
        } catch {
            return fail(error)
        }
    }
}

private func benchURLs(_ parsed: Parsed) -> [String]? {
    let given = parsed.all("url")
    return given.isEmpty ? surroundings.variable("TAPLINE_URL").map { [$0] } : given
}

private func benchKey(_ parsed: Parsed) -> String? {
    parsed.value("key") ?? surroundings.variable("TAPLINE_KEY")
}

private func fail(_ error: BenchError) -> Int32 {
    complain("tapline bench: \(error)", hint: error.hint)
    if case .client(.badURL) = error { return 2 }
    return 1
}

private func show(_ progress: BenchProgress, on line: inout ProgressLine) {
    let fraction = Double(progress.acknowledged) / Double(progress.events)
    var text =
        "\(grouped(Int(progress.rate))) events/s, p99 \(humanMilliseconds(progress.p99Microseconds))"
    if let waiting = progress.waiting {
        text = "waiting: \(waiting)"
    } else if fraction > 0.01, fraction < 1 {
        text += ", \(humanSeconds(progress.seconds * (1 - fraction) / fraction)) left"
    }
    line.show(fraction: fraction, text)
}

private func conclude(_ summary: BenchSummary, _ plan: BenchPlan, json: Bool) -> Int32 {
    for problem in summary.problems { complain("tapline bench: \(problem)") }
    if summary.problemCount > summary.problems.count {
        complain("and more: only the first \(summary.problems.count) are shown")
    }
    if let reason = summary.stopReason { complain("tapline bench: stopped: \(reason)") }
    let printed = print(json ? summary.json : table(summary, plan))
    return summary.isComplete ? printed : 1
}

private func table(_ summary: BenchSummary, _ plan: BenchPlan) -> String {
    var rows = [
        ("seed", "\(summary.seed)"),
        (
            "acknowledged",
            "\(grouped(summary.acknowledged)) of \(grouped(plan.events)) events in "
                + "\(humanSeconds(summary.seconds))"
        ),
        (
            "rate",
            "\(grouped(Int(summary.eventsPerSecond))) events/s, "
                + "\(humanBytes(summary.bytes)) as \(humanBytes(summary.bytesSent)) gzipped"
        ),
        (
            "latency",
            summary.percentiles.map { "\($0.name) \(humanMilliseconds($0.microseconds))" }
                .joined(separator: ", ") + ", of \(grouped(summary.bodies)) bodies"
        ),
        ("tried again", "\(grouped(summary.retries)) bodies"),
    ]
    if summary.resent > 0 { rows.append(("resent", "\(grouped(summary.resent)) bodies")) }
    if summary.stormAcknowledged + summary.stormRefused > 0 {
        rows.append(
            (
                "storm",
                "\(grouped(summary.stormAcknowledged)) bodies taken, "
                    + "\(grouped(summary.stormRefused)) refused"
            ))
    }
    return rows.map { name, text in
        name + String(repeating: " ", count: 14 - name.count) + text + "\n"
    }.joined()
}

/// Microseconds for people: `0.4 ms`, `12 ms`.
private func humanMilliseconds(_ microseconds: Int64) -> String {
    "\(fixed(Double(microseconds) / 1000, microseconds < 10_000 ? 1 : 0)) ms"
}
