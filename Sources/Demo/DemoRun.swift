internal import Client
package import Options
package import Sample

/// Why a step of the demo failed.
package struct DemoError: Error, Equatable, Sendable {
    /// One line.
    package let message: String
    /// A second line, a full sentence.
    package let hint: String?

    /// Makes an error.
    package init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }
}

/// The parts of the product that the demo puts together.
///
/// Called from one thread, in this order: `start`, `createKey` for each app, `storedEvents` until
/// all is stored, `report`, and `stop` always, also when `start` threw.
package protocol DemoBackend: AnyObject {
    /// Starts a daemon and its database in a directory that exists.
    ///
    /// - Parameter isCancelled: Asked while waiting; true means to give up soon.
    /// - Returns: The daemon's URL.
    func start(
        dataDirectory: String, isCancelled: () -> Bool
    ) throws(DemoError) -> String
    /// Makes an ingest key of an app.
    func createKey(app: String) throws(DemoError) -> String
    /// How many of the events received are not in the database yet.
    func waitingEvents() throws(DemoError) -> Int
    /// The report as a table.
    func report() throws(DemoError) -> String
    /// Ends the daemon and its database and waits until both are gone. Safe to call twice.
    func stop()
}

/// What the demo was asked for.
package struct DemoOptions: Equatable, Sendable {
    /// A directory to use and keep; nil for a temporary one.
    package var dataDirectory: String?
    /// Whether a temporary directory stays.
    package var keepsDirectory = false
    /// The sample.
    package var sample: SampleOptions

    /// Makes options for the whole sample.
    package init(sample: SampleOptions) { self.sample = sample }
}

/// Runs the demo from nothing to a report, and leaves no process behind.
///
/// Progress goes to stderr, the report and what to try next to stdout.
package struct DemoRun {
    private let options: DemoOptions
    private let backend: any DemoBackend
    private let terminal: Terminal
    private let isCancelled: () -> Bool
    private let sleep: () -> Void
    private let output: (String) -> Void

    /// Makes a demo.
    ///
    /// - Parameters:
    ///   - terminal: Where progress goes.
    ///   - isCancelled: True after Ctrl-C; the demo then stops what it started and ends.
    ///   - sleep: A short pause between two looks at the database.
    ///   - output: Takes what goes to stdout.
    package init(
        options: DemoOptions, backend: any DemoBackend, terminal: Terminal,
        isCancelled: @escaping () -> Bool, sleep: @escaping () -> Void,
        output: @escaping (String) -> Void
    ) {
        self.options = options
        self.backend = backend
        self.terminal = terminal
        self.isCancelled = isCancelled
        self.sleep = sleep
        self.output = output
    }

    /// Runs it.
    ///
    /// - Returns: The exit code: 0, or 1 after a line on stderr says why.
    package func run() -> Int32 {
        do throws(DemoError) {
            let directory = try DemoDirectory(
                path: options.dataDirectory, isKept: options.keepsDirectory)
            defer { directory.removeIfTemporary() }
            defer { backend.stop() }
            try run(in: directory)
            return 0
        } catch {
            complain("tapline demo: " + error.message, hint: error.hint)
            return 1
        }
    }

    private func run(in directory: DemoDirectory) throws(DemoError) {
        say("starting a daemon and a private PostgreSQL in \(directory.path)")
        let url = try backend.start(dataDirectory: directory.path, isCancelled: isCancelled)
        try checkCancelled()
        var total = 0
        for app in SampleApp.allCases {
            total += try send(app, to: url)
        }
        try waitUntilStored(total)
        say("done; this is the report:")
        let report = try backend.report()
        output("\n" + report + (report.hasSuffix("\n") ? "" : "\n"))
        output(nextSteps(directory))
    }

    private func checkCancelled() throws(DemoError) {
        if isCancelled() { throw DemoError("interrupted") }
    }

    private func send(_ app: SampleApp, to url: String) throws(DemoError) -> Int {
        try checkCancelled()
        let key = try backend.createKey(app: app.rawValue)
        let sample = Sample.lines(app: app, options: options.sample)
        var configuration = SendConfiguration()
        configuration.url = url
        configuration.key = key
        configuration.retrySeconds = 30
        configuration.userAgent = "tapline-demo/\(taplineVersion)"
        var line = ProgressLine(terminal: terminal)
        let sender = Sender(
            configuration,
            progress: { progress in
                line.show(
                    fraction: Double(progress.bytesDone) / Double(max(progress.bytesTotal ?? 1, 1)),
                    "\(app.rawValue): \(grouped(progress.events)) events")
            }, isCancelled: isCancelled)
        let summary: SendSummary
        do throws(ClientError) {
            summary = try sender.send([.memory(name: "sample of \(app.rawValue)", sample.bytes)])
        } catch {
            throw DemoError(error.message)
        }
        line.clear()
        try checkCancelled()
        if let reason = summary.stopReason {
            throw DemoError("could not send the sample of \"\(app.rawValue)\": \(reason)")
        }
        guard summary.received == sample.lines, summary.rejected == sample.rejected else {
            throw DemoError(
                "of the sample of \"\(app.rawValue)\" \(summary.received) lines were read and "
                    + "\(summary.rejected) rejected, expected \(sample.lines) and "
                    + "\(sample.rejected)")
        }
        say(
            "sent \(grouped(summary.received)) events of \"\(app.rawValue)\" in "
                + "\(humanSeconds(summary.seconds)): \(grouped(summary.accepted)) accepted, "
                + "\(summary.rejected) rejected as they should be")
        return summary.received
    }

    private func waitUntilStored(_ total: Int) throws(DemoError) {
        var line = ProgressLine(terminal: terminal)
        defer { line.clear() }
        say("waiting until all of them are in the database")
        while true {
            let waiting = try backend.waitingEvents()
            if waiting == 0 { return }
            let stored = max(total - waiting, 0)
            line.show(
                fraction: Double(stored) / Double(max(total, 1)), "\(grouped(stored)) stored")
            try checkCancelled()
            sleep()
        }
    }

    private func say(_ text: String) {
        terminal.write(terminal.styled("demo:", 1) + " \(text)\n")
    }

    private func nextSteps(_ directory: DemoDirectory) -> String {
        let path = directory.isTemporary ? "./tapline-demo" : directory.path
        let first =
            directory.isTemporary
            ? "tapline demo --data-dir \(path)              keep the data, to look further"
            : "tapline report --data-dir \(path) --from 7d"
        return """

            Try next:
              \(first)
              tapline report --data-dir \(path) --by campaign,platform
              tapline report --data-dir \(path) --app shop --by day --format csv
              tapline check --data-dir \(path)
              tapline serve --data-dir \(path)

            """
    }
}
