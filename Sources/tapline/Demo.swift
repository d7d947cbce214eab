import Demo
import Glibc
import Options
import Sample

/// `tapline demo`: all of it, from nothing to a report.
func runDemo(_ parsed: Parsed) -> Int32 {
    let today = time(nil) / 86_400 * 86_400
    var sample = SampleOptions(
        anchorSeconds: Int64(parsed.number("sample-anchor") ?? today))
    sample.percent = parsed.number("sample-percent") ?? 100
    sample.isOrderFree = parsed.flag("sample-order-free")
    if let app = parsed.value("print-sample").flatMap(SampleApp.init) {
        return writeAll(Sample.lines(app: app, options: sample).bytes, to: 1) ? 0 : 1
    }
    let interrupts = Interrupts()
    var options = DemoOptions(sample: sample)
    options.dataDirectory = parsed.value("data-dir")
    options.keepsDirectory = parsed.flag("keep")
    let run = DemoRun(
        options: options, backend: makeDemoBackend(), terminal: standardErrorTerminal,
        isCancelled: { interrupts.isNoticed }, sleep: { usleep(100_000) },
        output: { _ = print($0) })
    return run.run()
}
