internal import CHTTPShim
internal import CMicrohttpd
import Glibc
import Platform

/// Takes new connections and hands each to the thread that has the fewest.
///
/// Were they left to libmicrohttpd, each connection would go to the thread that sees it first, and that
/// one takes those behind it too: of eight connections of one client a thread often had six, or all.
@safe
final class Acceptor: Sendable {
    private let listener: ListenSocket
    private let registry: ConnectionRegistry
    /// A libmicrohttpd each, with one thread.
    // SAFETY: used by ``run()`` only, and ended once, after it.
    private nonisolated(unsafe) let workers: [OpaquePointer]

    /// Starts the threads that serve connections.
    ///
    /// - Parameter engine: Must outlive them.
    /// - Returns: Nil with `errno` set when one could not start; then nothing of them is left.
    init?(_ listener: ListenSocket, _ engine: Engine) {
        var workers = unsafe [OpaquePointer]()
        for _ in 0..<engine.configuration.threads {
            guard let worker = unsafe engine.startWorker() else {
                let number = errno
                unsafe workers.forEach { unsafe MHD_stop_daemon($0) }
                errno = number
                return nil
            }
            unsafe workers.append(worker)
        }
        self.listener = listener
        registry = engine.registry
        unsafe self.workers = workers
    }

    /// Makes ``run()`` return; connections that nobody has taken are reset.
    func stop() { shutdown(listener.descriptor, Int32(SHUT_RD)) }

    /// Takes connections until ``stop()``.
    func run() {
        while true {
            var storage = sockaddr_storage()
            var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let isStopped = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    let socket = unsafe tapline_http_accept(listener.descriptor, address, &count)
                    if socket < 0 { return Self.isStopped(by: errno) }
                    unsafe handOver(socket, address, count)
                    return false
                }
            }
            if isStopped { return }
        }
    }

    /// Ends the threads and their connections, once ``run()`` has returned.
    func endWorkers() { unsafe workers.forEach { unsafe MHD_stop_daemon($0) } }

    private func handOver(_ socket: Int32, _ address: UnsafePointer<sockaddr>, _ count: socklen_t) {
        guard let worker = unsafe registry.place(socket, ClientAddress(address)) else {
            close(socket)
            return
        }
        // It closes the socket if it cannot take it.
        if unsafe MHD_add_connection(workers[worker], socket, address, count) == .NO {
            registry.unplace(socket)
        }
    }

    /// Waits a little where the kernel has no room for one more.
    private static func isStopped(by number: Int32) -> Bool {
        switch number {
        case EINVAL: return true
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: poll(nil, 0, 10)
        default: break  // The connection is gone, or a signal came.
        }
        return false
    }
}
