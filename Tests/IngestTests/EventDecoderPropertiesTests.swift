import Event
import Ingest
import Testing

struct EventDecoderPropertiesTests {
    private func properties(_ members: String) throws -> String? {
        try DecoderHarness.row("{\"type\":\"sent\",\"message_uid\":\"m\"\(members)}").text(
            .properties)
    }

    @Test(
        arguments: [
            ("", nil), (",\"properties\":null", nil), (",\"properties\":{}", "{}"),
            (",\"properties\": { \"a\" : 1 } ", "{ \"a\" : 1 }"),
            (",\"attributes\":{\"a\":1}", "{\"a\":1}"),
            (",\"props\":{\"a\":1}", "{\"a\":1}"),
            // Not an object.
            (",\"properties\":[1]", "{\"properties\":[1]}"),
            (",\"properties\":\"x\"", "{\"properties\":\"x\"}"),
            (",\"props\":true", "{\"props\":true}"),
            // Unknown fields.
            (",\"x\":1", "{\"x\":1}"), (",\"x\":null", "{\"x\":null}"),
            (",\"Type\":\"a\"", "{\"Type\":\"a\"}"),
            (",\"x\":{\"y\":[1]},\"properties\":{\"a\":1}", "{\"a\":1,\"x\":{\"y\":[1]}}"),
            (",\"x\":1,\"properties\":{ }", "{ \"x\":1}"), (",\"\":1", "{\"\":1}"),
            (",\"__proto__\":{}", "{\"__proto__\":{}}"),
            // A name of both.
            (",\"a\":2,\"properties\":{\"a\":1}", "{\"a\":1,\"top.a\":2}"),
            (",\"\\u0061\":2,\"properties\":{\"a\":1}", "{\"a\":1,\"top.\\u0061\":2}"),
            (",\"a\":2,\"properties\":{\"\\u0061\":1}", "{\"\\u0061\":1,\"top.a\":2}"),
            // The envelope is not overwritten, and not lost either.
            (
                ",\"properties\":{\"type\":\"clicked\",\"message_uid\":\"x\"}",
                "{\"type\":\"clicked\",\"message_uid\":\"x\"}"
            ),
            // The time of sending is no property.
            (",\"sent_at\":\"2026-11-30T05:00:00Z\"", nil), (",\"sent_at\":\"what\"", nil),
        ] as [(String, String?)])
    func propertiesAre(members: String, expected: String?) throws {
        #expect(try properties(members) == expected)
    }

    @Test func namesThatDifferInCaseOrLengthDoNotCollide() throws {
        let long = String(repeating: "k", count: 70)
        let text = "{\"Aa\":1,\"aA\":2,\"message_uid\":\"x\",\"\(long)\":3}"
        let row = try DecoderHarness.row(
            "{\"type\":\"sent\",\"message_uid\":\"m\",\"props\":\(text)}")
        #expect(row.text(.properties) == text)
        #expect(row.text(.messageUID) == "m")
    }

    @Test func whatJsonbRefusesIsReplacedAndCounted() throws {
        var harness = DecoderHarness()
        func text(_ members: String) throws -> String? {
            try harness.decode("{\"type\":\"sent\",\"message_uid\":\"m\",\(members)}").get().text(
                .properties)
        }
        #expect(try text(#""props":{"n":"a\u0000b"}"#) == #"{"n":"a\ufffdb"}"#)
        #expect(
            try text(#""props":{"t":"\ud83d","u":["\ude00\ud83d"]}"#)
                == #"{"t":"\ufffd","u":["\ufffd\ufffd"]}"#)
        #expect(try text(#""props":{"k\u0000":1}"#) == #"{"k\ufffd":1}"#)
        #expect(try text(#""x\ud800":"\u0000""#) == #"{"x\ufffd":"\ufffd"}"#)
        #expect(harness.decoder.sanitized == 4)
        #expect(
            try text(#""props":{"t":"ok \ud83d\ude00","s":"\\u0000"}"#)
                == #"{"t":"ok \ud83d\ude00","s":"\\u0000"}"#)
        #expect(harness.decoder.sanitized == 4)
        let row = try harness.decode(#"{"type":"sent","message_uid":"m","platform":"a\u0000B"}"#)
            .get()
        #expect(row.text(.platform) == "a\u{FFFD}b")
        #expect(harness.decoder.sanitized == 5)
    }

    @Test func manyUnknownNamesAgainstManyPropertiesStayCheap() throws {
        let inner = (0..<3000).map { "\"i\($0)\":1" }.joined(separator: ",")
        let outer = (0..<3000).map { "\"o\($0)\":1" }.joined(separator: ",")
        let text = try #require(try properties(",\"props\":{\(inner)},\(outer)"))
        #expect(text == "{\(inner),\(outer.replacing("\"o", with: "\"top.o"))}")
    }
}
