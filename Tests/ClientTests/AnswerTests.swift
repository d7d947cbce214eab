import Client
import Testing

@Suite struct AnswerTests {
    static func outcome(_ status: Int, _ json: String, header: Int = 0) -> Outcome {
        Client.outcome(
            status: status, retryAfterSeconds: header, bytes: Array(json.utf8),
            transportError: "connection refused")
    }

    @Test(arguments: [408, 429, 500, 502, 503, 507]) func aPassingFaultIsTriedAgain(status: Int) {
        #expect(
            Self.outcome(status, "{\"error\":\"busy\",\"retry_after\":2.5}", header: 1)
                == .retry(reason: "\(status) busy", afterSeconds: 2.5))
    }

    @Test func noAnswerIsTriedAgain() {
        #expect(Self.outcome(0, "") == .retry(reason: "connection refused", afterSeconds: nil))
    }

    @Test(arguments: [
        "{\"message\":\"m\"}", "{\"error\":\"m\"}", "{\"error\":{\"message\":\"m\"}}",
    ]) func theServersWordsAreFound(json: String) {
        #expect(Self.outcome(403, json) == .refused(reason: "403 m", stops: true))
    }

    @Test func thePauseGrowsAndStaysWithinItsBounds() {
        #expect(backoff(attempt: 1, retryAfterSeconds: nil, random: 0) == 125_000)
        #expect(backoff(attempt: 1, retryAfterSeconds: nil, random: 1) == 250_000)
        #expect(backoff(attempt: 4, retryAfterSeconds: nil, random: 1) == 2_000_000)
        #expect(backoff(attempt: 60, retryAfterSeconds: nil, random: 1) == 30_000_000)
    }

    @Test func theServersPauseIsTheLeast() {
        #expect(backoff(attempt: 1, retryAfterSeconds: 7, random: 0) == 7_000_000)
        #expect(backoff(attempt: 9, retryAfterSeconds: 7, random: 0.999) < 7_700_001)
    }

    @Test(arguments: [
        ("http://h:1", "http://h:1/v1/events"), ("https://h/", "https://h/v1/events"),
        ("http://h/x/events", "http://h/x/events"), ("HTTP://H", "HTTP://H/v1/events"),
    ]) func aBaseURLIsCompleted(url: String, whole: String) throws {
        #expect(try Target(url: url, key: nil).url == whole)
    }

    @Test(arguments: ["", "h:8080", "ftp://h", "http://", "http:///x", "http://h/ x", "http://h\n"])
    func aWrongURLIsRefused(url: String) {
        #expect(throws: ClientError.badURL(url)) { try Target(url: url, key: nil) }
    }

    @Test func jsonIsReadStrictly() {
        let text = "{\"a\":[1,-2.5e1,true,null],\"b\":\"\\u00e4\\ud83d\\ude00\\n\"}"
        #expect(
            JSONValue.parse(Array(text.utf8))
                == .object([
                    "a": .array([.number(1), .number(-25), .bool(true), .null]),
                    "b": .string("ä😀\n"),
                ]))
        for wrong in ["", "{", "[1,]", "{\"a\"}", "tru", "1 2", "\"\\x\"", "\"a"] {
            #expect(JSONValue.parse(Array(wrong.utf8)) == nil, "\(wrong)")
        }
    }

    @Test func deepNestingEndsInNilAndNotInACrash() {
        #expect(JSONValue.parse([UInt8](repeating: UInt8(ascii: "["), count: 100_000)) == nil)
    }
}

/// Where requests go.
@Suite struct TargetTests {
    @Test(arguments: [
        ("http://host:8080", "http://host:8080/metrics"),
        ("http://host:8080/", "http://host:8080/metrics"),
        ("https://u@host/v1/events?ack=stored", "https://u@host/metrics"),
        ("http://host?x=/y", "http://host/metrics"),
    ]) func aPageIsOfTheSameServer(url: String, page: String) throws {
        let target = try Target(url: url, key: "k").page("/metrics")
        #expect(target.url == page && target.authorization == nil)
    }

    @Test func pausesGrowToTheLongest() {
        func pause(_ asked: Double?, longest: Double) -> Int64 {
            backoff(attempt: 20, retryAfterSeconds: asked, random: 1, longestSeconds: longest)
        }
        #expect(pause(nil, longest: 2) == 2_000_000 && pause(nil, longest: 30) == 30_000_000)
        // The server may ask for longer.
        #expect(pause(5, longest: 2) == 5_500_000)
    }
}
