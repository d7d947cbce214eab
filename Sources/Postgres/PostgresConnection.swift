internal import CPostgres
import Glibc
import Platform

/// One session with PostgreSQL, over libpq, blocking.
///
/// Not for two threads at once; only a ``PostgresCanceller`` may be used beside it. Every call that
/// throws leaves the session either usable (``isAlive``) or to be dropped and made anew.
@safe
package struct PostgresConnection: ~Copyable, @unchecked Sendable {
    // SAFETY: non-null from `init` to `deinit`; never leaves this module.
    let raw: OpaquePointer
    /// The bound of each statement in milliseconds, as ``setStatementTimeout(milliseconds:)`` has set it;
    /// 0 is none.
    private var statementMillisecondsMax = 0
    /// What a server gets beyond that bound to say itself that it is over.
    private static let graceMilliseconds = 5_000

    /// Connects; blocks until the session stands, or its timeouts pass.
    ///
    /// - Parameters:
    ///   - conninfo: Anything libpq takes; empty means the environment (`PG…`). It overrides the
    ///     timeouts set here, and never the encoding.
    ///   - applicationName: Shown in `pg_stat_activity`, if `conninfo` does not say otherwise.
    ///   - connectSeconds: How long one address may take to answer.
    /// - Throws: ``PostgresError/couldNotConnect(server:reason:sqlstate:)`` or
    ///   ``PostgresError/unreadableConninfo(reason:)``.
    package init(
        conninfo: String, applicationName: String = "tapline", connectSeconds: Int = 10
    ) throws(PostgresError) {
        unsafe raw = try Dial(conninfo, applicationName, connectSeconds).connect()
        // All waiting is done by ``Patience``; libpq's own has no end.
        unsafe PQsetnonblocking(raw, 1)
    }

    deinit { unsafe PQfinish(raw) }

    private var silenceMillisecondsMax: Int {
        statementMillisecondsMax > 0 ? statementMillisecondsMax + Self.graceMilliseconds : 0
    }

    var patience: Patience { unsafe Patience(raw, milliseconds: silenceMillisecondsMax) }

    /// Whether the session stands, as far as the socket tells without asking the server.
    package var isAlive: Bool {
        // The first read may find the farewell of a session that was ended, the second its end.
        for _ in 0..<2 {
            guard unsafe PQstatus(raw) == CONNECTION_OK else { return false }
            guard unsafe PQtransactionStatus(raw) != PQTRANS_ACTIVE else { return true }
            guard unsafe PQconsumeInput(raw) == 1 else { return false }
        }
        return unsafe PQstatus(raw) == CONNECTION_OK
    }

    /// The process id of the server's side.
    package var backendPID: Int32 { unsafe PQbackendPID(raw) }

    /// The version of the server, such as 150018 for 15.18.
    package var serverVersion: Int { Int(unsafe PQserverVersion(raw)) }

    /// Where the session is with respect to transactions.
    package var transactionStatus: TransactionStatus {
        switch unsafe PQtransactionStatus(raw) {
        case PQTRANS_IDLE: .idle
        case PQTRANS_INTRANS: .open
        case PQTRANS_INERROR: .failed
        case PQTRANS_ACTIVE: .busy
        default: .unknown
        }
    }

    /// Runs statements without parameters, in one implicit transaction if they open none.
    ///
    /// - Parameters:
    ///   - sql: One or more statements, separated by semicolons.
    ///   - work: What the caller does while the server works; it must not use the connection.
    /// - Returns: The result of the last one, in text format.
    /// - Throws: The first error; all results have been read then, and the work is done unless the
    ///   statements could not even be sent.
    @discardableResult
    package func execute(
        _ sql: String, while work: () -> Void = {}
    ) throws(PostgresError) -> PostgresResult {
        try Self.checkText(sql)
        guard unsafe PQsendQuery(raw, sql) == 1 else { throw lost() }
        work()
        return try lastResult()
    }

    /// Sends statements as ``execute(_:)`` does, without waiting for what comes of them: next comes
    /// ``answer()``, and nothing else in between but ``hasAnswer(withinMilliseconds:)``.
    package func send(_ sql: String) throws(PostgresError) {
        try Self.checkText(sql)
        guard unsafe PQsendQuery(raw, sql) == 1 else { throw lost() }
    }

    /// Whether ``answer()`` would give or throw something at once, or has begun to.
    package func hasAnswer(withinMilliseconds milliseconds: Int) throws(PostgresError) -> Bool {
        let deadline = Clock.deadline(inMilliseconds: milliseconds)
        while true {
            let isFlushed = unsafe PQflush(raw)
            guard isFlushed >= 0, unsafe PQconsumeInput(raw) == 1 else { throw lost() }
            if isFlushed == 0, unsafe PQisBusy(raw) == 0 { return true }
            let left = (deadline - Clock.monotonic() + 999) / 1000
            guard left > 0 else { return false }
            let events = isFlushed == 0 ? POLLIN : POLLIN | POLLOUT
            var socket = pollfd(fd: unsafe PQsocket(raw), events: Int16(events), revents: 0)
            _ = unsafe poll(&socket, 1, Int32(left))
        }
    }

    /// Until when an answer to what was sent just now may be waited for; monotonic.
    package var silenceDeadline: Microseconds {
        silenceMillisecondsMax > 0 ? Clock.deadline(inMilliseconds: silenceMillisecondsMax) : .max
    }

    /// Ends a session whose server was silent for too long; the error to throw.
    package func giveUp() -> PostgresError { patience.giveUp() }

    /// The result of the last statement of ``send(_:)``; waits for it.
    package func answer() throws(PostgresError) -> PostgresResult { try lastResult() }

    /// Runs one statement with parameters.
    ///
    /// - Parameters:
    ///   - sql: One statement; parameters are `$1`, `$2`, ….
    ///   - parameters: Their values.
    ///   - format: Of all columns of the result.
    /// - Returns: Its rows.
    /// - Throws: The error of the server, or that the session is gone.
    @discardableResult
    package func query(
        _ sql: String, _ parameters: [PostgresValue] = [], format: PostgresFormat = .binary
    ) throws(PostgresError) -> PostgresResult {
        try Self.checkText(sql)
        let encoded = try EncodedParameters(parameters)
        let isSent = unsafe encoded.withPointers { types, values, lengths, formats in
            unsafe PQsendQueryParams(
                raw, sql, Int32(parameters.count), types, values, lengths, formats,
                format.code)
        }
        guard isSent == 1 else { throw lost() }
        return try lastResult()
    }

    /// Plans a statement under a name, for ``queryPrepared(_:_:format:)``, in this session.
    ///
    /// - Parameters:
    ///   - name: A new name.
    ///   - sql: One statement.
    ///   - like: A value of the type of each parameter; missing ones are left to the server.
    package func prepare(
        _ name: String, _ sql: String, like: [PostgresValue] = []
    ) throws(PostgresError) {
        try Self.checkText(sql)
        guard unsafe PQsendPrepare(raw, name, sql, Int32(like.count), like.map(\.type)) == 1 else {
            throw lost()
        }
        _ = try lastResult()
    }

    /// Runs a prepared statement.
    @discardableResult
    package func queryPrepared(
        _ name: String, _ parameters: [PostgresValue] = [], format: PostgresFormat = .binary
    ) throws(PostgresError) -> PostgresResult {
        try send(prepared: name, parameters, format)
        return try lastResult()
    }

    /// Runs prepared statements one after the other without waiting for the answer to each: the server
    /// works on one while the answer before it is read.
    ///
    /// - Parameters:
    ///   - calls: How many.
    ///   - call: The name and the parameters of each.
    ///   - receive: Takes the rows of each, in the same order, in binary format.
    /// - Throws: The first error. The statements after it did not run, those before it did.
    package func queryPrepared(
        calls: Int, _ call: (Int) -> (name: String, parameters: [PostgresValue]),
        receive: (Int, borrowing PostgresResult) -> Void
    ) throws(PostgresError) {
        guard calls > 0 else { return }
        guard unsafe PQenterPipelineMode(raw) == 1 else { throw lost() }
        var failure: PostgresError?
        var sent = 0
        while sent < calls, failure == nil {
            let (name, parameters) = call(sent)
            do throws(PostgresError) {
                try send(prepared: name, parameters, .binary)
                sent += 1
            } catch {
                failure = error
            }
        }
        // It ends the pipeline, and sends all that has not been sent yet.
        guard unsafe PQpipelineSync(raw) == 1 else { throw failure ?? lost() }
        for index in 0..<sent {
            do throws(PostgresError) {
                let result = try lastResult()
                if failure == nil { receive(index, result) }
            } catch {
                failure = failure ?? error
            }
        }
        do throws(PostgresError) { try endPipeline() } catch { failure = failure ?? error }
        if let failure { throw failure }
    }

    private func send(
        prepared name: String, _ parameters: [PostgresValue], _ format: PostgresFormat
    ) throws(PostgresError) {
        let encoded = try EncodedParameters(parameters)
        let isSent = unsafe encoded.withPointers { _, values, lengths, formats in
            unsafe PQsendQueryPrepared(
                raw, name, Int32(parameters.count), values, lengths, formats, format.code)
        }
        guard isSent == 1 else { throw lost() }
    }

    /// Bounds the time of each later statement of the session; 57014 is thrown beyond it.
    ///
    /// A server that says nothing for 5 s longer, since it is frozen or out of reach, is given up with
    /// ``PostgresError/connectionLost(reason:sqlstate:)``.
    ///
    /// - Parameters:
    ///   - milliseconds: 0 means no bound.
    ///   - isLocal: Whether the server is to forget it at the end of the transaction; the caller sets it
    ///     again then, for this side.
    package mutating func setStatementTimeout(
        milliseconds: Int, isLocal: Bool = false
    ) throws(PostgresError) {
        try execute("SET \(isLocal ? "LOCAL " : "")statement_timeout = \(milliseconds)")
        statementMillisecondsMax = milliseconds
    }

    /// Runs `body` between BEGIN and COMMIT.
    ///
    /// - Throws: What `body` throws, after a ROLLBACK; or the error of COMMIT. When the connection
    ///   is lost in COMMIT, whether it took effect is not known.
    package func transaction<Result: ~Copyable>(
        _ begin: String = "BEGIN", _ body: () throws(PostgresError) -> Result
    ) throws(PostgresError) -> Result {
        try execute(begin)
        let result: Result
        do throws(PostgresError) {
            result = try body()
        } catch {
            _ = try? execute("ROLLBACK")
            throw error
        }
        // COMMIT of a transaction that has failed succeeds, and rolls back.
        let answer = try execute("COMMIT").commandTag
        guard answer == "COMMIT" else {
            throw .misuse("could not commit: a statement of the transaction had failed")
        }
        return result
    }

    /// A handle that other threads may cancel the running statement with.
    package func makeCanceller() -> PostgresCanceller? {
        guard let handle = unsafe PQgetCancel(raw) else { return nil }
        return unsafe PostgresCanceller(handle)
    }
}

/// Where a session is with respect to transactions.
package enum TransactionStatus: Equatable, Sendable {
    /// Outside of any.
    case idle
    /// In one.
    case open
    /// In one that can only be rolled back.
    case failed
    /// A statement is running.
    case busy
    /// The session is gone.
    case unknown
}

/// How values are written in a result.
package enum PostgresFormat: Equatable, Sendable {
    /// As text, readable and in the server's own formats.
    case text
    /// PostgreSQL's binary format, big-endian.
    case binary

    var code: Int32 { self == .binary ? 1 : 0 }
}

/// Cancels the statement a session runs, from any thread.
///
/// The statement then fails with 57014, unless it had just ended.
@safe
package final class PostgresCanceller: @unchecked Sendable {
    // SAFETY: freed in `deinit` only; PQcancel may be called from any thread.
    private let handle: OpaquePointer

    @unsafe
    init(_ handle: OpaquePointer) { unsafe self.handle = handle }

    deinit { unsafe PQfreeCancel(handle) }

    /// Asks the server to cancel, over a connection of its own; blocks for as long as that takes.
    ///
    /// - Returns: Whether the request was delivered; its effect shows in the statement.
    @discardableResult
    package func cancel() -> Bool {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            unsafe PQcancel(handle, buffer.baseAddress, 256) == 1
        }
    }
}
