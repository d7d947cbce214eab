import Glibc

/// Where the server listens, and every limit it holds its clients to.
package struct HTTPServerConfiguration: Sendable {
    /// `ADDRESS:PORT`; IPv6 as `[ADDRESS]:PORT`, `[::]:PORT` takes IPv4 as well; port 0 takes any.
    package var listen = "127.0.0.1:8080"
    /// Threads that read requests, run the handler's callbacks and write answers: one a core, and no
    /// more than four, as decoding is not all that the cores have to do.
    package var threads = max(1, min(4, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
    /// Connections at one time. Those over it are answered 503, and far over it closed.
    package var connectionsMax = 10_000
    /// Connections at one time from one address.
    package var connectionsPerAddressMax = 1024
    /// New connections a second from one address, or from one /64 network of IPv6; more are closed at
    /// once. A second's share, or as many as it may have at one time, may come together. 0 for no limit.
    package var addressConnectionsPerSecondMax = 4000
    /// Request line and headers of one request. Hundreds of tiny headers reach the limit earlier, for
    /// each is kept with about 72 bytes of its own.
    package var headerBytesMax = 64 * 1024
    /// A body as it is sent.
    package var bodyBytesMax = 10 * 1024 * 1024
    /// How much of a body that nobody wants is read and thrown away to keep the connection in use.
    package var discardBytesMax = 1024 * 1024
    /// From the accept, or from the request line, to the end of the headers.
    package var headerTimeoutMilliseconds = 10_000
    /// From the end of the headers to the end of the body.
    package var bodyTimeoutMilliseconds = 120_000
    /// The slowest body that is waited for, once the grace is over.
    package var bodyBytesPerSecondMin = 256
    /// How long a body may be slower than the minimum.
    package var bodyGraceMilliseconds = 10_000
    /// From one answer to the next request line.
    package var idleTimeoutMilliseconds = 75_000
    /// How long a client may take to read an answer.
    package var writeTimeoutMilliseconds = 30_000

    /// A configuration with the defaults.
    package init() {}
}
