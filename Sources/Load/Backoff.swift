import Platform

/// How long to wait after a failure, and which failures to speak of.
package struct Backoff: ~Copyable {
    private static let firstMilliseconds = 50
    private static let lastMilliseconds = 5_000

    /// Starts with the shortest wait.
    package init() {}

    private var milliseconds = Backoff.firstMilliseconds
    private var reported = Repeated()

    /// The time to wait now: doubled each time, with jitter, so that daemons do not come in step.
    package mutating func next() -> Int {
        let upper = milliseconds
        milliseconds = min(milliseconds * 2, Self.lastMilliseconds)
        return upper / 2 + Int(Random.uniform() * Double(upper / 2 + 1))
    }

    /// Work went on: the next failure is a new one.
    package mutating func reset() {
        if reported.isLasting { Log.info("the database takes events again") }
        milliseconds = Self.firstMilliseconds
        reported = Repeated()
    }

    /// Logs a failure once, and again every minute while it lasts.
    package mutating func report(_ error: LoadError) {
        let text = error.description
        guard reported.isNews(text) else { return }
        if error.needsAPerson {
            Log.error("loading waits: \(text); events are kept in the spool", hint: error.hint)
        } else {
            Log.warn("loading waits: \(text); events are kept in the spool", hint: error.hint)
        }
    }
}

/// What is said once, and again every minute while it lasts.
struct Repeated: ~Copyable {
    private var text: String?
    private var saidAt: Microseconds = 0

    /// Whether anything was said.
    var isLasting: Bool { text != nil }

    /// Whether it is to be said now.
    mutating func isNews(_ text: String) -> Bool {
        let now = Clock.monotonic()
        guard text != self.text || now - saidAt >= 60_000_000 else { return false }
        self.text = text
        saidAt = now
        return true
    }
}
