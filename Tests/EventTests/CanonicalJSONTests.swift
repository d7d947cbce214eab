import JSONLines
import Testing

@testable import Event

struct CanonicalJSONTests {
    private func canonical(_ text: String) -> String {
        var writer = CanonicalJSON()
        var output = ByteBuffer(capacity: 1)
        let bytes = Array(text.utf8)
        writer.append(bytes.rawSpan, 0..<bytes.count, to: &output)
        return String(decoding: output.array, as: UTF8.self)
    }

    @Test(arguments: [
        (" { } ", "{}"), ("[ ]", "[]"), ("{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"),
        ("{\"a\":1,\"a\":2}", "{\"a\":2}"),
        ("{\"b\":0,\"a\":1,\"\\u0061\":2}", "{\"a\":2,\"b\":0}"),
        (
            "{\"\":1,\"a\":{\"z\":1,\"y\":[{\"q\":1,\"p\":2}]}}",
            "{\"\":1,\"a\":{\"y\":[{\"p\":2,\"q\":1}],\"z\":1}}"
        ),
        ("{\"screen_b\":1,\"screen_a\":2}", "{\"screen_a\":2,\"screen_b\":1}"),
        ("{\"screens\":1,\"screen\":true}", "{\"screen\":true,\"screens\":1}"),
        ("{ \"b\":-7 , \"a\":\"é\"\n}", "{\"a\":\"é\",\"b\":-7}"),
        ("{\"b\":null,\"a\" : 20,\"c\":1.0}", "{\"a\":2e1,\"b\":null,\"c\":1}"),
        (
            "{\"c\":-120,\"b\":1.50,\"a\":1E+2,\"d\":-0}",
            "{\"a\":1e2,\"b\":15e-1,\"c\":-12e1,\"d\":0}"
        ),
        ("{\"c\":[],\"b\":700,\"a\":0.5}", "{\"a\":5e-1,\"b\":7e2,\"c\":[]}"),
        ("{\"ab\":1,\"a\":2}", "{\"a\":2,\"ab\":1}"),
        ("\"\\u0041\\/\\n\\\"\\\\\\u00e9\"", "\"A/\\u000a\\\"\\\\é\""),
        ("\"\\ud83d\\ude00\"", "\"😀\""),
        ("[true , false,null]", "[true,false,null]"),
        ("0", "0"), ("-0", "0"), ("0.000", "0"), ("-0e5", "0"), ("0e-5", "0"), ("1", "1"),
        ("-1", "-1"),
        ("10", "1e1"), ("0.1", "1e-1"), ("1200", "12e2"), ("1.0200", "102e-2"), ("100e-2", "1"),
        ("1e308", "1e308"), ("123.456e1", "123456e-2"), ("9007199254740993", "9007199254740993"),
    ])
    func theFormIs(text: String, expected: String) {
        #expect(canonical(text) == expected)
        #expect(canonical(expected) == expected)
    }

    /// An escape sends an object the long way.
    @Test func aPlainObjectComesOutAsOneWithEscapes() {
        let values = [
            "0", "-0", "7", "-70", "105", "1.50", "1e3", "12E-1", "true", "false", "null", "\"\"",
            "\"é😀\"", "\"a text\"",
        ]
        var random = SystemRandomNumberGenerator()
        for count in 0...18 {
            for _ in 0..<20 {
                let members = (0..<count).map { _ in
                    (Int.random(in: 10..<40, using: &random), values.randomElement(using: &random)!)
                }
                let plain = members.map { "\"k\($0)\":\($1)" }.joined(separator: ",")
                let escaped = members.map { "\"\\u006b\($0)\":\($1)" }.joined(separator: ",")
                #expect(canonical("{\(plain)}") == canonical("{\(escaped)}"), "\(plain)")
            }
        }
    }

    @Test(arguments: [1, 7, 16, 17, 40])
    func manyMembersAreInOrder(count: Int) {
        let members = (0..<count).map { "\"k\(100 + $0)\":\"\($0)\"" }
        let expected = "{" + members.joined(separator: ",") + "}"
        #expect(canonical("{" + members.reversed().joined(separator: ",") + "}") == expected)
        #expect(canonical("{" + members.reversed().joined(separator: " , ") + "}") == expected)
        #expect(canonical(expected) == expected)
    }

    /// Texts in one group are equal as jsonb, texts of different groups are not.
    @Test func textsAreEqualExactlyWhenJsonbIs() {
        let groups = [
            ["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000E+0", "100E-2"],
            ["0", "-0", "0.0", "0e9", "-0.0e-3"],
            ["-1", "-1.0", "-10e-1"], ["1e1", "10", "10.0"], ["\"1\"", "\"\\u0031\""], ["true"],
            ["null"],
            ["false"], ["[]"], ["{}"], ["[1,2]", "[1.0, 2]"], ["[2,1]"], ["[[1,2]]"], ["[[1],2]"],
            ["\"\""],
            [
                "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1.0}", "{\"a\":0,\"b\":2,\"a\":1}",
                " { \"\\u0061\" : 1 , \"b\" : 2 } ",
            ],
            ["{\"a\":2,\"b\":1}"], ["{\"a\":1}"], ["{\"A\":1}"], ["{\"a\":{\"b\":1}}"],
            ["{\"a\":\"b\"}"],
            ["\"é\"", "\"\\u00e9\"", "\"\\u00E9\""], ["\"e\u{301}\""],
            ["\"a\\nb\"", "\"a\\u000Ab\""], ["\"a b\""],
            ["9007199254740993"], ["9007199254740992"], ["0.1"], ["0.10000000000000001"],
            ["{\"a\\\"\":1}", "{\"a\\u0022\":1}"], ["{\"a\":1,\"\":null}", "{\"\":null,\"a\":1}"],
        ]
        var seen: [[UInt8]: Int] = [:]  // Strings are equal in more cases than jsonb.
        for (index, group) in groups.enumerated() {
            for text in group {
                let form = Array(canonical(text).utf8)
                #expect(seen[form, default: index] == index, "\(text)")
                #expect(form == Array(canonical(group[0]).utf8), "\(text)")
                seen[form] = index
            }
        }
    }

    @Test func theOrderOfManyMembersDoesNotMatter() {
        var random = SystemRandomNumberGenerator()
        for count in [1, 2, 3, 15, 16, 17, 33, 64, 65, 200] {
            var members = (0..<count).map { "\"k\($0)\":{\"x\":\($0),\"a\":[]}" }
            let expected = canonical("{" + members.joined(separator: ",") + "}")
            for _ in 0..<5 {
                members.shuffle(using: &random)
                let old = "\"k0\":{\"old\":true},"
                #expect(canonical("{" + members.joined(separator: ",") + "}") == expected)
                #expect(canonical("{" + old + members.joined(separator: ",") + "}") == expected)
            }
        }
    }
}
