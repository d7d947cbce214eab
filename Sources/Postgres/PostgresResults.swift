internal import CPostgres

// Reading the answers of the server.
extension PostgresConnection {
    /// Reads all results of what was sent, and answers the last.
    ///
    /// - Throws: The first error, after everything has been read.
    func lastResult() throws(PostgresError) -> PostgresResult {
        var last: OpaquePointer?
        var failure: PostgresError?
        while let result = unsafe try nextResult() {
            switch unsafe PQresultStatus(result) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_SINGLE_TUPLE, PGRES_EMPTY_QUERY:
                unsafe PQclear(last)
                unsafe last = result
            case PGRES_COPY_IN, PGRES_COPY_BOTH:
                unsafe PQclear(result)
                unsafe PQputCopyEnd(raw, "the client has no data for this COPY")
                failure = failure ?? .misuse("cannot run COPY FROM STDIN without data")
            case PGRES_COPY_OUT:
                unsafe PQclear(result)
                try discardCopyOut()
                failure = failure ?? .misuse("cannot run COPY TO STDOUT without a reader")
            default:
                let error = unsafe error(in: result)
                unsafe PQclear(result)
                failure = failure ?? error
            }
            // A connection that broke within COPY would give its COPY result for ever.
            if failure != nil, unsafe PQstatus(raw) != CONNECTION_OK { break }
        }
        if let failure {
            unsafe PQclear(last)
            throw failure
        }
        guard let last = unsafe last else { throw lost() }
        return unsafe PostgresResult(last)
    }

    /// Waits for the next result, but not for ever; nil after the last.
    @unsafe
    private func nextResult() throws(PostgresError) -> OpaquePointer? {
        try patience.waitForResult()
        return unsafe PQgetResult(raw)
    }

    /// Reads the end of a pipeline, whose results have been read, and leaves the mode.
    func endPipeline() throws(PostgresError) {
        while unsafe PQstatus(raw) == CONNECTION_OK {
            // Null stands between results.
            guard let result = unsafe try nextResult() else { continue }
            let status = unsafe PQresultStatus(result)
            unsafe PQclear(result)
            if status == PGRES_PIPELINE_SYNC { break }
        }
        guard unsafe PQexitPipelineMode(raw) == 1 else { throw lost() }
    }

    /// Reads one result of a COPY statement, which has to have the given status.
    ///
    /// - Throws: The error of the server, or misuse; everything has been read then.
    func expectCopy(_ sql: String, _ status: ExecStatusType) throws(PostgresError) -> Int {
        try Self.checkText(sql)
        guard unsafe PQsendQuery(raw, sql) == 1 else { throw lost() }
        guard let result = unsafe try nextResult() else { throw lost() }
        let found = unsafe PQresultStatus(result)
        if found == status {
            let columns = Int(unsafe PQnfields(result))
            unsafe PQclear(result)
            return columns
        }
        var failure = PostgresError.misuse("the statement is no COPY of the expected direction")
        switch found {
        case PGRES_COPY_IN: unsafe PQputCopyEnd(raw, "the client expected data")
        case PGRES_COPY_OUT: try discardCopyOut()
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: break
        default: failure = unsafe error(in: result)
        }
        unsafe PQclear(result)
        _ = try? lastResult()
        throw failure
    }

    private func discardCopyOut() throws(PostgresError) {
        var buffer: UnsafeMutablePointer<CChar>?
        while unsafe try patience.copyData(&buffer) > 0 { unsafe PQfreemem(buffer) }
    }

    /// The error of a failed result.
    @unsafe
    func error(in result: OpaquePointer) -> PostgresError {
        func field(_ code: Character) -> String? {
            // SAFETY: the text lives as long as the result, and is copied.
            unsafe PQresultErrorField(result, Int32(code.asciiValue ?? 0))
                .map { unsafe String(cString: $0) }
        }
        guard let sqlstate = field("C") else { return lost() }
        let message = field("M") ?? "(no message)"
        // FATAL ends the session, whatever its SQLSTATE says of the reason.
        let severity = field("V") ?? field("S")
        let isBroken = unsafe PQstatus(raw) != CONNECTION_OK
        if isBroken || severity == "FATAL" || severity == "PANIC" {
            return .connectionLost(reason: message, sqlstate: sqlstate)
        }
        return .refused(
            ServerReport(
                sqlstate: sqlstate, message: message, detail: field("D"), hint: field("H"),
                context: field("W"), table: field("t"), column: field("c"),
                constraint: field("n"), function: field("R")))
    }

    /// What to throw when libpq failed without a word of the server.
    func lost() -> PostgresError {
        let reason = unsafe Dial.flatten(String(cString: PQerrorMessage(raw)))
        guard unsafe PQstatus(raw) != CONNECTION_OK else {
            return .misuse("could not use the connection: \(reason)")
        }
        return .connectionLost(reason: reason, sqlstate: nil)
    }

    /// C would silently cut the text at a NUL.
    static func checkText(_ sql: String) throws(PostgresError) {
        guard !sql.utf8.contains(0) else {
            throw .misuse("cannot run a statement with a NUL in it")
        }
    }
}

extension EncodedParameters {
    /// Calls `body` with the arrays libpq wants: types, values, lengths, formats.
    @unsafe
    func withPointers(
        _ body: (
            UnsafePointer<UInt32>?, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?,
            UnsafePointer<Int32>?
        ) -> Int32
    ) -> Int32 {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            // An empty array may have no address; libpq takes a null value for NULL.
            let nothing: UInt8 = 0
            return unsafe withUnsafePointer(to: nothing) { empty in
                let base = unsafe buffer.baseAddress ?? empty
                let values = unsafe starts.map { start in
                    unsafe start < 0
                        ? nil
                        : UnsafeRawPointer(base + start).assumingMemoryBound(to: CChar.self)
                }
                return unsafe body(types, values, lengths, formats)
            }
        }
    }
}
