import Client
import Options

/// `tapline send FILE…`: posts NDJSON files, with a progress bar on a terminal.
func runSend(_ parsed: Parsed) -> Int32 {
    let configuration = sendConfiguration(parsed, command: "send")
    guard configuration.key != nil else { return complainOfNoKey("tapline send") }
    var line = ProgressLine(terminal: standardErrorTerminal)
    let sender = Sender(configuration, progress: { show($0, on: &line) })
    do throws(ClientError) {
        let summary = try sender.send(parsed.operands.map { .file($0) })
        line.clear()
        return conclude(summary, json: parsed.value("format") == "json")
    } catch {
        line.clear()
        complain("tapline send: \(error.message)")
        if case .badURL = error { return 2 }
        return 1
    }
}

/// How to send, by the options that commands that do share.
func sendConfiguration(_ parsed: Parsed, command: String) -> SendConfiguration {
    var configuration = SendConfiguration()
    if let url = parsed.value("url") ?? surroundings.variable("TAPLINE_URL") {
        configuration.url = url
    }
    configuration.key = parsed.value("key") ?? surroundings.variable("TAPLINE_KEY")
    configuration.batchLines = parsed.number("batch") ?? configuration.batchLines
    configuration.connections = parsed.number("connections") ?? configuration.connections
    if let milliseconds = parsed.milliseconds("retry-for") {
        configuration.retrySeconds = Double(milliseconds) / 1000
    }
    configuration.userAgent = "tapline-\(command)/\(taplineVersion)"
    return configuration
}

/// Says that there is no key; the exit code.
func complainOfNoKey(_ command: String) -> Int32 {
    complain("\(command): no key", hint: "Give --key or set TAPLINE_KEY.")
    return 2
}

/// Shows how far sending is.
func show(_ progress: SendProgress, on line: inout ProgressLine) {
    let rate = progress.seconds > 0 ? Double(progress.events) / progress.seconds : 0
    var text = "\(humanBytes(progress.bytesDone)) \(grouped(Int(rate))) events/s"
    let fraction = progress.bytesTotal.map { Double(progress.bytesDone) / Double(max($0, 1)) }
    if let waiting = progress.waiting {
        text = "waiting: \(waiting)"
    } else if let fraction, fraction > 0.01, fraction < 1 {
        text += ", \(humanSeconds(progress.seconds * (1 - fraction) / fraction)) left"
    }
    line.show(fraction: fraction, text)
}

private func conclude(_ summary: SendSummary, json: Bool) -> Int32 {
    for problem in summary.problems { complain(problem.description) }
    let known = summary.rejected + summary.failedBodies + summary.failedFiles
    if known > summary.problems.count, !summary.problems.isEmpty {
        complain("and more: only the first \(summary.problems.count) are shown")
    }
    var text =
        "sent \(grouped(summary.received)) events in \(humanSeconds(summary.seconds)) "
        + "(\(grouped(Int(summary.eventsPerSecond)))/s): \(grouped(summary.accepted)) accepted, "
        + "\(grouped(summary.rejected)) rejected"
    if summary.failedLines > 0 { text += ", \(grouped(summary.failedLines)) lines not sent" }
    if summary.retries > 0 { text += ", \(grouped(summary.retries)) bodies sent again" }
    let ending = summary.isComplete ? 32 : 31
    complain(standardErrorTerminal.styled(text, ending))
    if let reason = summary.stopReason { complain("tapline send: stopped: \(reason)") }
    let printed = json ? print(summary.json + "\n") : 0
    return summary.isComplete ? printed : 1
}
