import Foundation
import Glibc

/// A TCP proxy in front of a PostgreSQL server's socket, which can be told to misbehave.
final class DatabaseProxy: @unchecked Sendable {
    /// What becomes of the bytes of every connection, present and future.
    enum Mode: CaseIterable {
        case pass
        /// Everything is read and thrown away: a black hole that still answers for its sockets.
        case swallow
        /// Nothing is read any more, so that at some time nothing can be sent.
        case stopReading
    }

    /// Both ends of one connection.
    // SAFETY: its flags change under the lock of the proxy only.
    private final class Link: @unchecked Sendable {
        let client: Int32
        let server: Int32
        /// Whether its server is gone, and the client is not told.
        var isForgotten = false
        /// Whether a COMMIT has passed whose answer is to be lost.
        var isCommitting = false

        init(_ client: Int32, _ server: Int32) {
            self.client = client
            self.server = server
        }
    }

    let port: Int
    private var target: String
    private let listener: Int32
    private let lock = NSLock()
    private var mode = Mode.pass
    private var links: [ObjectIdentifier: Link] = [:]
    private var commitsToCut = 0
    private var isClosed = false

    /// - Parameter cluster: The server; it need not be running.
    init(_ cluster: Cluster) throws {
        target = cluster.socket
        (listener, port) = try Self.listen()
        let listener = listener
        Thread.detachNewThread { [weak self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                guard let self else {
                    close(client)
                    return
                }
                take(client)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        for link in links.values { Self.end(link) }
    }

    /// How the daemon reaches the database through it.
    func conninfo(_ database: String = "tapline") -> String {
        "host=127.0.0.1 port=\(port) user=tapline dbname=\(database) connect_timeout=2 "
            + "sslmode=disable gssencmode=disable"
    }

    // MARK: What it is told

    /// From now on; connections that were made in another mode are cut when it is over.
    func set(_ mode: Mode) {
        lock.withLock { self.mode = mode }
        if mode == .pass { cut() }
    }

    /// Passes new connections to another server, and cuts those that are there.
    func turn(to cluster: Cluster) {
        lock.withLock { target = cluster.socket }
        cut()
    }

    /// Ends every connection on both sides.
    func cut() {
        lock.withLock {
            for link in links.values { Self.end(link) }
        }
    }

    /// Says to every client that the server will send no more, and nothing else.
    func halfClose() {
        lock.withLock {
            for link in links.values { shutdown(link.client, Int32(SHUT_WR)) }
        }
    }

    /// The server's side of every connection ends and the client's stays open, silent: as after a crash of
    /// the server's machine. New connections work.
    func forgetServers() {
        lock.withLock {
            for link in links.values {
                link.isForgotten = true
                shutdown(link.server, Int32(SHUT_RDWR))
            }
        }
    }

    /// Cuts the connection of each of the next commits after it has taken effect and before its answer
    /// is passed on.
    func cutNextCommits(_ count: Int) { lock.withLock { commitsToCut = count } }

    /// How many commits are still to be cut.
    var commitsLeftToCut: Int { lock.withLock { commitsToCut } }

    // MARK: Passing bytes

    private func take(_ client: Int32) {
        let socket = lock.withLock { target }
        guard let server = Self.connect(socket) else {
            close(client)
            return
        }
        let link = Link(client, server)
        lock.withLock {
            links[ObjectIdentifier(link)] = link
            // It was turned meanwhile, and that one was not there yet to be cut.
            if socket != target { Self.end(link) }
        }
        let both = DispatchGroup()
        both.enter()
        both.enter()
        Thread.detachNewThread { [self] in
            pump(link, isUpwards: true)
            both.leave()
        }
        Thread.detachNewThread { [self] in
            pump(link, isUpwards: false)
            both.leave()
        }
        both.notify(queue: .global()) { [self] in
            lock.withLock { links[ObjectIdentifier(link)] = nil }
            close(client)
            close(server)
        }
    }

    /// - Parameter isUpwards: Towards the server.
    private func pump(_ link: Link, isUpwards: Bool) {
        let (source, sink) = isUpwards ? (link.client, link.server) : (link.server, link.client)
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            var poller = pollfd(fd: source, events: Int16(POLLIN), revents: 0)
            // A moment, so that a change of mode is seen.
            guard unsafe poll(&poller, 1, 20) >= 0 else { return }
            let mode = lock.withLock { self.mode }
            if poller.revents == 0 { continue }
            if mode == .stopReading {
                // That the server ends a session which was in a transaction does not get through.
                if isUpwards, Int32(poller.revents) & POLLHUP != 0 { return Self.end(link) }
                usleep(5000)
                continue
            }
            let count = unsafe recv(source, &bytes, bytes.count, 0)
            let isForgotten = lock.withLock { link.isForgotten }
            if count <= 0 {
                // What a crash and a silent way hide: that the server has ended the session.
                if isForgotten || mode == .swallow, !isUpwards { return }
                return Self.end(link)
            }
            if mode == .swallow || isForgotten { continue }
            if isUpwards {
                noteCommit(bytes[..<count], of: link)
            } else if lock.withLock({ link.isCommitting }) {
                return Self.end(link)
            }
            var sent = 0
            while sent < count {
                let part = unsafe bytes.withUnsafeBytes { raw in
                    unsafe send(sink, raw.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
                }
                guard part > 0 else {
                    // The server has been forgotten since that was looked at.
                    if isUpwards, lock.withLock({ link.isForgotten }) { break }
                    return Self.end(link)
                }
                sent += part
            }
        }
    }

    /// A simple query that ends with COMMIT is `Q`, its length, `…COMMIT` and a NUL.
    private func noteCommit(_ bytes: ArraySlice<UInt8>, of link: Link) {
        guard bytes.suffix(7).elementsEqual(Array("COMMIT\0".utf8)) else { return }
        lock.withLock {
            guard commitsToCut > 0 else { return }
            commitsToCut -= 1
            link.isCommitting = true
        }
    }

    private static func end(_ link: Link) {
        shutdown(link.client, Int32(SHUT_RDWR))
        shutdown(link.server, Int32(SHUT_RDWR))
    }

    // MARK: Sockets

    private static func listen() throws -> (Int32, Int) {
        let socket = Glibc.socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        // SAFETY: a sockaddr_in is a sockaddr, and its own size is given.
        let code = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(socket, pointer, size) | Glibc.listen(socket, 64)
                    | getsockname(socket, pointer, &size)
            }
        }
        guard code == 0 else { throw Failure("the proxy cannot listen: errno \(errno)") }
        return (socket, Int(UInt16(bigEndian: address.sin_port)))
    }

    private static func connect(_ path: String) -> Int32? {
        let socket = Glibc.socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) {
            unsafe $0.copyBytes(from: path.utf8)
        }
        // SAFETY: a sockaddr_un is a sockaddr, and its own size is given.
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe Glibc.connect(socket, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if code == 0 { return socket }
        close(socket)
        return nil
    }
}
