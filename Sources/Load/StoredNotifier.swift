import Platform
import Spool
import Synchronization

/// Tells those who wait (`?ack=stored`) what became of their body.
///
/// The loader may be done with a record before the request that wrote it asks, so while any request
/// has announced itself the results of all records are kept for a while.
package final class StoredNotifier: Sendable {
    private struct Position: Hashable {
        let segment: UInt64
        let offset: UInt64

        init(_ mark: SpoolMark) {
            segment = mark.segment
            offset = mark.offset
        }
    }

    private struct Waiter {
        let deadline: Int64
        let completion: @Sendable (VerdictCounts?) -> Void
    }

    private struct State {
        var waiters: [Position: Waiter] = [:]
        var results: [Position: (counts: VerdictCounts, expires: Int64)] = [:]
    }

    private let state = Sync.Monitor(State())
    private let announced = Atomic(0)
    private static let keepMicroseconds: Int64 = 30_000_000

    package init() {}

    /// Whether anybody waits or is about to.
    var isAwaited: Bool { announced.load(ordering: .acquiring) > 0 }

    /// A request is about to spool a body and will wait for it: call ``wait(for:until:completion:)``
    /// or ``withdraw()`` after this, once.
    package func announce() { announced.add(1, ordering: .acquiringAndReleasing) }

    /// The announced request failed before there was a record to wait for.
    package func withdraw() { announced.subtract(1, ordering: .acquiringAndReleasing) }

    /// Calls `completion` once: with the verdicts when the record is loaded, with nil when it is
    /// not by then. It runs on a thread of the loader, or on the caller's.
    ///
    /// - Parameters:
    ///   - mark: The record, as the spool's append gave it.
    ///   - deadline: Monotonic microseconds.
    package func wait(
        for mark: SpoolMark, until deadline: Int64,
        completion: @escaping @Sendable (VerdictCounts?) -> Void
    ) {
        let known = state.withLock { state -> VerdictCounts? in
            if let result = state.results.removeValue(forKey: Position(mark)) {
                return result.counts
            }
            state.waiters[Position(mark)] = Waiter(deadline: deadline, completion: completion)
            return nil
        }
        if let known {
            withdraw()
            completion(known)
        }
    }

    /// The loader's word on an awaited record.
    func publish(_ counts: VerdictCounts, for mark: SpoolMark) {
        let waiter = state.withLock { state -> Waiter? in
            if let waiter = state.waiters.removeValue(forKey: Position(mark)) { return waiter }
            state.results[Position(mark)] = (counts, Clock.monotonic() + Self.keepMicroseconds)
            return nil
        }
        guard let waiter else { return }
        withdraw()
        waiter.completion(counts)
    }

    /// Gives up those whose time is over; called several times a second.
    package func expire(now: Int64 = Clock.monotonic()) {
        let late = state.withLock { state -> [Waiter] in
            let late = state.waiters.filter { $0.value.deadline <= now }
            for position in late.keys { state.waiters[position] = nil }
            state.results = state.results.filter { $0.value.expires > now }
            return Array(late.values)
        }
        for waiter in late {
            withdraw()
            waiter.completion(nil)
        }
    }
}
