import Glibc
import Platform
import Synchronization

/// An HTTP/1.1 server on libmicrohttpd.
///
/// A few threads wait with epoll, read requests and call the handler there; one more takes the
/// connections for them. An answer
/// that comes later suspends the connection and costs no thread. The server knows nothing of what
/// it serves.
@safe
package final class HTTPServer: Sendable {
    /// The port that is listened on; the one that the system chose when 0 was asked for.
    package let port: Int
    /// The address that was asked for.
    package let address: String

    private let engine: Engine
    private let reaper: Thread
    private let listener: ListenSocket
    private let acceptor: Acceptor
    private let acceptorThread: Thread
    private let isStopped = Atomic(false)

    /// Starts to listen and to serve.
    ///
    /// - Parameters:
    ///   - configuration: Address and limits.
    ///   - handler: Answers the requests; kept until ``stop(drainSeconds:)``.
    /// - Throws: ``HTTPServerError``; nothing is left open.
    package init(
        configuration: HTTPServerConfiguration, handler: any HTTPHandler
    ) throws(HTTPServerError) {
        let listener = try ListenSocket(
            configuration.listen, unreadMilliseconds: configuration.writeTimeoutMilliseconds)
        let engine = Engine(configuration: configuration, handler: handler)
        Self.raiseDescriptorLimit(to: engine.registry.hardLimit + 256)
        guard let acceptor = Acceptor(listener, engine) else {
            let reason = unsafe String(cString: strerror(errno)).lowercased()
            close(listener.descriptor)
            throw .couldNotStart(configuration.listen, reason: reason)
        }
        self.engine = engine
        address = configuration.listen
        port = listener.port
        self.listener = listener
        self.acceptor = acceptor
        acceptorThread = Thread.start(name: "http-accept", isPrompt: true) { acceptor.run() }
        reaper = Thread.start(name: "http-timeouts") {
            engine.registry.reap(
                answer: { failure in
                    let response = engine.handler.response(to: failure, of: nil)
                    return response.serialized(reason: Engine.reason(response.status))
                }, say: engine.handler.refused)
        }
    }

    deinit { stop(drainSeconds: 0) }

    /// What the server has counted.
    package var statistics: HTTPStatistics { engine.registry.statistics }

    /// Ends the server: takes no new connection, lets requests under way finish for a while, answers
    /// the rest 503, and waits for its threads. Further calls do nothing.
    ///
    /// - Parameter drainSeconds: How long requests under way may take.
    package func stop(drainSeconds: Int) {
        guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        acceptor.stop()
        acceptorThread.join()
        close(listener.descriptor)
        let registry = engine.registry
        registry.drain()
        let deadline = Clock.deadline(inMilliseconds: drainSeconds * 1000)
        if !registry.waitForRequests(until: deadline) {
            let handler = engine.handler
            registry.stop { handler.response(to: .stopping, of: $0) }
            // The answers of the last line still have to be written.
            _ = registry.waitForRequests(until: Clock.deadline(inMilliseconds: 1000))
        }
        registry.stop { _ in Response(status: 503) }
        acceptor.endWorkers()
        registry.endReaping()
        reaper.join()
    }

    /// Each connection is a descriptor, and the usual soft limit is 1024.
    private static func raiseDescriptorLimit(to wanted: Int) {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return
        }
        guard limit.rlim_cur < rlim_t(wanted) else { return }
        limit.rlim_cur = min(limit.rlim_max, rlim_t(wanted))
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
