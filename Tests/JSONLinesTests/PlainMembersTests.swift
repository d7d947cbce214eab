import Testing

@testable import JSONLines

struct PlainMembersTests {
    /// What is copied of each member, `#` for a number that is to be rewritten; nil if it is not plain.
    private static func members(_ text: String) -> [String]? {
        var plain = PlainMembers()
        let bytes = Array(text.utf8)
        guard plain.read(bytes.rawSpan, at: 0) == bytes.count else { return nil }
        #expect(plain.object == 0..<bytes.count)
        return (0..<plain.count).map { index in
            String(decoding: bytes[plain[index].range], as: UTF8.self)
                + (plain[index].endsWithNumber ? "#" : "")
        }
    }

    @Test(
        arguments: [
            ("{}", []), ("{ }", []), ("{\"b\":1,\"a\":\"x\"}", ["\"a\":\"x\"", "\"b\":1"]),
            ("{ \"a\":-7 , \"b\":\"é\"\n}", ["\"a\":-7", "\"b\":\"é\""]),
            (
                "{\"a\":10,\"b\":1.5,\"c\":1e3,\"d\":0,\"e\":105}",
                ["\"a\":#", "\"b\":#", "\"c\":#", "\"d\":#", "\"e\":105"]
            ),
            (
                "{\"a\":true,\"b\":false,\"c\":null}",
                ["\"a\":true", "\"b\":false", "\"c\":null"]
            ),
        ] as [(String, [String])])
    func plainMembersAreListedInOrder(text: String, expected: [String]) {
        #expect(Self.members(text) == expected)
    }

    @Test(arguments: [
        "{\"a\":1,\"a\":2}", "{\"a\" :1}", "{\"a\": 1}", "{\"\\u0061\":1}", "{\"a\":\"\\n\"}",
        "{\"a\":{}}", "{\"a\":[]}", "{\"screens\":1,\"screen_b\":2,\"screen_a\":3}",
        // And what is no object at all.
        "{", "{\"a\":1", "{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}", "{\"a\":01}", "{\"a\":tru}",
        "{\"a\":\"\t\"}", "{\"a\":1]", "{\"a\"}",
    ])
    func othersAreNotPlain(text: String) {
        #expect(Self.members(text) == nil)
    }

    @Test func sixteenMembersFitAndOneMoreDoesNot() {
        func text(_ count: Int) -> String {
            "{" + (0..<count).map { "\"\(100 + $0)\":1\($0)" }.joined(separator: ",") + "}"
        }
        #expect(Self.members(text(16))?.count == 16)
        #expect(Self.members(text(17)) == nil)
    }
}
