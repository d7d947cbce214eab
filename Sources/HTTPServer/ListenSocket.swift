import Glibc

/// The listening socket. Opened here, and not by libmicrohttpd, so that its errors have names and
/// connections are taken by ``Acceptor``.
struct ListenSocket {
    let descriptor: Int32
    let port: Int

    /// Opens a socket that listens on `address`.
    ///
    /// - Parameters:
    ///   - address: See ``HTTPServerConfiguration/listen``.
    ///   - unreadMilliseconds: How long what is sent may stay without an acknowledgement of the client's
    ///     kernel, or without room in it, until the connection is broken off; those that are accepted inherit
    ///     it. An answer that never ends, and of which little is sent, would else go on for the quarter of
    ///     an hour that the kernel tries again.
    /// - Throws: ``HTTPServerError``; no descriptor is left open.
    init(_ address: String, unreadMilliseconds: Int) throws(HTTPServerError) {
        guard let (host, service) = Self.split(address) else { throw .malformedAddress(address) }
        var hints = unsafe addrinfo()
        unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, service, &hints, &list)
        guard code == 0, let first = unsafe list else {
            throw .couldNotResolve(address, reason: unsafe String(cString: gai_strerror(code)))
        }
        defer { unsafe freeaddrinfo(first) }
        // SAFETY: the list lives until `freeaddrinfo`.
        let info = unsafe first.pointee
        let descriptor = unsafe socket(
            info.ai_family, info.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .couldNotListen(address, reason: Self.reason(errno)) }
        Self.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        Self.set(
            descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT,
            Int32(clamping: unreadMilliseconds))
        if unsafe info.ai_family == AF_INET6 {
            Self.set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0)
        }
        guard unsafe bind(descriptor, info.ai_addr, info.ai_addrlen) == 0,
            listen(descriptor, 4096) == 0,
            let port = Self.port(of: descriptor)
        else {
            let number = errno
            close(descriptor)
            if number == EADDRINUSE { throw .addressInUse(address) }
            throw .couldNotListen(address, reason: Self.reason(number))
        }
        self.descriptor = descriptor
        self.port = port
    }

    /// Splits `HOST:PORT` and `[HOST]:PORT`; an empty host means every address.
    static func split(_ address: String) -> (host: String?, service: String)? {
        guard let colon = address.lastIndex(of: ":") else { return nil }
        let service = address[address.index(after: colon)...]
        guard !service.isEmpty, service.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(service), number <= 65_535
        else { return nil }
        var host = address[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            if host.isEmpty { return nil }
        } else if host.contains(":") {
            return nil
        }
        return (host.isEmpty ? nil : String(host), String(service))
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        unsafe setsockopt(
            descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func port(of descriptor: Int32) -> Int? {
        var storage = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe getsockname(descriptor, address, &count)
            }
        }
        guard status == 0 else { return nil }
        // The port is in network order at the same place for both families.
        return unsafe withUnsafeBytes(of: storage) { bytes in
            unsafe Int(bytes[2]) << 8 | Int(bytes[3])
        }
    }

    private static func reason(_ number: Int32) -> String {
        unsafe String(cString: strerror(number)).lowercased()
    }
}
