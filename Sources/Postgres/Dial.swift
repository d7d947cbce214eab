internal import CPostgres
import Glibc
import Platform

/// Opens a session.
struct Dial {
    private let conninfo: String
    private let applicationName: String
    private let connectSeconds: Int

    private static let keepaliveIdleSeconds = 10
    private static let keepaliveIntervalSeconds = 5
    private static let keepaliveCount = 3
    private static let userTimeoutMilliseconds = 20_000

    /// - Throws: ``PostgresError/unreadableConninfo(reason:)``.
    init(
        _ conninfo: String, _ applicationName: String, _ connectSeconds: Int
    ) throws(PostgresError) {
        try Conninfo.check(conninfo)
        self.conninfo = conninfo
        self.applicationName = applicationName
        self.connectSeconds = connectSeconds
    }

    /// What libpq is told, in order: a later setting overrides an earlier one, and `dbname` stands
    /// for all settings of `conninfo`. A peer that vanished is noticed within half a minute.
    private var settings: [(keyword: String, value: String)] {
        [
            ("connect_timeout", String(connectSeconds)), ("application_name", applicationName),
            ("keepalives", "1"), ("keepalives_idle", String(Self.keepaliveIdleSeconds)),
            ("keepalives_interval", String(Self.keepaliveIntervalSeconds)),
            ("keepalives_count", String(Self.keepaliveCount)),
            ("tcp_user_timeout", String(Self.userTimeoutMilliseconds)), ("dbname", conninfo),
            ("client_encoding", "UTF8"),
        ]
    }

    /// Connects.
    ///
    /// libpq does not tell the SQLSTATE of a refused connection, except within the message when
    /// asked to be verbose, and that can be asked only of its non-blocking calls; those in turn do
    /// not try the next host after a timeout. So a refusal is asked for again to learn its SQLSTATE.
    func connect() throws(PostgresError) -> OpaquePointer {
        let start = Clock.monotonic()
        let first = unsafe withSettings { unsafe PQconnectdbParams($0, $1, 1) }
        guard let first = unsafe first else { throw outOfMemory }
        if unsafe PQstatus(first) == CONNECTION_OK { return try unsafe ready(first) }
        let reason = unsafe Self.flatten(String(cString: PQerrorMessage(first)))
        let server = unsafe Self.name(of: first)
        unsafe PQfinish(first)  // A failed connection still has to be freed.
        var sqlstate: String?
        if Clock.monotonic() - start < Int64(connectSeconds) * 500_000 {
            switch unsafe connectVerbosely() {
            case .connected(let second): return try unsafe ready(second)
            case .refused(let state): sqlstate = state
            }
        }
        throw .couldNotConnect(server: server, reason: reason, sqlstate: sqlstate)
    }

    @unsafe
    private enum Attempt {
        case connected(OpaquePointer)
        case refused(sqlstate: String?)
    }

    @unsafe
    private func connectVerbosely() -> Attempt {
        let deadline = Clock.deadline(inMilliseconds: 3000)
        guard let raw = unsafe withSettings({ unsafe PQconnectStartParams($0, $1, 1) }) else {
            return unsafe .refused(sqlstate: nil)
        }
        unsafe PQsetErrorVerbosity(raw, PQERRORS_VERBOSE)
        var status = PGRES_POLLING_WRITING
        while unsafe PQstatus(raw) != CONNECTION_BAD, Clock.monotonic() < deadline {
            let wanted = status == PGRES_POLLING_READING ? POLLIN : POLLOUT
            var socket = pollfd(fd: unsafe PQsocket(raw), events: Int16(wanted), revents: 0)
            guard unsafe poll(&socket, 1, 100) > 0 else { continue }
            status = unsafe PQconnectPoll(raw)
            if status == PGRES_POLLING_OK {
                unsafe PQsetErrorVerbosity(raw, PQERRORS_DEFAULT)
                return unsafe .connected(raw)
            }
            if status == PGRES_POLLING_FAILED { break }
        }
        let message = unsafe String(cString: PQerrorMessage(raw))
        unsafe PQfinish(raw)
        return unsafe .refused(sqlstate: Self.sqlstate(in: message))
    }

    @unsafe
    private func ready(_ raw: OpaquePointer) throws(PostgresError) -> OpaquePointer {
        _ = unsafe PQsetNoticeProcessor(raw, logNotice, nil)
        // What a report prints may not depend on the settings of the server or of the user. And the
        // server is to notice a vanished daemon as soon as that notices a vanished server: its own
        // default is two hours, during which the dead session would hold the locks of a spool.
        let sql = """
            SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'iso_8601';
            SET tcp_keepalives_idle = \(Self.keepaliveIdleSeconds);
            SET tcp_keepalives_interval = \(Self.keepaliveIntervalSeconds);
            SET tcp_keepalives_count = \(Self.keepaliveCount);
            SET tcp_user_timeout = \(Self.userTimeoutMilliseconds)
            """
        let patience = unsafe Patience(raw, milliseconds: connectSeconds * 1000)
        var isReady = unsafe PQsendQuery(raw, sql) == 1
        var silence: String?
        do throws(PostgresError) {
            while isReady {
                try patience.waitForResult()
                guard let result = unsafe PQgetResult(raw) else { break }
                isReady = unsafe PQresultStatus(result) == PGRES_COMMAND_OK
                unsafe PQclear(result)
            }
        } catch {
            if case .connectionLost(let reason, _) = error { silence = reason }
        }
        if isReady, silence == nil { return unsafe raw }
        let message = unsafe Self.flatten(String(cString: PQerrorMessage(raw)))
        let server = unsafe Self.name(of: raw)
        unsafe PQfinish(raw)
        throw .couldNotConnect(
            server: server, reason: silence ?? message, sqlstate: nil)
    }

    private var outOfMemory: PostgresError {
        .couldNotConnect(
            server: Conninfo.redacted(conninfo), reason: "out of memory", sqlstate: nil)
    }

    /// Calls `body` with the keywords and the values as C arrays that end with null.
    @unsafe
    private func withSettings(
        _ body: (
            UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>
        ) -> OpaquePointer?
    ) -> OpaquePointer? {
        let keywords = unsafe settings.map { unsafe strdup($0.keyword) }
        let values = unsafe settings.map { unsafe strdup($0.value) }
        // SAFETY: each was allocated by strdup just above, and libpq keeps copies.
        defer { unsafe (keywords + values).forEach { unsafe free($0) } }
        return unsafe body(
            keywords.map { unsafe UnsafePointer($0) } + [nil],
            values.map { unsafe UnsafePointer($0) } + [nil])
    }

    /// `user@host:port/database` of a session, also of one that failed.
    @unsafe
    private static func name(of raw: OpaquePointer) -> String {
        func text(_ value: UnsafePointer<CChar>?) -> String {
            unsafe value.map { unsafe String(cString: $0) } ?? ""
        }
        let host = unsafe text(PQhost(raw))
        return unsafe text(PQuser(raw)) + "@" + host + ":" + text(PQport(raw)) + "/"
            + text(PQdb(raw))
    }

    /// Several lines of libpq as one, without its advice, which is on lines after a tab.
    static func flatten(_ message: String) -> String {
        let lines = message.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("\t") }
        return lines.isEmpty ? "no reason given" : lines.joined(separator: "; ")
    }

    /// The last SQLSTATE in a verbose message, after the severity and two spaces:
    /// `FATAL:  28P01: password …`.
    static func sqlstate(in message: String) -> String? {
        let codes = message.split(separator: ":  ").dropFirst().map { $0.prefix { $0 != ":" } }
        return codes.last { code in
            code.utf8.count == 5
                && code.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) }
        }.map(String.init)
    }
}

private func logNotice(_: UnsafeMutableRawPointer?, _ message: UnsafePointer<CChar>?) {
    guard let message = unsafe message else { return }
    // SAFETY: libpq passes a NUL-terminated text that is valid for the call.
    let text = unsafe String(cString: message)
    Log.debug("database says: \(Dial.flatten(text))")
}
