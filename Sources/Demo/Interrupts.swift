import Glibc
import Synchronization

/// Notices Ctrl-C, so that what was started can be stopped first.
///
/// SIGINT, SIGTERM and SIGHUP are blocked in the caller and in threads made later; a thread of
/// its own waits for them. A second one ends the process at once.
package final class Interrupts: Sendable {
    private let noticed = Atomic<Bool>(false)

    /// Begins to notice. Call on the main thread, before other threads are made.
    package init() {
        var signals = Interrupts.signals
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        var thread = pthread_t()
        // SAFETY: the thread owns the reference that `passRetained` adds, and never ends.
        unsafe pthread_create(
            &thread, nil,
            { context in
                let interrupts = unsafe Unmanaged<Interrupts>.fromOpaque(context!)
                unsafe interrupts.takeUnretainedValue().wait()
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }

    /// Whether a signal came.
    package var isNoticed: Bool { noticed.load(ordering: .acquiring) }

    private static var signals: sigset_t {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP] { unsafe sigaddset(&signals, signal) }
        return signals
    }

    private func wait() -> Never {
        var signals = Interrupts.signals
        while true {
            var signal: Int32 = 0
            guard unsafe sigwait(&signals, &signal) == 0 else { continue }
            if noticed.exchange(true, ordering: .acquiringAndReleasing) { _exit(128 + signal) }
        }
    }
}
