import Glibc
import Options
import Postgres

/// Runs one command line and ends the process with its exit code.
func exitTapline(_ arguments: [String]) -> Never { exit(runTapline(arguments)) }

/// Runs one command line.
///
/// - Returns: The exit code: 0 good, 1 failed, 2 usage.
func runTapline(_ arguments: [String]) -> Int32 {
    // A reader that is gone, as in `tapline report | head`, is an error of a write, not a death.
    signal(SIGPIPE, SIG_IGN)
    if arguments.first == EmbeddedCluster.watchdogCommand {
        return EmbeddedCluster.watchdogMain(Array(arguments.dropFirst()))
    }
    do throws(OptionsError) {
        guard !arguments.isEmpty else {
            complain(CommandSpec.tapline.helpText(path: []).dropLast().description)
            return 2
        }
        switch try parse(arguments, root: .tapline) {
        case .version: return print("tapline \(taplineVersion)\n")
        case .help(let path): return showHelp(path)
        case .run(let parsed): return try run(parsed)
        }
    } catch {
        complain(error.message, hint: error.hint)
        return 2
    }
}

private func run(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    switch parsed.path.first {
    case "serve": try runServe(parsed)
    case "migrate": try runMigrate(parsed)
    case "key": try runKey(parsed)
    case "app": try runApp(parsed)
    case "device": try runDevice(parsed)
    case "category": try runCategory(parsed)
    case "report": try runReport(parsed)
    case "compare": try runCompare(parsed)
    case "campaign": try runCampaign(parsed)
    case "send": runSend(parsed)
    case "import": try runImport(parsed)
    case "check": try runCheck(parsed)
    case "rebuild": try runRebuild(parsed)
    case "top": runTop(parsed)
    case "tail": runTail(parsed)
    case "dlq": try runDlq(parsed)
    case "explain": try runExplain(parsed)
    case "bench": try runBench(parsed)
    case "erase": try runErase(parsed)
    case "retention": try runRetention(parsed)
    case "replay": try runReplay(parsed)
    case "demo": runDemo(parsed)
    case "completion": runCompletion(parsed)
    default: try runHelp(parsed)
    }
}

/// What surrounds this process.
let surroundings = Surroundings(variables: environmentVariables(), isRoot: geteuid() == 0)

/// The terminal of messages and progress, if stderr is one.
let standardErrorTerminal = Terminal(descriptor: 2, surroundings: surroundings)

/// Writes data to stdout.
///
/// - Returns: 0, or 1 when the reader is gone or the disk is full.
func print(_ text: String) -> Int32 {
    writeAll(Array(text.utf8), to: 1) ? 0 : 1
}

private func environmentVariables() -> [String: String] {
    var variables: [String: String] = [:]
    // SAFETY: environ is a null-terminated array of strings, and no thread changes it yet.
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
        let parts = unsafe String(cString: text).split(
            separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
        unsafe entry += 1
    }
    return variables
}
