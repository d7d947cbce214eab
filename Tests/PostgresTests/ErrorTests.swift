import Postgres
import PostgresTesting
import Testing

@Suite struct ErrorTests {
    @Test(arguments: [
        ("08006", PostgresErrorClass.connection), ("57P01", .connection), ("57P02", .connection),
        ("57P03", .connection), ("57014", .retryBatch), ("58030", .retryBatch),
        ("XX000", .retryBatch), ("40001", .retryBatch), ("40P01", .retryBatch),
        ("53100", .retryBatch), ("55P03", .retryBatch), ("22021", .isolateRow),
        ("23505", .isolateRow), ("23514", .isolateRow), ("21000", .isolateRow),
        ("54000", .isolateRow), ("54001", .isolateRow), ("28P01", .configuration),
        ("3D000", .configuration), ("42P01", .configuration), ("42703", .configuration),
        ("42501", .configuration), ("25006", .configuration), ("42601", .retryWithAlert),
        ("40002", .retryWithAlert), ("57P04", .retryWithAlert), ("54011", .retryWithAlert),
        ("", .retryWithAlert),
    ])
    func everyStateHasItsClass(sqlstate: String, expected: PostgresErrorClass) {
        #expect(PostgresErrorClass(sqlstate: sqlstate) == expected)
    }

    @Test(arguments: [
        ("SELECT 1/0", "22012", PostgresErrorClass.isolateRow),
        ("SELECT 'x'::int", "22P02", .isolateRow),
        ("SELECT '{\"a\":\"\\u0000\"}'::jsonb", "22P05", .isolateRow),
        ("INSERT INTO parted VALUES (9, 9)", "23514", .missingPartition),
        ("INSERT INTO parted VALUES (1, -1)", "23514", .isolateRow),
        ("INSERT INTO single VALUES (1), (1)", "23505", .isolateRow),
        ("INSERT INTO single VALUES (NULL)", "23502", .isolateRow),
        (
            "INSERT INTO single VALUES (2), (2) ON CONFLICT (n) DO UPDATE SET n = 3", "21000",
            .isolateRow
        ),
        ("SELECT repeat('[', 20000)::json", "54001", .isolateRow),
        ("SELECT * FROM nothing", "42P01", .configuration),
        ("SELECT nothing FROM single", "42703", .configuration),
        ("SET ROLE nobody_special; SELECT * FROM single", "42501", .configuration),
        ("BEGIN READ ONLY; INSERT INTO single VALUES (5)", "25006", .configuration),
        ("SELECT FROM FROM", "42601", .retryWithAlert),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$", "40001", .retryBatch),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$", "53100", .retryBatch),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'XX001'; END $$", "XX001", .retryBatch),
    ])
    func aProvokedErrorHasItsStateAndClass(
        sql: String, sqlstate: String, expected: PostgresErrorClass
    ) throws {
        let connection = try PostgresConnection(conninfo: Self.database.get())
        do throws(PostgresError) {
            try connection.execute(sql)
            Issue.record("no error")
        } catch {
            #expect(error.sqlstate == sqlstate)
            #expect(error.errorClass == expected)
            #expect(error.isRetryable == (expected != .isolateRow))
            #expect("\(error)".contains(sqlstate) && !"\(error)".contains("\n"))
        }
    }

    @Test func aLockThatIsTakenIsRetried() throws {
        let holder = try PostgresConnection(conninfo: Self.database.get())
        let waiter = try PostgresConnection(conninfo: Self.database.get())
        try holder.execute("BEGIN; LOCK TABLE locked")
        #expect(sqlstate { try waiter.execute("BEGIN; LOCK TABLE locked NOWAIT") } == "55P03")
    }

    @Test func fieldsOfARefusalAreKept() throws {
        let connection = try PostgresConnection(conninfo: Self.database.get())
        do throws(PostgresError) {
            try connection.execute("INSERT INTO parted VALUES (1, -1)")
            Issue.record("no error")
        } catch {
            guard case .refused(let report) = error else {
                Issue.record("not refused: \(error)")
                return
            }
            #expect(report.table == "parted_1" && report.constraint == "positive")
            #expect(report.detail?.contains("(1, -1)") == true)
        }
    }

    @Test func aMissingDatabaseIsAFaultOfConfigurationWithAHint() throws {
        let conninfo = try TestDatabase.create() + " dbname=nothing"
        do throws(PostgresError) {
            _ = try PostgresConnection(conninfo: conninfo)
            Issue.record("connected to nothing")
        } catch {
            #expect(error.sqlstate == "3D000" && error.errorClass == .configuration)
            #expect("\(error)".hasPrefix("could not connect to database \"tapline@"))
            #expect(error.hint?.hasSuffix(".") == true)
        }
    }

    @Test func aUserWithoutRightsIsAFaultOfConfiguration() throws {
        let conninfo = try TestDatabase.create() + " user=stranger"
        #expect(sqlstate { try PostgresConnection(conninfo: conninfo) } == "28000")
    }

    @Test func nobodyListeningIsAFaultOfTheConnection() {
        do throws(PostgresError) {
            _ = try PostgresConnection(conninfo: "host=/nowhere/at/all password=secret")
            Issue.record("connected to nobody")
        } catch {
            #expect(error.errorClass == .connection && error.sqlstate == nil)
            #expect(!"\(error)".contains("secret"))
        }
    }

    @Test(arguments: [
        "postgres://user:secret@[host/db", "host=x se'cret", "password=secret host",
        "postgres://u:secret@h/db?%zz=1", "host='x password=secret", "host=a\0b password=secret",
    ])
    func anUnreadableStringIsNeverQuoted(conninfo: String) {
        do throws(PostgresError) {
            _ = try PostgresConnection(conninfo: conninfo)
            Issue.record("read \(conninfo)")
        } catch {
            #expect(error.errorClass == .configuration)
            #expect(!"\(error)".contains("cret"))
        }
        #expect(!Conninfo.redacted(conninfo).contains("cret"))
    }

    @Test func theLineOfACopyIsFound() {
        let context = "COPY event, line 17, column properties: \"x\""
        #expect(ServerReport(sqlstate: "22P02", message: "", context: context).copyLine == 17)
        #expect(ServerReport(sqlstate: "22P02", message: "").copyLine == nil)
    }

    private static let database = Result {
        let conninfo = try TestDatabase.create()
        let connection = try PostgresConnection(conninfo: conninfo)
        try connection.execute(
            """
            CREATE TABLE parted (n int, m int CONSTRAINT positive CHECK (m > 0))
                PARTITION BY LIST (n);
            CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
            CREATE TABLE single (n int PRIMARY KEY);
            CREATE TABLE locked ();
            DROP ROLE IF EXISTS nobody_special;
            CREATE ROLE nobody_special;
            """)
        return conninfo
    }
}
