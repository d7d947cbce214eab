import Event
import Ingest
import JSONLines
import Testing

struct EventDecoderVerdictTests {
    @Test(arguments: [
        ("", "bad_json"), ("{", "bad_json"), ("{}x", "bad_json"),
        ("{\"type\":\"sent\",}", "bad_json"), ("nonsense", "bad_json"),
        ("[]", "not_an_object"), ("7", "not_an_object"), ("\"a\"", "not_an_object"),
        ("null", "not_an_object"),
        ("{}", "missing_type type"), ("{\"type\":null}", "missing_type type"),
        ("{\"message_uid\":null,\"type\":\"\"}", "missing_type type"),
        ("{\"type\":7}", "invalid_type type"), ("{\"status\":{}}", "invalid_type status"),
        ("{\"type\":\"a b\"}", "invalid_character type"),
        ("{\"type\":\"\\u0000\"}", "invalid_character type"),
        ("{\"type\":\"é\"}", "invalid_character type"),
        ("{\"type\":\"a/b\"}", "invalid_character type"),
        ("{\"type\":\"a;b\"}", "invalid_character type"),
        ("{\"type\":\"sent\"}", "missing_message_uid message_uid"),
        ("{\"type\":\"clicked\",\"message_uid\":\"\"}", "missing_message_uid message_uid"),
        ("{\"type\":\"clicked\",\"inbox_message_uid\":\"i\"}", "missing_message_uid message_uid"),
        ("{\"type\":\"inbox_open\"}", "missing_message_uid message_uid"),
        ("{\"type\":\"clicked\",\"event_uid\":\"e\"}", "missing_message_uid message_uid"),
        ("{\"type\":\"launch\"}", "no_identity occurred_at"),
        ("{\"type\":\"launch\",\"device_id\":\"d\"}", "no_identity occurred_at"),
        ("{\"type\":\"launch\",\"occurred_at\":1}", "no_identity"),
        (
            "{\"type\":\"launch\",\"device_id\":\"d\",\"occurred_at\":true}",
            "no_identity occurred_at"
        ),
        (
            "{\"type\":\"sent\",\"message_uid\":\"m\",\"campaign_id\":1.5}",
            "invalid_type campaign_id"
        ),
        (
            "{\"type\":\"sent\",\"message_uid\":\"m\",\"campaign_id\":1e3}",
            "invalid_type campaign_id"
        ),
        (
            "{\"type\":\"sent\",\"message_uid\":\"m\",\"campaign_id\":[1]}",
            "invalid_type campaign_id"
        ),
        ("{\"type\":\"sent\",\"message_uid\":true}", "invalid_type message_uid"),
        ("{\"type\":\"sent\",\"message_uid\":\"m\",\"uuid\":{}}", "invalid_type uuid"),
        ("{\"type\":\"sent\",\"message_uid\":\"m\",\"is_test\":1}", "invalid_type is_test"),
        ("{\"type\":\"sent\",\"message_uid\":\"m\",\"silent\":\"true\"}", "invalid_type silent"),
        ("{\"type\":\"sent\",\"message_uid\":\"m\",\"opens_app\":[]}", "invalid_type opens_app"),
        (
            "{\"type\":\"sent\",\"message_uid\":\"m\",\"device_id\":\"d\\u0000x\"}",
            "invalid_character device_id"
        ),
        ("{\"type\":\"sent\",\"message_uid\":\"\\ud83d\"}", "invalid_character message_uid"),
        (
            "{\"type\":\"sent\",\"message_uid\":\"m\",\"person_id\":\"\\ude00\"}",
            "invalid_character person_id"
        ),
        ("{\"type\":\"sent\",\"message_uid\":\"m\",\"x\":1e309}", "number_too_large"),
    ])
    func aBadLineIsRejectedWith(line: String, expected: String) {
        #expect(DecoderHarness.rejection(line) == expected)
    }

    @Test(arguments: [
        "{\"type\":\"launch\",\"event_uid\":\"e\"}",
        "{\"type\":\"launch\",\"message_uid\":\"m\",\"occurred_at\":1}",
        "{\"type\":\"launch\",\"device_id\":\"d\",\"occurred_at\":\"not a time\"}",
        "{\"type\":\"inbox_fetch\",\"device_id\":\"d\",\"time\":0}",
        "{\"type\":\"A-z_0.9:x\",\"uuid\":1}", " \t{\"type\":\"sent\",\"message_uid\":\"m\"} \r",
    ])
    func aLineWithAnIdentityIsTaken(line: String) {
        #expect(DecoderHarness.rejection(line) == nil)
    }

    /// The limit and one over, in bytes and not in characters; incompressible or not is the same.
    @Test(arguments: [
        ("message_uid", 128), ("device_id", 128), ("event_uid", 128), ("insert_id", 128),
        ("campaign_id", 128),
        ("action_id", 128), ("category_id", 128), ("inbox_message_uid", 128), ("person_id", 128),
        ("type", 64),
    ])
    func anIdentifierHasALimit(name: String, limit: Int) {
        func verdict(_ text: String) -> String? {
            let rest =
                name == "message_uid"
                ? "\"type\":\"sent\""
                : name == "type" ? "\"uuid\":1" : "\"type\":\"sent\",\"message_uid\":\"m\""
            return DecoderHarness.rejection("{\(rest),\"\(name)\":\"\(text)\"}")
        }
        #expect(verdict(String(repeating: "a", count: limit)) == nil)
        #expect(verdict(String(repeating: "a", count: limit + 1)) == "field_too_long \(name)")
        #expect(verdict(String(repeating: "a", count: 10_000)) == "field_too_long \(name)")
        guard name != "type" else { return }
        #expect(verdict(String(repeating: "é", count: limit / 2)) == nil)
        #expect(verdict(String(repeating: "é", count: limit / 2) + "a") == "field_too_long \(name)")
        #expect(verdict(String(repeating: "\\u00e9", count: limit / 2)) == nil)
    }

    @Test func messagesNameFieldActualAndLimit() {
        func message(_ line: String) -> String? {
            var harness = DecoderHarness()
            guard case .failure(let rejection) = harness.decode(line) else { return nil }
            return rejection.message
        }
        let long = String(repeating: "a", count: 141)
        #expect(
            message("{\"type\":\"sent\",\"message_uid\":\"\(long)\"}")
                == "field \"message_uid\" is 141 bytes, limit is 128")
        #expect(
            message("{\"type\":\"sent\",\"message_uid\":[]}")
                == "field \"message_uid\" is an array, expected a string or an integer")
        #expect(
            message("{\"type\":\"sent\",\"message_uid\":1,\"silent\":0}")
                == "field \"silent\" is a number, expected true or false")
        #expect(message("{\"type\":\"sent\" \"a\"}") == "line is not valid JSON at byte 15")
        #expect(
            message("{\"type\":\"sent\"}")
                == "field \"message_uid\" is required for a status update")
    }

    @Test func aLineIsAsLongAsTheLimit() {
        var harness = DecoderHarness()
        harness.decoder = EventDecoder(lineBytesMax: 1000)
        let head = "{\"type\":\"sent\",\"message_uid\":\"m\",\"x\":\""
        let fits = head + String(repeating: "a", count: 1000 - head.utf8.count - 2) + "\"}"
        #expect(throws: Never.self) { try harness.decode(fits).get() }
        guard case .failure(let rejection) = harness.decode(fits + " ") else {
            Issue.record("taken")
            return
        }
        #expect(rejection.code == .lineTooLong)
        #expect(rejection.message == "line is 1001 bytes, limit is 1000")
    }

    @Test(arguments: [61, 62, 63, 64, 1000, 20_000, 1_000_000])
    func depthIsCappedInPropertiesAndUnknownFields(nested: Int) {
        var harness = DecoderHarness()
        harness.decoder = EventDecoder(lineBytesMax: 10_000_000)
        let value = String(repeating: "[", count: nested) + String(repeating: "]", count: nested)
        for (name, limit) in [("x", 63), ("platform", 63)] {
            let verdict = harness.decode(
                "{\"type\":\"sent\",\"message_uid\":\"m\",\"\(name)\":\(value)}")
            switch verdict {
            case .success: #expect(nested <= limit)
            case .failure(let rejection):
                #expect(nested > limit)
                #expect(rejection.code == .tooDeep)
            }
        }
    }

    @Test func bytesThatAreNotUTF8RejectTheirLineAlone() {
        var harness = DecoderHarness()
        let head = Array("{\"type\":\"sent\",\"message_uid\":\"m\",\"x\":\"".utf8)
        for bytes in [[0xED, 0xA0, 0xBD], [0xF4, 0x90, 0x80, 0x80], [0xC0, 0x80], [0xFF]]
            as [[UInt8]]
        {
            guard case .failure(let rejection) = harness.decode(head + bytes + Array("\"}".utf8))
            else {
                Issue.record("\(bytes) taken")
                continue
            }
            #expect(rejection.code == .invalidUTF8)
        }
        #expect(throws: Never.self) {
            try harness.decode(head + Array("\u{FFFE}\u{202E}👨‍👩‍👧\"}".utf8)).get()
        }
    }

    @Test func everyTruncationAndEveryChangedByteHasAVerdict() {
        let line = Array(
            #"{"type":"inbox_open","message_uid":"0F8FAD5B-D9CB-469F-A165-70867728950E","device_id":"d\u00e9","uuid":7,"activity_type":"a","activity_uid":"b","occurred_at":1.5e9,"sent_at":"2026-11-30T06:10:00Z","platform":"iOS","x":{"a":1,"a":"\ud83d\u0000"},"props":{"x":[1.0,-0,"é"]}}"#
                .utf8)
        var harness = DecoderHarness()
        #expect(throws: Never.self) { try harness.decode(line).get() }
        for count in 0..<line.count {
            guard case .failure(let rejection) = harness.decode(Array(line.prefix(count))) else {
                Issue.record("\(count) bytes taken")
                continue
            }
            #expect(rejection.code == .badJSON || rejection.code == .invalidUTF8)
        }
        for index in line.indices {
            for byte in [
                0x00, 0x09, 0x20, 0x22, 0x2C, 0x30, 0x39, 0x41, 0x5B, 0x5C, 0x65, 0x75, 0x7B, 0x7D,
                0x80, 0xC3, 0xFF,
            ] as [UInt8] {
                var changed = line
                changed[index] = byte
                if case .success(let row) = harness.decode(changed) { _ = row.json() }
            }
        }
    }
}
