import Client
import Import
import Options
import Platform

/// `tapline import --map MAP FILE…`: sends what platforms export.
func runImport(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let command = "tapline import"
    guard let word = parsed.value("map") else {
        throw .missingOption(option: "--map", command: command)
    }
    guard let text = ReadyMap.named(word) ?? mapFile(word) else { return 1 }
    if parsed.flag("print-map") { return print(text) }
    guard !parsed.operands.isEmpty else { throw .missingOperand("FILE", command: command) }
    var map: ColumnMap
    do throws(MapError) {
        map = try ColumnMap(text)
    } catch {
        complain(
            "\(command): map \(quoted(word))\(error.line.map { ", line \($0)" } ?? ""): "
                + error.reason)
        return 2
    }
    for choice in parsed.all("only") {
        let parts = choice.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw .badValue(
                option: "--only", value: choice, expected: "COLUMN=VALUE", command: command)
        }
        map.only.append((String(parts[0]), String(parts[1])))
    }
    if let path = parsed.value("rejects"), parsed.operands.count > 1 {
        throw .badValue(
            option: "--rejects", value: path, expected: "one FILE with it", command: command)
    }
    var seen: Set<String> = []
    for path in parsed.operands where !seen.insert(path).inserted {
        throw .badValue(
            option: "FILE", value: path, expected: "each file once", command: command)
    }
    let rejects = parsed.operands.map { parsed.value("rejects") ?? Rejects.path(of: $0) }
    if let conflict = Rejects.conflict(
        of: rejects, for: parsed.operands, others: ReadyMap.named(word) == nil ? [word] : [])
    {
        complain("\(command): \(conflict)")
        return 2
    }
    let isJSON = parsed.value("format") == "json"
    let configuration = sendConfiguration(parsed, command: "import")
    if parsed.flag("dry-run") { return importNothing(parsed.operands, map, isJSON) }
    guard configuration.key != nil else { return complainOfNoKey(command) }
    return importFiles(parsed.operands, map, rejects: rejects, configuration, isJSON)
}

private func mapFile(_ path: String) -> String? {
    do throws(SystemError) {
        let bytes = try File.contents(of: path)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            complain("tapline import: map \(quoted(path)) is not valid UTF-8")
            return nil
        }
        return text
    } catch {
        complain(
            "tapline import: \(error)",
            hint: "Maps that are there: \(ReadyMap.all.map(\.name).joined(separator: ", ")).")
        return nil
    }
}

/// Reads all and says what would be sent.
private func importNothing(_ paths: [String], _ map: ColumnMap, _ isJSON: Bool) -> Int32 {
    var configuration = SendConfiguration()
    configuration.connections = 1
    var code: Int32 = 0
    var sources: [RowSource] = []
    var line = ProgressLine(terminal: standardErrorTerminal)
    do throws(ClientError) {
        for path in paths {
            let source = try RowSource(
                .file(path), map: map, rejects: nil, linesMax: configuration.batchLines,
                bytesMax: configuration.batchBytesMax)
            sources.append(source)
            var done = 0
            while case .body(let body) = try source.next() {
                source.settle(body, [])
                done += body.sourceBytes
                let fraction = source.bytesTotal.map { Double(done) / Double(max($0, 1)) }
                line.show(fraction: fraction, "\(grouped(source.tally.rows)) rows of \(path)")
            }
        }
    } catch {
        line.clear()
        complain("tapline import: \(error.message)")
        code = 1
    }
    line.clear()
    let sum = total(sources)
    complainOf(sum, [])
    if sum.rejected > 0 { code = 1 }
    let printed: Int32
    if isJSON {
        printed = print(
            "{\(members(of: sum)),\"dry_run\":true,\"first\":[\(sum.first.joined(separator: ","))]}\n"
        )
    } else {
        printed = print(sum.first.map { $0 + "\n" }.joined())
    }
    complain("would send \(eventsText(sum)) of \(rowsText(sum))")
    return max(code, printed)
}

private func importFiles(
    _ paths: [String], _ map: ColumnMap, rejects: [String],
    _ configuration: SendConfiguration, _ isJSON: Bool
) -> Int32 {
    var configuration = configuration
    configuration.namesEveryRejection = true
    var line = ProgressLine(terminal: standardErrorTerminal)
    do throws(ClientError) {
        var sources: [RowSource] = []
        for (path, file) in zip(paths, rejects) {
            sources.append(
                try RowSource(
                    .file(path), map: map,
                    rejects: Rejects(path: file, separator: map.separator),
                    linesMax: configuration.batchLines, bytesMax: configuration.batchBytesMax))
        }
        let opened = sources
        let sender = Sender(
            configuration, progress: { show($0, on: &line) },
            answered: { body, errors in for source in opened { source.settle(body, errors) } })
        let summary = try sender.send(from: opened)
        line.clear()
        return conclude(summary, opened, isJSON)
    } catch {
        line.clear()
        complain("tapline import: \(error.message)")
        if case .badURL = error { return 2 }
        return 1
    }
}

private func conclude(_ summary: SendSummary, _ sources: [RowSource], _ isJSON: Bool) -> Int32 {
    let sum = total(sources)
    complainOf(sum, summary.problems)
    var isGood = summary.isComplete && sum.rejected == 0
    var text =
        "imported \(eventsText(sum)) of \(rowsText(sum)) in \(humanSeconds(summary.seconds)): "
        + "\(grouped(summary.accepted)) accepted"
    if summary.failedLines > 0 { text += ", \(grouped(summary.failedLines)) not sent" }
    complain(standardErrorTerminal.styled(text, isGood ? 32 : 31))
    var files: [String] = []
    for rejects in sources.compactMap(\.rejects) where rejects.rows > 0 {
        files.append(rejects.path)
        complain("refused rows are in \(quoted(rejects.path)): \(grouped(rejects.rows))")
        if let failure = rejects.failure {
            complain("tapline import: \(failure)")
            isGood = false
        }
    }
    if let reason = summary.stopReason {
        complain(
            "tapline import: stopped: \(reason)",
            hint: "Import the same file again: what has been stored is not stored twice.")
    }
    let printed =
        isJSON
        ? print(
            "{\(members(of: sum)),\"dry_run\":false,\"rejects\":["
                + files.map(JSONString.quoted).joined(separator: ",")
                + "],\"send\":\(summary.json)}\n") : 0
    return isGood ? printed : 1
}

/// The tallies of all files as one.
private func total(_ sources: [RowSource]) -> RowSource.Tally {
    sources.map(\.tally).reduce(into: RowSource.Tally()) { sum, tally in
        sum.rows += tally.rows
        sum.skipped += tally.skipped
        sum.rejected += tally.rejected
        sum.events.merge(tally.events, uniquingKeysWith: +)
        sum.problems += tally.problems
        sum.first = Array((sum.first + tally.first).prefix(RowSource.firstMax))
    }
}

private func complainOf(_ sum: RowSource.Tally, _ others: [SendProblem]) {
    let problems = Array((sum.problems + others).prefix(SendSummary.problemsMax))
    for problem in problems { complain(problem.description) }
    if sum.rejected > problems.count, !problems.isEmpty {
        complain("and more: only the first \(problems.count) are shown")
    }
}

private func eventsText(_ sum: RowSource.Tally) -> String {
    let count = sum.events.values.reduce(0, +)
    let types = sum.events.sorted { $0.key < $1.key }.map { "\(grouped($0.value)) \($0.key)" }
    return "\(grouped(count)) events"
        + (types.isEmpty ? "" : " (\(types.joined(separator: ", ")))")
}

private func rowsText(_ sum: RowSource.Tally) -> String {
    var text = "\(grouped(sum.rows)) rows"
    if sum.skipped > 0 { text += ", \(grouped(sum.skipped)) of them skipped" }
    if sum.rejected > 0 { text += ", \(grouped(sum.rejected)) refused" }
    return text
}

private func members(of sum: RowSource.Tally) -> String {
    let types = sum.events.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
    return "\"rows\":\(sum.rows),\"skipped\":\(sum.skipped),\"refused\":\(sum.rejected),"
        + "\"events\":{\(types.joined(separator: ","))}"
}
