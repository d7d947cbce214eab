import Platform
import Postgres
import PostgresTesting
import Testing

@Suite struct ConnectionTests {
    @Test func parametersOfEveryTypeComeBackAsTheyWere() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        let id = [UInt8](1...16)
        let time: Int64 = 1_796_019_311_123_456
        let result = try connection.query(
            """
            SELECT $1::bool, $2::int2, $3::int4, $4::int8, $5::float8, $6::text, $7::bytea,
                $8::timestamptz, $9::uuid, $10::text
            """,
            [
                .bool(true), .int16(-2), .int32(.min), .int64(.max), .double(-0.1), .text("é'\\"),
                .bytes([0, 255, 10]), .timestamp(time), .uuid(id), .null,
            ])
        let size = [result.rows, result.columns]
        #expect(size == [1, 10])
        #expect(result.bool(0, 0) == true)
        #expect(result.int64(0, 1) == -2)
        #expect(result.int64(0, 2) == Int64(Int32.min))
        #expect(result.int64(0, 3) == .max)
        #expect(result.double(0, 4) == -0.1)
        #expect(result.string(0, 5) == "é'\\")
        #expect(result.array(0, 6) == [0, 255, 10])
        #expect(result.timestamp(0, 7) == time)
        #expect(result.array(0, 8) == id)
        #expect(result.isNull(0, 9) && result.string(0, 9) == nil && result.int64(0, 9) == nil)
    }

    @Test func workIsDoneWhileTheServerWorks() throws {
        let conninfo = try TestDatabase.create()
        let connection = try PostgresConnection(conninfo: conninfo)
        let other = try PostgresConnection(conninfo: conninfo)
        try connection.execute("SET lock_timeout = '60s'")
        try other.execute("SELECT pg_advisory_lock(1)")
        // The statement ends only because the work sees that it has begun.
        var hasBegun = false
        let result = try connection.execute("SELECT 7 FROM pg_advisory_lock(1)") {
            let deadline = Clock.deadline(inMilliseconds: 50_000)
            while !hasBegun, Clock.monotonic() < deadline {
                do {
                    let waiting = try other.query(
                        """
                        SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                        WHERE datname = current_database() AND locktype = 'advisory'
                            AND NOT granted
                        """)
                    hasBegun = waiting.rows > 0
                } catch {
                    break
                }
            }
            _ = try? other.execute("SELECT pg_advisory_unlock(1)")
        }
        #expect(hasBegun && result.int64(0, 0) == 7)
        var isDone = false
        #expect(throws: PostgresError.self) {
            try connection.execute("SELECT 1 / 0") { isDone = true }
        }
        #expect(isDone)
        let next = try connection.execute("SELECT 8").int64(0, 0)
        #expect(next == 8)
    }

    @Test func arraysComeBackAsTheyWere() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        let result = try connection.query(
            """
            SELECT $1::int8[]::text, $2::int4[]::text, $3::uuid[]::text, $4::text[]::text,
                $5::bytea[]::text, $6::int8[]::text
            """,
            [
                .int64Array([1, -2, .max]), .int32Array([7]),
                .uuidArray([UInt8](repeating: 0, count: 16) + [UInt8](repeating: 0xAB, count: 16)),
                .textArray(["a,b", nil, ""]), .bytesArray([[1], []]), .int64Array([]),
            ])
        #expect(result.string(0, 0) == "{1,-2,9223372036854775807}")
        #expect(result.string(0, 1) == "{7}")
        #expect(
            result.string(0, 2)
                == "{00000000-0000-0000-0000-000000000000,abababab-abab-abab-abab-abababababab}")
        #expect(result.string(0, 3) == "{\"a,b\",NULL,\"\"}")
        #expect(result.string(0, 4) == "{\"\\\\x01\",\"\\\\x\"}")
        #expect(result.string(0, 5) == "{}")
    }

    @Test func aPipelineAnswersInOrder() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.prepare("square", "SELECT $1 * $1", like: [.int64(0)])
        // More than what fits into the buffers of both sides, both ways.
        try connection.prepare("echo", "SELECT $1 || $1", like: [.bytes([])])
        let long = [UInt8](repeating: 7, count: 100_000)
        var squares: [Int64?] = []
        var lengths: [Int] = []
        try connection.queryPrepared(calls: 200) { call in
            call % 2 == 0 ? ("square", [.int64(Int64(call))]) : ("echo", [.bytes(long)])
        } receive: { call, answer in
            if call % 2 == 0 {
                squares.append(answer.int64(0, 0))
            } else {
                lengths.append(answer.bytes(0, 0).byteCount)
            }
        }
        #expect(squares == stride(from: 0, to: 200, by: 2).map { Int64($0 * $0) })
        #expect(lengths == Array(repeating: 200_000, count: 100))
        try connection.queryPrepared(calls: 0, { _ in ("", []) }, receive: { _, _ in })
        #expect(try connection.execute("SELECT 5").int64(0, 0) == 5)
    }

    @Test func anErrorInAPipelineEndsIt() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.prepare("divide", "SELECT 100 / $1", like: [.int64(0)])
        for inTransaction in [false, true] {
            if inTransaction { try connection.execute("BEGIN") }
            var answers: [Int64?] = []
            do throws(PostgresError) {
                try connection.queryPrepared(calls: 4) { call in
                    ("divide", [.int64(Int64(2 - call))])
                } receive: { _, answer in
                    answers.append(answer.int64(0, 0))
                }
                Issue.record("no error")
            } catch {
                guard case .refused(let report) = error else { throw error }
                #expect(report.sqlstate == "22012")
            }
            #expect(answers == [50, 100])
            let status = connection.transactionStatus
            #expect(status == (inTransaction ? .failed : .idle))
            try connection.execute("ROLLBACK")
            #expect(try connection.queryPrepared("divide", [.int64(4)]).int64(0, 0) == 25)
        }
        #expect(throws: PostgresError.self) {
            try connection.queryPrepared(
                calls: 2, { _ in ("divide", [.uuid([1])]) }, receive: { _, _ in })
        }
        #expect(try connection.queryPrepared("divide", [.int64(5)]).int64(0, 0) == 20)
    }

    @Test func aSessionThatIsEndedInAPipelineIsLost() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.prepare(
            "end", "SELECT pg_terminate_backend(pg_backend_pid()) WHERE $1", like: [.bool(true)])
        do throws(PostgresError) {
            try connection.queryPrepared(
                calls: 3, { call in ("end", [.bool(call == 1)]) }, receive: { _, _ in })
            Issue.record("no error")
        } catch {
            guard case .connectionLost = error else {
                Issue.record("\(error)")
                return
            }
        }
        let isAlive = connection.isAlive
        #expect(!isAlive)
    }

    @Test func valuesInTextFormatAreReadToo() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        let result = try connection.query(
            "SELECT 12::int8, true, 1.5::numeric, $1::timestamptz AS t",
            [.untyped("2026-11-30 06:00:00+00")], format: .text)
        #expect(result.int64(0, 0) == 12)
        #expect(result.bool(0, 1) == true)
        #expect(result.double(0, 2) == 1.5)
        #expect(result.string(0, 3) == "2026-11-30 06:00:00+00")
        #expect(result.name(ofColumn: 3) == "t" && result.type(ofColumn: 3) == 1184)
    }

    @Test func severalStatementsGiveTheLastResult() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        let result = try connection.execute("SELECT 1; CREATE TABLE t (n int); SELECT 3")
        #expect(result.string(0, 0) == "3")
        #expect(
            try connection.execute("INSERT INTO t SELECT generate_series(1, 5)").affectedRows == 5)
    }

    @Test func theFirstErrorIsThrownAndTheSessionGoesOn() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        #expect(
            sqlstate { try connection.execute("SELECT 1; SELECT 1/0; SELECT no_column") } == "22012"
        )
        let status = connection.transactionStatus
        #expect(status == .idle)
        #expect(try connection.query("SELECT 1::int8").int64(0, 0) == 1)
    }

    @Test func aPreparedStatementIsRunWithItsTypes() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.prepare("add", "SELECT $1 + $2", like: [.int64(0), .int64(0)])
        let result = try connection.queryPrepared("add", [.int64(2), .int64(40)])
        #expect(result.int64(0, 0) == 42)
    }

    @Test func aStatementWithNULIsRefusedHere() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        #expect(throws: PostgresError.self) { try connection.execute("SELECT 1\0; DROP TABLE t") }
        #expect(throws: PostgresError.self) {
            try connection.query("SELECT $1", [.untyped("a\0b")])
        }
        #expect(sqlstate { try connection.query("SELECT $1", [.text("a\0b")]) } == "22021")
    }

    @Test func aTransactionIsUndoneWhenItsBodyThrows() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.execute("CREATE TABLE t (n int)")
        #expect(throws: PostgresError.self) {
            try connection.transaction { () throws(PostgresError) in
                try connection.execute("INSERT INTO t VALUES (1)")
                try connection.execute("SELECT 1/0")
            }
        }
        let status = connection.transactionStatus
        #expect(status == .idle)
        try connection.transaction { () throws(PostgresError) in
            _ = try connection.execute("INSERT INTO t VALUES (2)")
        }
        #expect(try connection.query("SELECT sum(n) FROM t").int64(0, 0) == 2)
    }

    @Test func aCommitThatRollsBackIsNoSuccess() throws {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        #expect(throws: PostgresError.self) {
            try connection.transaction { () throws(PostgresError) in
                _ = try? connection.execute("SELECT 1/0")
            }
        }
    }

    @Test func anotherThreadCancelsTheStatement() throws {
        let conninfo = try TestDatabase.create()
        let connection = try PostgresConnection(conninfo: conninfo)
        let made = connection.makeCanceller()
        let canceller = try #require(made)
        let pid = connection.backendPID
        let thread = Thread.start(name: "cancel") {
            // Cancels once the statement is seen to run.
            guard let observer = try? PostgresConnection(conninfo: conninfo) else { return }
            let sql = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND query LIKE '%pg_sleep%'"
            while (try? observer.query(sql, [.int32(pid)]).rows) == 0 {}
            canceller.cancel()
        }
        #expect(sqlstate { try connection.query("SELECT pg_sleep(60)") } == "57014")
        thread.join()
        let isAlive = connection.isAlive
        #expect(isAlive)
    }

    @Test func aStatementTimeoutEndsTheStatementOnly() throws {
        var connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.setStatementTimeout(milliseconds: 20)
        #expect(sqlstate { try connection.query("SELECT pg_sleep(60)") } == "57014")
        try connection.setStatementTimeout(milliseconds: 0)
        let isAlive = connection.isAlive
        #expect(isAlive)
    }

    @Test func aTerminatedSessionIsNoticed() throws {
        let conninfo = try TestDatabase.create()
        let connection = try PostgresConnection(conninfo: conninfo)
        let other = try PostgresConnection(conninfo: conninfo)
        let sql = "SELECT pg_terminate_backend($1, 10000)"
        try other.query(sql, [.int32(connection.backendPID)])
        let isAlive = connection.isAlive
        #expect(!isAlive)
        #expect(throws: PostgresError.self) { try connection.execute("SELECT 1") }
        let third = try PostgresConnection(conninfo: conninfo)
        do throws(PostgresError) {
            try third.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            Issue.record("a session that ended itself gave a result")
        } catch {
            #expect(error.errorClass == .connection && error.isRetryable)
            #expect(error.sqlstate == "57P01")
        }
    }
}

/// The SQLSTATE of what `body` throws; nil when it throws nothing, else the error's text.
func sqlstate<Result: ~Copyable>(_ body: () throws -> Result) -> String? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? PostgresError)?.sqlstate ?? "\(error)"
    }
}
