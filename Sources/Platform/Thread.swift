internal import CPlatform
import Glibc
import Synchronization

/// A POSIX thread that runs one closure.
@safe
package final class Thread: @unchecked Sendable {
    private let handle: pthread_t
    private let isJoined = Atomic(false)

    private init(handle: pthread_t) { self.handle = handle }

    /// Starts a thread.
    ///
    /// - Parameters:
    ///   - name: Shown by `top -H`; 15 bytes are kept.
    ///   - niceness: 0, or up to 19: how far it stands back where other threads have something to do.
    ///   - isPrompt: Whether it does a little at a time that somebody waits for: see ``promptly(_:)``.
    ///   - stackBytes: The size of its stack.
    ///   - body: Runs on the new thread, and should see for itself when to end.
    /// - Returns: A handle for ``join()``; one that is dropped lets the thread run on.
    @discardableResult
    package static func start(
        name: String, niceness: Int = 0, isPrompt: Bool = false, stackBytes: Int = 1 << 20,
        _ body: @escaping @Sendable () -> Void
    ) -> Thread {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        unsafe pthread_attr_setstacksize(&attributes, stackBytes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        var handle = pthread_t()
        // SAFETY: the reference retained here is the one that `runThread` takes.
        let start = unsafe Unmanaged.passRetained(
            ThreadStart(name: name, niceness: niceness, isPrompt: isPrompt, body: body)
        ).toOpaque()
        let code = unsafe pthread_create(&handle, &attributes, runThread, start)
        precondition(code == 0, "could not start thread \"\(name)\": errno \(code)")
        return Thread(handle: handle)
    }

    /// The niceness of work that no client waits for, of the daemon and of its database: who waits for an
    /// answer goes first.
    package static let behindAnswers = 10

    /// Makes the threads that `body` starts prompt: they run as soon as they are woken, though others,
    /// of this and other programs, have not used up their turn. Their share of the processors is the same.
    package static func promptly<Result>(_ body: () -> Result) -> Result {
        tapline_set_thread_slice(promptNanoseconds)
        defer { tapline_set_thread_slice(0) }
        return body()
    }

    /// The kernel's least, and more than one request takes.
    fileprivate static let promptNanoseconds: UInt64 = 100_000

    /// Lets all others that want this processor go first, once; costs about a microsecond where nobody does.
    ///
    /// A thread that computes for long calls it every fraction of a millisecond: a kernel that looks at its
    /// threads 250 times a second would leave the processor to it for milliseconds, however far it stands back.
    package static func standBack() { sched_yield() }

    /// Waits until the thread has ended. Further calls return at once.
    package func join() {
        guard !isJoined.exchange(true, ordering: .acquiringAndReleasing) else { return }
        pthread_join(handle, nil)
    }

    deinit {
        if !isJoined.load(ordering: .acquiring) { pthread_detach(handle) }
    }
}

private final class ThreadStart: Sendable {
    let name: String
    let niceness: Int
    let isPrompt: Bool
    let body: @Sendable () -> Void
    init(name: String, niceness: Int, isPrompt: Bool, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.niceness = niceness
        self.isPrompt = isPrompt
        self.body = body
    }
}

private func runThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument = unsafe argument else { return nil }
    // SAFETY: made by `Thread.start`, which gives its reference to this thread.
    let start = unsafe Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
    unsafe tapline_set_thread_name(start.name)
    if start.niceness > 0 { tapline_set_thread_niceness(Int32(start.niceness)) }
    if start.isPrompt { tapline_set_thread_slice(Thread.promptNanoseconds) }
    start.body()
    return nil
}

/// Settings of the process's memory.
package enum Memory {
    /// Bounds the number of malloc arenas: one or two keep the idle size at a fourth.
    package static func limitArenas(to count: Int) {
        tapline_limit_malloc_arenas(Int32(count))
    }
}
