import Postgres
import PostgresTesting
import Testing

@Suite struct CopyTests {
    private static let nasty: [String?] = [
        "", nil, "\\N", "\\.", "a\tb\nc\rd\\e", "\u{1}\u{7F}", "é😀\u{202E}x", "{\"a\":\"b\"}",
        "NULL", String(repeating: "x", count: 300_000), String(repeating: "€", count: 1 << 20),
        "\"quoted\",'too'",
    ]

    @Test func nastyTextsGoInAndComeOutTheSame() throws {
        let connection = try Self.connect("CREATE TABLE t (n int8, s text)")
        let stored = try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") {
            writer throws(PostgresError) in
            try writer.writeBinaryHeader()
            for (number, text) in Self.nasty.enumerated() {
                try writer.write(Self.row(Int64(number), text))
            }
            try writer.writeBinaryTrailer()
        }
        #expect(stored == Self.nasty.count)
        var read: [String?] = []
        let count = try connection.copyOut(
            "COPY (SELECT n, s FROM t ORDER BY n) TO STDOUT (FORMAT binary)"
        ) { row throws(PostgresError) in
            #expect(row.int64(0) == Int64(read.count))
            read.append(row.array(1).map { String(decoding: $0, as: UTF8.self) })
        }
        #expect(count == Self.nasty.count)
        #expect(read == Self.nasty)
    }

    @Test func manyRowsAreCountedAndSummed() throws {
        let connection = try Self.connect("CREATE TABLE t (n int8, s text)")
        let rows: Int64 = 200_000
        let stored = try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") {
            writer throws(PostgresError) in
            try writer.writeBinaryHeader()
            for number in 0..<rows { try writer.write(Self.row(number, "some text")) }
            try writer.writeBinaryTrailer()
        }
        #expect(stored == Int(rows))
        var sum: Int64 = 0
        let count = try connection.copyOut("COPY t TO STDOUT (FORMAT binary)") {
            row throws(PostgresError) in
            sum += row.int64(0) ?? 0
        }
        #expect(count == Int(rows) && sum == rows * (rows - 1) / 2)
    }

    @Test func anEmptyTableHasNoRows() throws {
        let connection = try Self.connect("CREATE TABLE t (n int8, s text)")
        #expect(try connection.copyOut("COPY t TO STDOUT (FORMAT binary)") { _ in } == 0)
    }

    @Test func aRefusedRowNamesItsLineAndNothingIsStored() throws {
        let connection = try Self.connect("CREATE TABLE t (n int8 CHECK (n < 2), s text)")
        do throws(PostgresError) {
            try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") {
                writer throws(PostgresError) in
                try writer.writeBinaryHeader()
                for number in 0..<5 { try writer.write(Self.row(Int64(number), nil)) }
                try writer.writeBinaryTrailer()
            }
            Issue.record("no error")
        } catch {
            guard case .refused(let report) = error else {
                Issue.record("not refused: \(error)")
                return
            }
            #expect(report.sqlstate == "23514" && report.copyLine == 3)
            #expect(error.errorClass == .isolateRow)
        }
        #expect(try connection.query("SELECT count(*) FROM t").int64(0, 0) == 0)
    }

    @Test func whatTheBodyThrowsEndsTheCopyWithoutARow() throws {
        let connection = try Self.connect("CREATE TABLE t (n int8, s text)")
        let mine = PostgresError.misuse("enough")
        #expect(throws: mine) {
            try connection.copyIn("COPY t FROM STDIN (FORMAT binary)") {
                writer throws(PostgresError) in
                try writer.writeBinaryHeader()
                try writer.write(Self.row(1, "x"))
                throw mine
            }
        }
        #expect(try connection.query("SELECT count(*) FROM t").int64(0, 0) == 0)
    }

    @Test func aReaderMayStopEarly() throws {
        let connection = try Self.connect("CREATE TABLE t (n int8)")
        let mine = PostgresError.misuse("enough")
        #expect(throws: mine) {
            try connection.copyOut(
                "COPY (SELECT generate_series(1, 100000000)) TO STDOUT (FORMAT binary)"
            ) { row throws(PostgresError) in throw mine }
        }
        #expect(try connection.query("SELECT 1::int8").int64(0, 0) == 1)
    }

    @Test(arguments: [
        "COPY t FROM STDIN", "COPY t TO STDOUT", "SELECT 1", "SELECT 1; COPY t TO STDOUT",
        "COPY t FROM STDIN; SELECT 1",
    ])
    func aStatementOfTheWrongKindLeavesTheSessionUsable(sql: String) throws {
        let connection = try Self.connect("CREATE TABLE t (n int8)")
        if sql.contains("COPY") {
            #expect(throws: PostgresError.self) { try connection.execute(sql) }
        }
        if !sql.hasPrefix("COPY t FROM") {
            #expect(throws: PostgresError.self) { try connection.copyIn(sql) { _ in } }
        }
        #expect(throws: PostgresError.self) { try connection.copyOut(sql) { _ in } }
        #expect(try connection.query("SELECT 1::int8").int64(0, 0) == 1)
        let status = connection.transactionStatus
        #expect(status == .idle)
    }

    private static func connect(_ sql: String) throws -> PostgresConnection {
        let connection = try PostgresConnection(conninfo: TestDatabase.create())
        try connection.execute(sql)
        return connection
    }

    private static func row(_ number: Int64, _ text: String?) -> [UInt8] {
        var bytes: [UInt8] = [0, 2, 0, 0, 0, 8]
        unsafe withUnsafeBytes(of: number.bigEndian) { unsafe bytes.append(contentsOf: $0) }
        let length = text.map { Int32($0.utf8.count) } ?? -1
        unsafe withUnsafeBytes(of: length.bigEndian) { unsafe bytes.append(contentsOf: $0) }
        return bytes + (text.map { Array($0.utf8) } ?? [])
    }
}
