import Client
import Import
import Testing

@Suite struct CampaignFileTests {
    static func read(_ text: String, app: String? = "shop") throws -> CampaignFile {
        try CampaignFile(.memory(name: "c", Array(text.utf8)), app: app)
    }

    @Test func tablesAndObjectsAreTheSame() throws {
        let table = try Self.read(
            "id;name;variant;sent_at\ns1;\"Spring; sale\";;2026-11-30T00:00:00Z\n")
        let object = try Self.read(
            #"{"id":"s1","name":"Spring; sale","variant":null,"sent_at":1796000000}"# + "\n")
        let line = try #require(table.lines.first)
        #expect(line.app == "shop" && line.id == "s1")
        #expect(
            line.values["name"] == .some("Spring; sale") && line.values["variant"] == .some(nil))
        #expect(
            line.values["sent_at"] == .some("1795996800000000") && line.values["audience"] == nil)
        #expect(Set(object.lines[0].values.keys) == Set(line.values.keys))
        #expect(table.problems.isEmpty && object.problems.isEmpty)
        #expect(try Self.read("campaign_id,app\n7,x\n").lines.map(\.app) == ["x"])
        #expect(try Self.read("{\"id\":7}").lines.map(\.id) == ["7"])
    }

    @Test(arguments: [
        ("id,name\n,x\n", 2, "id is missing"),
        ("id,name\na,x,y\n", 2, "has 3 columns, expected 2"),
        ("id,sent_at\na,2026-11-30\n", 2, "sent_at is \"2026-11-30\""),
        ("id,name\na,x\n\nb,y\na,z\n", 5, "campaign \"a\" is on line 2 with other values"),
        ("title\nx\n", 1, "no column \"id\""),
        ("{\"id\":\"a\"}\n[]\n", 2, "not a JSON object"),
        ("{\"id\":12345678901234567890}\n", 1, "id is a number that is not exact"),
        ("{\"id\":\"a\",\"name\":[]}\n", 1, "name is neither text nor a number"),
        ("id\n" + String(repeating: "i", count: 129) + "\n", 2, "id is 129 bytes, limit is 128"),
    ]) func aWrongLineIsNamed(text: String, line: Int, reason: String) throws {
        let problem = try #require(try Self.read(text).problems.first)
        #expect(problem.line == line && problem.message.hasPrefix(reason), "\(problem)")
    }

    @Test func whatIsRightStaysAndWhatMeansNothingIsNamed() throws {
        let file = try Self.read("id,colour\na,red\n,blue\nb,\n")
        #expect(file.lines.map(\.id) == ["a", "b"] && file.unused == ["colour"])
        let nowhere = try Self.read("id\na\n", app: nil)
        #expect(nowhere.problems[0].message.hasPrefix("app is missing"))
    }
}
