import Postgres
import Testing

@Suite struct DatabaseTargetTests {
    private static let environment = [
        "DATABASE_URL": "postgres://u:secret@h/db", "PGHOST": "h2", "PGPASSWORD": "secret",
    ]

    private static func resolve(
        _ option: String?, _ environment: [String: String]
    ) -> DatabaseTarget {
        DatabaseTarget.resolve(option: option, environment: environment, dataDirectory: "/d")
    }

    @Test func theOptionIsFirst() {
        let target = Self.resolve("mydb", Self.environment)
        #expect(target == .option("mydb") && target.conninfo == "mydb")
    }

    @Test func databaseURLIsSecondAndUnchanged() {
        let target = Self.resolve(nil, Self.environment)
        #expect(target.conninfo == "postgres://u:secret@h/db")
        #expect(!target.description.contains("secret") && target.description.contains("host=h"))
    }

    @Test(arguments: ["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"])
    func aVariableThatNamesADatabaseIsThird(name: String) {
        #expect(Self.resolve(nil, [name: "x", "DATABASE_URL": ""]) == .environment)
        #expect(Self.resolve("", [name: "x"]).conninfo == "")
    }

    @Test func otherwiseItIsEmbedded() {
        let others = ["PGDATA": "/x", "PGPASSWORD": "x", "PGTZ": "UTC", "PGHOST": ""]
        #expect(Self.resolve(nil, others) == .embedded(dataDirectory: "/d"))
        #expect(Self.resolve(nil, [:]).conninfo == nil)
    }

    @Test(arguments: [
        ("host=h password='se cret' dbname=d", "dbname=d host=h"),
        ("postgresql://u:secret@h:5433/d?sslmode=require", "user=u dbname=d host=h port=5433"),
        ("mydb", "dbname=mydb"), ("", ""),
    ])
    func passwordsAreNotShown(conninfo: String, expected: String) {
        let shown = Conninfo.redacted(conninfo)
        #expect(!shown.contains("cret"))
        for setting in expected.split(separator: " ") { #expect(shown.contains(setting)) }
    }

    @Test func valuesAreQuoted() {
        #expect(Conninfo.setting("host", "/a b/it's\\") == "host='/a b/it\\'s\\\\'")
    }
}
