import Load
import Platform

/// What the daemon has counted, in memory.
package struct LiveCounters: Sendable {
    /// The terms of law 4.
    package var books: Books
    /// Lines of bodies that are durable and not loaded.
    package var unloaded: Int64
    /// Whether the loader has a session.
    package var isDatabaseUp: Bool
    /// When the oldest body still spooled was received, as last looked at.
    package var oldestUnloaded: Microseconds?
    /// Bytes of the spool on disk.
    package var spoolBytes: Int
    /// Of these, those that wait to be loaded.
    package var spoolUnloadedBytes: Int
    /// How many may wait.
    package var spoolBytesMax: Int

    /// Makes a set of counts.
    package init(
        books: Books, unloaded: Int64, isDatabaseUp: Bool, oldestUnloaded: Microseconds?,
        spoolBytes: Int, spoolUnloadedBytes: Int, spoolBytesMax: Int
    ) {
        self.books = books
        self.unloaded = unloaded
        self.isDatabaseUp = isDatabaseUp
        self.oldestUnloaded = oldestUnloaded
        self.spoolBytes = spoolBytes
        self.spoolUnloadedBytes = spoolUnloadedBytes
        self.spoolBytesMax = spoolBytesMax
    }
}

/// Makes rates and the lag out of counts taken one after the other. For one thread.
final class LiveMeter {
    private struct Mark {
        let at: Microseconds
        let received: Int64
    }
    private static let marksMax = 900

    private var before: (at: Microseconds, counters: LiveCounters)?
    /// Received lines by time, the oldest first, back to the first that is not loaded.
    private var marks: [Mark] = []
    private var startedAt: Microseconds?

    /// The counts as one JSON object.
    ///
    /// - Parameter now: When they were taken, in microseconds since 1970.
    func json(_ counters: LiveCounters, now: Microseconds) -> String {
        let books = counters.books
        var members = ["\"at\":\"\(Clock.rfc3339(now))\""]
        members += books.terms.map { "\"\($0.name)\":\($0.value)" }
        members += [
            "\"balanced\":\(books.isBalanced)", "\"database_up\":\(counters.isDatabaseUp)",
            "\"received_per_second\":\(rate(counters, now, \.received))",
            "\"stored_per_second\":\(rate(counters, now, \.stored))",
            "\"lag_seconds\":\(Self.rounded(lag(counters, now)))",
            "\"spool_bytes\":\(counters.spoolBytes)",
            "\"spool_unloaded_bytes\":\(counters.spoolUnloadedBytes)",
            "\"spool_bytes_max\":\(counters.spoolBytesMax)",
        ]
        before = (now, counters)
        return "{\(members.joined(separator: ","))}"
    }

    /// Null where it is not known: the first time, and when the database has just told what it has.
    private func rate(
        _ counters: LiveCounters, _ now: Microseconds, _ term: KeyPath<Books, Int64>
    ) -> String {
        guard let before, now > before.at, before.counters.isDatabaseUp || !counters.isDatabaseUp
        else { return "null" }
        let count = counters.books[keyPath: term] - before.counters.books[keyPath: term]
        return Self.rounded(max(0, Double(count) * 1_000_000 / Double(now - before.at)))
    }

    /// The age of the oldest event that is not loaded: to a second where it was seen coming, else as
    /// the spool was last looked at.
    private func lag(_ counters: LiveCounters, _ now: Microseconds) -> Double {
        let loaded = counters.books.received - counters.unloaded
        marks.removeAll { $0.received <= loaded }
        defer {
            marks.append(Mark(at: now, received: counters.books.received))
            if marks.count > Self.marksMax { marks.remove(at: 1) }
        }
        let started = startedAt ?? now
        startedAt = started
        guard counters.unloaded > 0 else { return 0 }
        let since = marks.first?.at ?? now
        guard since <= started, let oldest = counters.oldestUnloaded else {
            return Double(now - since) / 1_000_000
        }
        return Double(now - min(since, oldest)) / 1_000_000
    }

    private static func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
