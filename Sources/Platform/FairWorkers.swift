import Synchronization

/// A few threads that stand back behind others and do what they are given, in turn by whose it is.
///
/// However much one owner gives them, another's work waits for one piece of each owner before it.
/// The threads end after the last piece once the workers are gone or ``close()`` was called.
package final class FairWorkers: Sendable {
    package typealias Work = @Sendable () -> Void

    private struct State {
        var waiting: [[UInt8]: [Work]] = [:]
        /// The owners of what waits, in the order of their turns.
        var turns: [[UInt8]] = []
        var isClosed = false
    }
    private let state: Sync.Monitor<State>
    private let stoodBack = Atomic(0)

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - name: Of each thread; 15 bytes are kept.
    ///   - niceness: 0, or up to 19.
    package init(name: String, threads: Int, niceness: Int) {
        precondition(threads > 0, "\(threads) threads are not positive")
        let state = Sync.Monitor(State())
        self.state = state
        for _ in 0..<threads {
            Thread.start(name: name, niceness: niceness) {
                while let work = Self.next(state) { work() }
            }
        }
    }

    deinit { close() }

    /// How many pieces of work no thread has begun.
    package var waitingCount: Int {
        state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } }
    }

    /// How often work has called ``standBack()``.
    package var stoodBackCount: Int { stoodBack.load(ordering: .relaxed) }

    /// Lets the threads before which these stand back go first. Work calls it every fraction of a
    /// millisecond: see ``Thread/standBack()``.
    package func standBack() {
        stoodBack.add(1, ordering: .relaxed)
        Thread.standBack()
    }

    /// Gives work to the threads. What is in hand is not bounded here.
    ///
    /// - Returns: False after ``close()``; the work will not be done.
    package func give(_ work: @escaping Work, of owner: [UInt8]) -> Bool {
        let isTaken = state.withLock { state in
            if state.isClosed { return false }
            if state.waiting[owner] == nil { state.turns.append(owner) }
            state.waiting[owner, default: []].append(work)
            return true
        }
        if isTaken { state.signal() }
        return isTaken
    }

    /// Takes no more work; what is in hand is done.
    package func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
    }

    private static func next(_ state: Sync.Monitor<State>) -> Work? {
        state.wait { state -> Work?? in
            guard !state.turns.isEmpty else { return state.isClosed ? .some(nil) : nil }
            let owner = state.turns.removeFirst()
            let work = state.waiting[owner]!.removeFirst()
            if state.waiting[owner]!.isEmpty {
                state.waiting[owner] = nil
            } else {
                state.turns.append(owner)
            }
            return .some(work)
        } ?? nil
    }
}
