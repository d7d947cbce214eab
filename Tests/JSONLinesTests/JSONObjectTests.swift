import Testing

@testable import JSONLines

/// What the scanner says of one text.
func scan(_ text: [UInt8]) -> JSONObject.Failure? {
    var members = GrowingTable<JSONMember>()
    return JSONObject.scan(text.rawSpan, 0..<text.count, into: &members)
}

/// The members of a good text.
func listed(_ text: [UInt8]) -> [JSONMember] {
    var members = GrowingTable<JSONMember>(capacity: 1)
    #expect(JSONObject.scan(text.rawSpan, 0..<text.count, into: &members) == nil)
    return (0..<members.count).map { members[$0] }
}

func scan(_ text: String) -> JSONObject.Failure? { scan(Array(text.utf8)) }

/// The scanner's verdict on a value, as the member of an object.
func scanValue(_ text: String) -> JSONObject.Failure? { scan("{\"x\":\(text)}") }

struct JSONObjectTests {
    @Test(arguments: [
        "0", "-0", "-0.0", "1", "123", "1.5", "1e3", "1E+3", "1e-3", "0e0", "1e308", "1e0000000308",
        "9007199254740993", "18446744073709551616", "true", "false", "null", "\"\"", "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", "\"\\ud83d\\ude00\"", "\"é€😀\"", "\"\u{7F}\"",
        "\"\u{FFFE}\u{FFFF}\u{10FFFF}\"", "[]", "[ ]", "{}", "{ }", "[1,2]", "[[],{}]",
        "{\"a\":{\"b\":[{}]}}", " 1 ", "\t[\n1 ,\r2 ]", "{\"\":0}", "{\"a\":1,\"a\":2}",
        "\"__proto__\"",
    ])
    func aValueOfTheGrammarIsTaken(text: String) {
        #expect(scanValue(text) == nil)
    }

    @Test(arguments: [
        "", "+1", "01", "-01", "1.", ".5", "-", "1e", "1e+", "1.e1", "0x1", "NaN", "Infinity",
        "tru",
        "TRUE", "nul", "nulll", "'a'", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12G4\"",
        "\"\t\"", "\"\n\"", "\"\0\"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{",
        "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{,}", "{a:1}", "{\"a\" 1}", "{\"a\":1]",
        "{1:2}", "1 2", "\u{A0}1", "//", "1//", "\u{FEFF}1", "[1,,2]", "{\"a\"::1}",
    ])
    func aValueOutsideTheGrammarIsRefused(text: String) {
        guard case .invalid(.syntax) = scanValue(text) else {
            Issue.record("\(text): \(String(describing: scanValue(text)))")
            return
        }
    }

    @Test(
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0x80],
            [0xE0, 0x9F, 0xBF], [0xE2, 0x82], [0xED, 0xA0, 0xBD], [0xED, 0xBF, 0xBF],
            [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xF0, 0x9F, 0x98], [0xFF], [0xFE],
        ] as [[UInt8]])
    func aStringThatIsNotUTF8IsRefusedAsSuch(bytes: [UInt8]) {
        for prefix in 0..<17 {
            let filler = [UInt8](repeating: 0x61, count: prefix)
            let text = Array("{\"x\":\"".utf8) + filler + bytes + Array("\"}".utf8)
            #expect(scan(text) == .invalid(.invalidUTF8(offset: 6 + prefix)))
        }
    }

    /// The line's own object is the first container.
    @Test(arguments: [
        (62, true), (63, true), (64, false), (65, false), (1000, false), (20_000, false),
        (1_000_000, false),
    ])
    func depthIsCappedAt64(nested: Int, isTaken: Bool) {
        let arrays =
            String(repeating: "[", count: nested) + String(repeating: "]", count: nested)
        #expect(scanValue(arrays) == (isTaken ? nil : .invalid(.tooDeep)))
        let objects =
            String(repeating: "{\"a\":", count: nested) + "1"
            + String(repeating: "}", count: nested)
        #expect(scanValue(objects) == (isTaken ? nil : .invalid(.tooDeep)))
        #expect(scanValue(String(repeating: "[", count: nested)) != nil)
    }

    @Test(arguments: [
        ("1e309", false), ("1e-309", false), ("1e99999999999999999999", false), ("-1e308", true),
        (String(repeating: "9", count: 1000), true), (String(repeating: "9", count: 1001), false),
        ("0." + String(repeating: "9", count: 999), true),
        ("0." + String(repeating: "9", count: 1000), false),
    ])
    func aNumberThatWouldGrowInTheDatabaseIsRefused(text: String, isTaken: Bool) {
        #expect(scanValue(text) == (isTaken ? nil : .invalid(.numberTooLarge)))
    }

    @Test(arguments: ["1", "\"a\"", "[]", "[{}]", "null", " true "])
    func anotherValueIsNotAnObject(text: String) {
        #expect(scan(text) == .notAnObject)
    }

    @Test func membersAreListedInOrderWithTheirTexts() {
        let text = Array(
            "{ \"a\" : \"x\\n\" ,\"\\u0062\":-12,\"c\":1.5,\"d\":[1,{}] , \"e\":null}".utf8)
        let members = listed(text)
        func string(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }
        #expect(members.map { string($0.key) } == ["a", "\\u0062", "c", "d", "e"])
        #expect(
            members.map { string($0.isString ? $0.text : $0.value) } == [
                "x\\n", "-12", "1.5", "[1,{}]", "null",
            ])
        #expect(members.map(\.kind) == [.string, .number, .number, .array, .null])
        #expect(members.map(\.isValueEscaped) == [true, false, false, false, false])
        #expect(members.map(\.isKeyEscaped) == [false, true, false, false, false])
        #expect(members.map(\.isInteger) == [false, true, false, false, false])
    }

    @Test func textThatJsonbRefusesIsFlaggedAtItsMember() {
        let text = Array(
            """
            {"ok":"\\ud83d\\ude00","nul":"a\\u0000","k\\ud800":1,"deep":[{"a":"\\ude00\\ud83d"}],"z":"\\uD83Dx"}
            """.utf8)
        let members = listed(text)
        #expect(
            members.map(\.isValueRefused) == [false, true, false, true, true])
        #expect(
            members.map(\.isKeyRefused) == [false, false, true, false, false])
    }

    @Test func everyTruncationIsRefused() {
        let line = Array(
            """
            {"type":"clicked","n":-1.5e+3,"s":"é😀\\ud83d\\ude00","p":{"a":[true,false,null,{}]}}
            """.utf8)
        #expect(scan(line) == nil)
        for count in 0..<line.count { #expect(scan(Array(line.prefix(count))) != nil) }
    }

    @Test func aQuoteIsFoundAtEveryPlaceOfAWord() {
        for count in 0..<40 {
            let filler = String(repeating: "a", count: count)
            #expect(scanValue("\"\(filler)\"") == nil)
            #expect(scanValue("\"\(filler)\u{1F}\"") != nil)
            #expect(scanValue("\"\(filler)\\n\"") == nil)
            #expect(scanValue("\"\(filler)") != nil)
        }
    }
}
