import Glibc

/// The signals that the daemon is steered by. They are blocked in every thread and waited for by
/// one.
enum Signals {
    /// What a signal asks for.
    enum Request: Equatable {
        case stop
        case reload
    }

    /// Blocks them for this thread and for those that it starts; call it before any is started.
    static func block() {
        var set = waited
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
    }

    /// Waits for the next one.
    static func wait() -> Request {
        var set = waited
        var number: Int32 = 0
        while true {
            guard unsafe sigwait(&set, &number) == 0 else { continue }
            return number == SIGHUP ? .reload : .stop
        }
    }

    private static var waited: sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { unsafe sigaddset(&set, number) }
        return set
    }
}
