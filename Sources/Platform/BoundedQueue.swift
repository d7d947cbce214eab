/// A first-in first-out hand-over between threads that never grows over its capacity.
///
/// Full means that the producer is told at once (503 with `Retry-After`), never that it waits.
package final class BoundedQueue<Element>: Sendable {
    /// The most elements it holds.
    package let capacity: Int
    private let monitor: Sync.Monitor<State>

    private struct State {
        var ring: [Element?]
        var first = 0
        var count = 0
        var isClosed = false
        var pushed: UInt64 = 0
        var popped: UInt64 = 0
    }

    /// Creates an empty queue.
    package init(capacity: Int) {
        precondition(capacity > 0, "capacity \(capacity) is not positive")
        self.capacity = capacity
        monitor = .init(State(ring: Array(repeating: nil, count: capacity)))
    }

    /// Adds an element, without waiting.
    ///
    /// - Returns: False when the queue is full or closed; the element is then not kept.
    package func tryPush(_ element: sending Element) -> Bool {
        let isPushed = monitor.withLock { state in
            guard state.count < capacity, !state.isClosed else { return false }
            state.ring[(state.first + state.count) % capacity] = element
            state.count += 1
            state.pushed += 1
            return true
        }
        if isPushed { monitor.signal() }
        return isPushed
    }

    /// Takes the oldest element, waiting for one.
    ///
    /// - Parameter timeoutMilliseconds: How long to wait; nil waits until the queue is closed.
    /// - Returns: Nil after the timeout, or at once when the queue is closed and empty.
    package func pop(timeoutMilliseconds: Int? = nil) -> Element? {
        let deadline = timeoutMilliseconds.map(Clock.deadline(inMilliseconds:))
        return monitor.wait(until: deadline) { state -> Element?? in
            guard state.count > 0 else { return state.isClosed ? .some(nil) : nil }
            let element = state.ring[state.first]
            state.ring[state.first] = nil
            state.first = (state.first + 1) % capacity
            state.count -= 1
            state.popped += 1
            return .some(element)
        } ?? nil
    }

    /// Refuses further pushes and ends the waiting of all consumers once it is empty.
    package func close() {
        monitor.withLock { $0.isClosed = true }
        monitor.broadcast()
    }

    /// How many elements were ever pushed and popped; their difference is the length.
    package var totals: (pushed: UInt64, popped: UInt64) {
        monitor.withLock { ($0.pushed, $0.popped) }
    }
}
