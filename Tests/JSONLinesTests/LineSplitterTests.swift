import Testing

@testable import JSONLines

struct LineSplitterTests {
    private func lines(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        var splitter = LineSplitter()
        var found: [String] = []
        while let line = splitter.next(in: bytes.rawSpan) {
            found.append("\(line.number):" + String(decoding: bytes[line.range], as: UTF8.self))
        }
        return found
    }

    @Test(
        arguments: [
            ("", []), ("\n", []), ("\r\n\r\n", []), (" \t\r\n \n", []), ("a", ["1:a"]),
            ("a\n", ["1:a"]),
            ("a\r\nb\r\n", ["1:a", "2:b"]), ("a\n\n \nb", ["1:a", "4:b"]),
            ("\u{FEFF}a\nb", ["1:a", "2:b"]),
            ("\u{FEFF}", []), ("\u{FEFF}\n a \n", ["2: a "]),
            ("a\n\u{FEFF}b", ["1:a", "2:\u{FEFF}b"]),
            ("a\rb\n", ["1:a\rb"]), ("a\r\r\n", ["1:a\r"]), ("\na", ["2:a"]),
        ] as [(String, [String])])
    func linesKeepTheirPhysicalNumbers(text: String, expected: [String]) {
        #expect(lines(text) == expected)
    }
}

struct JSONBodyTests {
    private func split(_ text: String) throws -> [String] {
        let bytes = Array(text.utf8)
        var elements: [Range<Int>] = []
        try JSONBody.split(bytes.rawSpan, into: &elements)
        return elements.map { String(decoding: bytes[$0], as: UTF8.self) }
    }

    @Test(
        arguments: [
            ("[]", []), (" [ ] \n", []), ("{}", ["{}"]),
            ("\u{FEFF}{\n \"a\": 1\n}\n", ["{\n \"a\": 1\n}"]),
            ("[{\"a\":1},\n {\"b\":[2]} ]", ["{\"a\":1}", "{\"b\":[2]}"]),
            ("[1,\"]\",[],null]", ["1", "\"]\"", "[]", "null"]),
        ] as [(String, [String])])
    func elementsAreFoundOnAnyNumberOfLines(text: String, expected: [String]) throws {
        #expect(try split(text) == expected)
    }

    @Test(arguments: [
        "", " ", "[", "[1", "[1,]", "[1]]", "{} {}", "[{\"a\":1}", "{\"a\":}", "[]x", "nul",
    ])
    func aBodyThatDoesNotParseIsRefusedAsAWhole(text: String) {
        #expect(throws: JSONBody.Failure.self) { try split(text) }
    }

    @Test func anotherValueIsNoBody() {
        #expect(throws: JSONBody.Failure.neitherArrayNorObject) { try split("\"a\"") }
    }

    @Test func anElementBeyondALimitLeavesItsNeighbours() throws {
        let deep =
            "{\"a\":" + String(repeating: "[", count: 5000) + "\"]\\\"\""
            + String(repeating: "]", count: 5000) + "}"
        #expect(
            try split("[{\"b\":1},\(deep),{\"n\":1e999},{}]") == [
                "{\"b\":1}", deep, "{\"n\":1e999}", "{}",
            ])
    }

    // MARK: members

    private func members(_ text: String) throws -> [String] {
        let bytes = Array(text.utf8)
        return try JSONBody.members(bytes.rawSpan, 0..<bytes.count).map { member in
            String(decoding: bytes[member.key], as: UTF8.self)
                + (member.isKeyEscaped ? "!" : "") + "="
                + String(decoding: bytes[member.value], as: UTF8.self)
        }
    }

    @Test func membersAreListedWhateverLimitTheirValuesAreOver() throws {
        let deep = String(repeating: "[", count: 90) + String(repeating: "]", count: 90)
        let text = " {\"a\" : 1e999 ,\n\"\\u0062\":\(deep),\"a\":\"x\",\"o\":{}} "
        #expect(try members(text) == ["a=1e999", "\\u0062!=\(deep)", "a=\"x\"", "o={}"])
        #expect(try members("{}") == [])
    }

    @Test func aCutOffObjectHasNoMembers() throws {
        let text = "{\"a\":{\"b\":[1,\"c\"]},\"d\":null}"
        #expect(try members(text).count == 2)
        for count in 0..<text.utf8.count {
            let cut = String(decoding: text.utf8.prefix(count), as: UTF8.self)
            #expect(throws: JSONBody.Failure.self, "\(cut)") { try members(cut) }
        }
        for text in ["[]", "1", "{} x", "{,}", "{\"a\"}", "{\"a\":1,}", "{a:1}"] {
            #expect(throws: JSONBody.Failure.self, "\(text)") { try members(text) }
        }
    }
}

struct JSONTextTests {
    @Test(arguments: [
        ("plain é", "plain é"), ("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\u{8}\u{C}\n\r\t"),
        ("\\u0041\\u00e9\\u20AC", "Aé€"), ("\\ud83d\\ude00\\uDBFF\\uDFFF", "😀\u{10FFFF}"),
        ("\\u0000", "\u{FFFD}"), ("\\ud83d", "\u{FFFD}"), ("\\ude00\\ud83d", "\u{FFFD}\u{FFFD}"),
        ("\\ud83d\\ud83d\\ude00", "\u{FFFD}😀"), ("", ""), ("a\\ud83dz", "a\u{FFFD}z"),
    ])
    func escapesBecomeTheirCharacters(text: String, expected: String) {
        var output = ByteBuffer()
        JSONText.unescape(Array(text.utf8).rawSpan, 0..<text.utf8.count, into: &output)
        #expect(String(decoding: output.array, as: UTF8.self) == expected)
    }

    @Test(arguments: [
        ("{\"a\":\"\\u0000\\n\\ud83d\\ude00\"}", "{\"a\":\"\\ufffd\\n\\ud83d\\ude00\"}"),
        ("\"\\\\u0000\"", "\"\\\\u0000\""), ("\"\\ud83d\"", "\"\\ufffd\""),
        ("\"\\ude00\\ud83d\\u0041\"", "\"\\ufffd\\ufffd\\u0041\""),
    ])
    func onlyWhatJsonbRefusesIsReplaced(text: String, expected: String) {
        var output = ByteBuffer()
        JSONText.sanitize(Array(text.utf8).rawSpan, 0..<text.utf8.count, into: &output)
        #expect(String(decoding: output.array, as: UTF8.self) == expected)
    }
}
