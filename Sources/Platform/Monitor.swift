import Glibc

/// Blocking synchronisation between threads.
package enum Sync {
    /// State behind a mutex, with a condition to wait for a change of it.
    ///
    /// `Synchronization.Mutex` is not used: ThreadSanitizer reports false races of it on Linux.
    /// The lock is not recursive. Deadlines are on the monotonic clock.
    @safe
    package final class Monitor<State: ~Copyable>: @unchecked Sendable {
        // SAFETY: each is allocated in `init`, freed in `deinit`, and never leaves this class;
        // `state` is touched only with the mutex held.
        private let mutex: UnsafeMutablePointer<pthread_mutex_t>
        private let condition: UnsafeMutablePointer<pthread_cond_t>
        private let state: UnsafeMutablePointer<State>

        /// Creates a monitor that owns `state`.
        package init(_ state: consuming sending State) {
            unsafe mutex = .allocate(capacity: 1)
            unsafe condition = .allocate(capacity: 1)
            unsafe self.state = .allocate(capacity: 1)
            unsafe self.state.initialize(to: state)
            unsafe mutex.initialize(to: pthread_mutex_t())
            unsafe condition.initialize(to: pthread_cond_t())
            var attributes = pthread_condattr_t()
            unsafe pthread_condattr_init(&attributes)
            unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
            let mutexCode = unsafe pthread_mutex_init(mutex, nil)
            let conditionCode = unsafe pthread_cond_init(condition, &attributes)
            precondition(mutexCode == 0 && conditionCode == 0, "could not make a monitor")
            unsafe pthread_condattr_destroy(&attributes)
        }

        deinit {
            unsafe pthread_cond_destroy(condition)
            unsafe pthread_mutex_destroy(mutex)
            unsafe state.deinitialize(count: 1)
            unsafe state.deallocate()
            unsafe condition.deallocate()
            unsafe mutex.deallocate()
        }

        /// Runs `body` with the lock held.
        ///
        /// - Parameter body: Decides on the state; act on the decision after the lock.
        /// - Returns: What `body` returns.
        /// - Throws: What `body` throws; the lock is released.
        package func withLock<Result, Failure: Error>(
            _ body: (inout State) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            unsafe pthread_mutex_lock(mutex)
            defer { unsafe pthread_mutex_unlock(mutex) }
            return try unsafe body(&state.pointee)
        }

        /// Waits until `body` answers something, which it is asked at once and after each signal.
        ///
        /// - Parameters:
        ///   - deadline: On the monotonic clock (``Clock/deadline(inMilliseconds:)``);
        ///     nil waits for ever.
        ///   - body: Runs with the lock held; nil means to wait on.
        /// - Returns: The answer of `body`, or nil when the deadline passed first.
        /// - Throws: What `body` throws; the lock is released.
        package func wait<Result, Failure: Error>(
            until deadline: Microseconds? = nil,
            for body: (inout State) throws(Failure) -> Result?
        ) throws(Failure) -> Result? {
            unsafe pthread_mutex_lock(mutex)
            defer { unsafe pthread_mutex_unlock(mutex) }
            while true {
                if let result = try unsafe body(&state.pointee) { return result }
                guard let deadline else {
                    unsafe pthread_cond_wait(condition, mutex)
                    continue
                }
                guard Clock.monotonic() < deadline else { return nil }
                var time = timespec(
                    tv_sec: Int(deadline / 1_000_000), tv_nsec: Int(deadline % 1_000_000) * 1000)
                unsafe pthread_cond_timedwait(condition, mutex, &time)
            }
        }

        /// Wakes one waiter.
        package func signal() { unsafe pthread_cond_signal(condition) }

        /// Wakes all waiters.
        package func broadcast() { unsafe pthread_cond_broadcast(condition) }
    }
}
