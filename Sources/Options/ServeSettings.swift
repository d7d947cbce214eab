/// Where the daemon listens.
package struct ListenAddress: Equatable, Sendable, CustomStringConvertible {
    /// A numeric address or `localhost`, an IPv6 one without its brackets.
    package var host: String
    /// 0 for any free port.
    package var port: UInt16

    /// Makes an address.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Reads `ADDR:PORT`, `[ADDR6]:PORT` or `:PORT`, which is every address.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { return nil }
        } else if host.contains(where: { ":[]/ ".contains($0) }) {
            return nil
        }
        self.init(host: host.isEmpty ? "0.0.0.0" : String(host), port: port)
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// How much the daemon says.
package enum LogLevel: String, CaseIterable, Sendable { case error, warn, info, debug }

/// The limits of docs/http.md.
package struct HTTPSettings: Equatable, Sendable {
    /// Bytes of a body, as sent and inflated alike.
    package var bodyBytesMax = 10 << 20
    /// Lines of a body.
    package var bodyLinesMax = 10_000
    /// Bytes of one line; a longer one is that line's rejection.
    package var lineBytesMax = 64 << 10
    /// Bytes of a request's line and headers.
    package var headerBytesMax = 64 << 10
    /// From the first byte of a request to the end of its headers.
    package var headerTimeoutMilliseconds = 10_000
    /// From the end of the headers to the end of the body.
    package var bodyTimeoutMilliseconds = 120_000
    /// How long a kept connection may do nothing.
    package var idleTimeoutMilliseconds = 75_000
    /// Connections in all.
    package var connectionsMax = 10_000
    /// Connections from one address.
    package var connectionsPerAddressMax = 1024
    /// New connections a second from one address, then they are closed; 0 for no limit.
    package var addressConnectionsPerSecondMax = 4000
    /// Inflated bytes of all bodies in flight.
    package var inFlightBytesMax = 64 << 20
    /// Requests a second of one key, then 429; 0 for no limit.
    package var keyRequestsPerSecondMax = 0
    /// Events a second of one key, then 429; 0 for no limit.
    package var keyEventsPerSecondMax = 0
    /// The time whose share of both a key may save up.
    package var keyBurstMilliseconds = 1_000
    /// Requests a second of one vendor's app id that come without a key, then 429; 0 for no limit.
    package var aliasRequestsPerSecondMax = 1_000
    /// Where the notification statuses of SAP Mobile Services are taken.
    package var sapStatusPath = "/sap/notification-status"
    /// Where registrations of its devices are taken.
    package var sapRegistrationPath = "/sap/registrations"
    /// How long SIGTERM waits for requests in flight.
    package var drainTimeoutMilliseconds = 10_000

    /// Makes the defaults.
    package init() {}
}

/// The settings of the spool.
package struct SpoolSettings: Equatable, Sendable {
    /// Bytes of a segment before the next one is begun.
    package var segmentBytesMax = 64 << 20
    /// Bytes not yet loaded before events are refused with 503.
    package var bytesMax = 8 << 30
    /// How long loaded segments are kept for `tapline replay`.
    package var keepMilliseconds = 86_400_000
    /// Bytes of loaded segments kept.
    package var keepBytes = 4 << 30

    /// Makes the defaults.
    package init() {}
}

/// The settings of the loader.
package struct LoadSettings: Equatable, Sendable {
    /// Rows of one transaction.
    package var batchRowsMax = 75_000
    /// How long the first row of a batch may wait for others.
    package var batchAgeMilliseconds = 200
    /// Rows from which a partition of the event table is closed.
    package var segmentRowsMax = 500_000
    /// Bytes of the files of identities of closed segments.
    package var identityFilesBytesMax = 4 << 30
    /// How long a transaction waits for a lock before it is tried again.
    package var lockTimeoutMilliseconds = 10_000
    /// How long a statement may run; a server that is silent for longer is given up.
    package var statementTimeoutMilliseconds = 60_000

    /// Makes the defaults.
    package init() {}
}

/// The settings of reports over HTTP.
package struct ReportSettings: Equatable, Sendable {
    /// How long a report may keep the database busy.
    package var timeoutMilliseconds = 30_000

    /// Makes the defaults.
    package init() {}
}

/// Everything `tapline serve` can be told, after flags, environment and file.
package struct ServeSettings: Equatable, Sendable {
    /// Where HTTP is served.
    package var listen = ListenAddress(host: "127.0.0.1", port: 8080)
    /// Spool, caches and the embedded database live here; absolute or relative to the caller.
    package var dataDirectory = ""
    /// A libpq connection string; nil leaves it to `DATABASE_URL`, `PG…`, else the embedded one.
    package var database: String?
    /// The log level.
    package var logLevel = LogLevel.info
    /// HTTP limits.
    package var http = HTTPSettings()
    /// Spool limits.
    package var spool = SpoolSettings()
    /// Batching.
    package var load = LoadSettings()
    /// Reports over HTTP.
    package var report = ReportSettings()

    /// Makes the defaults; the data directory is empty and has to be set.
    package init() {}
}
