import Metrics
import Platform
import Spool

/// The running terms of law 4 for one spool: what the database has counted of it, and what is
/// still spooled. Their sums survive restarts, as the first half is read from the database and the
/// second from the spool.
package final class Ledger: Sendable {
    private struct State {
        var loaded = Books()
        /// The spool that these are of, once they were read.
        var spool: SpoolID?
        var claim: (spool: SpoolID, epoch: SpoolID)?
        /// Lines and refused lines of bodies that are durable but not loaded.
        var unloadedReceived: Int64 = 0
        var unloadedRejected: Int64 = 0
    }

    private let state = Sync.Monitor(State())

    /// Registers the terms as metrics.
    package init(registry: Registry) {
        let terms: [(String, String, KeyPath<Books, Int64> & Sendable)] = [
            ("received", "Lines received, of all bodies answered", \.received),
            ("stored", "Events stored", \.stored),
            ("duplicate", "Events that were stored already", \.duplicate),
            ("conflict", "Events whose identity is stored with another content", \.conflict),
            ("rejected", "Lines refused when they were received", \.rejected),
            ("dead_lettered", "Events that PostgreSQL refused", \.deadLettered),
        ]
        for (name, help, term) in terms {
            registry.counter("tapline_events_\(name)_total", help) {
                Double(self.books[keyPath: term])
            }
        }
        registry.gauge("tapline_events_spooled", "Events durable in the spool and not yet loaded") {
            Double(self.books.spooled)
        }
        registry.gauge(
            "tapline_books_balanced", "1 if what was loaded of this spool adds up to its verdicts"
        ) { self.loaded.difference == 0 ? 1 : 0 }
    }

    /// The terms now.
    package var books: Books {
        state.withLock { state in
            var books = state.loaded
            books.received += state.unloadedReceived
            books.rejected += state.unloadedRejected
            books.spooled = max(0, state.unloadedReceived - state.unloadedRejected)
            return books
        }
    }

    /// The terms of the part that is loaded; nothing of it is spooled.
    private var loaded: Books { state.withLock { $0.loaded } }

    /// Lines of the durable, unloaded part: received and rejected.
    package var unloaded: (received: Int64, rejected: Int64) {
        state.withLock { (max(0, $0.unloadedReceived), max(0, $0.unloadedRejected)) }
    }

    /// Under what this daemon publishes: the id of its spool, and the epoch of the session that has claimed it.
    var claim: (spool: SpoolID, epoch: SpoolID)? {
        get { state.withLock { $0.claim } }
        set { state.withLock { $0.claim = newValue } }
    }

    /// A body became durable, or was found in the spool at start.
    package func noteDurable(received: Int, rejected: Int) {
        state.withLock {
            $0.unloadedReceived += Int64(received)
            $0.unloadedRejected += Int64(rejected)
        }
    }

    /// The database's counts for this spool, read when its checkpoint is claimed.
    ///
    /// Where they are more than was known here, the answer to a commit was lost: what it loaded is
    /// no longer spooled.
    func setLoaded(_ books: Books, of spool: SpoolID) {
        state.withLock { state in
            if state.spool == spool {
                state.unloadedReceived -= books.received - state.loaded.received
                state.unloadedRejected -= books.rejected - state.loaded.rejected
            }
            state.spool = spool
            state.loaded = books
        }
    }

    /// A batch was committed.
    func noteLoaded(_ counts: VerdictCounts, received: Int, rejected: Int) {
        state.withLock {
            $0.loaded.received += Int64(received)
            $0.loaded.rejected += Int64(rejected)
            $0.loaded.stored += Int64(counts.stored)
            $0.loaded.duplicate += Int64(counts.duplicate)
            $0.loaded.conflict += Int64(counts.conflict)
            $0.loaded.deadLettered += Int64(counts.deadLettered)
            $0.unloadedReceived -= Int64(received)
            $0.unloadedRejected -= Int64(rejected)
        }
    }
}
