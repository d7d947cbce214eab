import Event
import Gzip
import HTTPServer
import HTTPTestClient
import Ingest
import Platform
import Testing

/// A body, and the whole answer to it.
struct BodyCase: CustomTestStringConvertible, Sendable {
    var name: String
    var body: String
    var headers: [String] = []
    var target = "/v1/events"
    var status = 200
    var answer: String
    var testDescription: String { name }
}

/// A head, and the status and code of its refusal.
struct HeadCase: CustomTestStringConvertible, Sendable {
    var request: String
    var status: Int
    var code: String
    var testDescription: String { "\(status) \(code): \(request.split(separator: "\r\n")[0])" }
}

@Suite struct ServiceTests {
    static let two = goodLine(1) + "\n" + goodLine(2) + "\n"
    static func all(_ count: Int) -> String {
        "{\"received\":\(count),\"accepted\":\(count),\"rejected\":0,\"errors\":[]}"
    }
    static func error(_ line: Int, _ code: String, _ field: String?, _ message: String) -> String {
        let field = field.map { "\"\($0)\"" } ?? "null"
        return
            "{\"line\":\(line),\"code\":\"\(code)\",\"field\":\(field),\"message\":\"\(message)\"}"
    }

    static let bodies: [BodyCase] = [
        BodyCase(name: "two lines", body: two, answer: all(2)),
        BodyCase(name: "no last newline", body: goodLine(1) + "\n" + goodLine(2), answer: all(2)),
        BodyCase(
            name: "CRLF, blank lines and a byte order mark",
            body: "\u{FEFF}\r\n\(goodLine(1))\r\n\r\n  \r\n\(goodLine(2))\r\n", answer: all(2)),
        BodyCase(name: "empty", body: "", answer: all(0)),
        BodyCase(name: "blank", body: "\n\r\n \n\n", answer: all(0)),
        BodyCase(
            name: "ndjson", body: two, headers: ["Content-Type: application/x-ndjson"],
            answer: all(2)),
        BodyCase(
            name: "what curl says", body: two,
            headers: ["Content-Type: application/x-www-form-urlencoded"], answer: all(2)),
        BodyCase(
            name: "jsonl with a parameter", body: two,
            headers: ["content-type: Application/JSONL; charset=utf-8"], answer: all(2)),
        BodyCase(
            name: "identity", body: two, headers: ["Content-Encoding: identity"], answer: all(2)),
        BodyCase(
            name: "JSON array on many lines", body: "[\n\(goodLine(1)),\n \(goodLine(2))\n]\n",
            headers: ["Content-Type: application/json"], answer: all(2)),
        BodyCase(
            name: "JSON object on many lines",
            body: "{\n \"type\": \"clicked\",\n \"message_uid\": \"m\"\n}",
            headers: ["Content-Type: application/json"], answer: all(1)),
        BodyCase(
            name: "empty JSON array", body: "[]", headers: ["Content-Type: application/json"],
            answer: all(0)),
        BodyCase(
            name: "JSON elements are counted, not lines", body: "[\(goodLine(1)),\n7]",
            headers: ["Content-Type: application/json"],
            answer: "{\"received\":2,\"accepted\":1,\"rejected\":1,\"errors\":["
                + error(2, "not_an_object", nil, "line is JSON but not an object") + "]}"),
        BodyCase(
            name: "JSON that does not parse", body: "[\(goodLine(1)),",
            headers: ["Content-Type: application/json"], status: 400,
            answer: "{\"error\":{\"code\":\"bad_json\","
                + "\"message\":\"body is not valid JSON at byte \(goodLine(1).utf8.count + 2)\"}}"),
        BodyCase(
            name: "JSON that is a number", body: "7", headers: ["Content-Type: application/json"],
            status: 400,
            answer: "{\"error\":{\"code\":\"bad_json\","
                + "\"message\":\"body is JSON, but neither an array nor an object\"}}"),
        BodyCase(
            name: "S01 NUL in an identifier, and in a property",
            body: goodLine(1) + "\n"
                + "{\"message_uid\":\"m\",\"type\":\"clicked\",\"device_id\":\"d\\u0000x\"}\n"
                + "{\"message_uid\":\"m\",\"type\":\"clicked\",\"props\":{\"n\":\"a\\u0000b\"}}\n"
                + goodLine(2),
            answer: "{\"received\":4,\"accepted\":3,\"rejected\":1,\"errors\":["
                + error(
                    2, "invalid_character", "device_id",
                    "field \\\"device_id\\\" has a NUL or half a surrogate pair") + "]}"),
        BodyCase(
            name: "S02 halves of surrogate pairs in properties",
            body: [#""\ud83d""#, #""\ude00\ud83d""#, #""ok \ud83d\ude00""#].enumerated().map {
                "{\"message_uid\":\"m\($0)\",\"type\":\"clicked\",\"props\":{\"t\":\($1)}}\n"
            }.joined(),
            answer: all(3)),
        BodyCase(
            name: "S07 one bad line among 99 good ones",
            body: (0..<99).map { goodLine($0) + "\n" }.joined()
                + "{\"message_uid\":null,\"type\":\"\"}",
            answer: "{\"received\":100,\"accepted\":99,\"rejected\":1,\"errors\":["
                + error(100, "missing_type", "type", "field \\\"type\\\" is missing or empty")
                + "]}"),
        BodyCase(
            name: "all bad", body: "x\n[]\n",
            answer: "{\"received\":2,\"accepted\":0,\"rejected\":2,\"errors\":["
                + error(1, "bad_json", nil, "line is not valid JSON at byte 0") + ","
                + error(2, "not_an_object", nil, "line is JSON but not an object") + "]}"),
        BodyCase(
            name: "strict, all good", body: two, target: "/v1/events?strict=1", answer: all(2)),
        BodyCase(
            name: "strict, one bad", body: two + "x", target: "/v1/events?strict=1", status: 400,
            answer: "{\"error\":{\"code\":\"rejected_lines\","
                + "\"message\":\"1 of 3 lines rejected; the others are stored\"},"
                + "\"received\":3,\"accepted\":2,\"rejected\":1,\"errors\":["
                + error(3, "bad_json", nil, "line is not valid JSON at byte 0") + "]}"),
    ]

    @Test(arguments: bodies) func everyBodyHasItsAnswer(body: BodyCase) throws {
        let fixture = try ServiceFixture()
        for encoded in [false, true] {
            let bytes = Array(body.body.utf8)
            if encoded, body.headers.contains(where: { $0.hasPrefix("Content-Encoding") }) {
                continue
            }
            let answer = try fixture.post(
                encoded ? Gzip.compress(bytes) : bytes, target: body.target,
                headers: body.headers + (encoded ? ["Content-Encoding: gzip"] : []))
            #expect(answer.status == body.status)
            #expect(answer.body == body.answer)
            #expect(answer.headers["content-type"] == "application/json")
        }
    }

    static let key = "Authorization: Bearer good\r\n"
    static let heads: [HeadCase] = [
        HeadCase(request: "GET /x HTTP/1.1\r\n", status: 404, code: "not_found"),
        HeadCase(request: "POST /v1/events/ HTTP/1.1\r\n", status: 404, code: "not_found"),
        HeadCase(request: "POST /v1%2Fevents HTTP/1.1\r\n", status: 404, code: "not_found"),
        HeadCase(request: "POST /v1/events%00 HTTP/1.1\r\n", status: 404, code: "not_found"),
        HeadCase(request: "GET /v1/events HTTP/1.1\r\n", status: 405, code: "method_not_allowed"),
        HeadCase(request: "POST /healthz HTTP/1.1\r\n", status: 405, code: "method_not_allowed"),
        // 415 before 401.
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nContent-Type: image/png\r\n", status: 415,
            code: "unsupported_content_type"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nContent-Encoding: br\r\n", status: 415,
            code: "unsupported_content_encoding"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nContent-Encoding: gzip, identity\r\n",
            status: 415, code: "unsupported_content_encoding"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nContent-Encoding: gzip\r\n"
                + "Content-Encoding: gzip\r\n", status: 415, code: "unsupported_content_encoding"),
        HeadCase(request: "POST /v1/events HTTP/1.1\r\n", status: 401, code: "missing_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer\r\n", status: 401,
            code: "missing_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Digest good\r\n", status: 401,
            code: "missing_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer bad\r\n", status: 401,
            code: "unknown_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer nowhere\r\n", status: 401,
            code: "unknown_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer old\r\n", status: 403,
            code: "revoked_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer reader\r\n", status: 403,
            code: "wrong_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer new-reader\r\n",
            status: 403, code: "wrong_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer dark\r\n", status: 503,
            code: "keys_unavailable"),
        // 401 before 413, 413 before the body.
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer bad\r\n"
                + "Content-Length: 99999999\r\n", status: 401, code: "unknown_key"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\n\(key)Content-Length: 99999999\r\n",
            status: 413, code: "body_too_large"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\nAuthorization: Bearer new\r\n"
                + "Content-Length: 99999999\r\n", status: 413, code: "body_too_large"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\n\(key)Content-Length: 1\r\n"
                + "Transfer-Encoding: chunked\r\n", status: 400, code: "malformed_request"),
        HeadCase(
            request: "POST /v1/events HTTP/1.1\r\n\(key)X: \(String(repeating: "x", count: 66_000))"
                + "\r\n", status: 431, code: "headers_too_large"),
        HeadCase(
            request: "GET /v1/reports/campaigns HTTP/1.1\r\n\(key)", status: 403,
            code: "wrong_key"),
    ]

    static let shared = try! ServiceFixture()

    @Test(arguments: heads) func everyHeadHasItsRefusal(head: HeadCase) throws {
        let client = try Self.shared.client()
        client.send(head.request + "Host: t\r\n\r\n")
        let answer = try client.answer()
        #expect(answer.status == head.status)
        #expect(answer.body.hasPrefix("{\"error\":{\"code\":\"\(head.code)\",\"message\":\""))
        #expect(answer.headers["content-type"] == "application/json")
        if head.status == 405 { #expect(answer.headers["allow"] != nil) }
        if head.status == 401 { #expect(answer.headers["www-authenticate"] != nil) }
        if head.status == 503 { try Self.expectRetry(answer) }
    }

    /// Header and body name the same number of seconds.
    static func expectRetry(_ answer: RawClient.Answer) throws {
        let seconds = try #require(answer.headers["retry-after"].flatMap { Int($0) })
        #expect(seconds >= 1)
        #expect(answer.body.hasSuffix(",\"retry_after\":\(seconds)}"))
    }

    @Test func theKeyMayComeInEveryForm() throws {
        for value in [
            "Bearer good", "bearer   good", "Basic Z29vZDo=", "Basic Z29vZDpwYXNz", "basic Z29vZDo",
            "Basic Omdvb2Q=", "Bearer new",
        ] {
            let answer = try Self.shared.post(
                Self.two, headers: ["Authorization: \(value)"])
            #expect(answer.body == Self.all(2), "\(value)")
        }
        for value in ["Basic Z29vZA", "Basic !", "Basic", "Basic  ", "good"] {
            let answer = try Self.shared.post(
                Self.two, headers: ["Authorization: \(value)"])
            #expect(answer.status == 401, "\(value)")
        }
    }

    @Test func aTooLargeBodyIsToldTheLimits() throws {
        let client = try Self.shared.client()
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\n\(Self.key)Content-Length: 99999999\r\n\r\n")
        #expect(
            try client.answer().body
                == "{\"error\":{\"code\":\"body_too_large\","
                + "\"message\":\"body is 99999999 bytes, limit is 10485760\","
                + "\"actual\":99999999,\"limit\":10485760,\"max_bytes\":10485760,"
                + "\"max_lines\":10000,\"max_line_bytes\":65536}}")
    }

    @Test func healthAndReadinessAndMetrics() throws {
        let fixture = try ServiceFixture()
        #expect(try fixture.get("/healthz").body == "{\"status\":\"ok\"}")
        #expect(try fixture.get("/readyz").body == "{\"status\":\"ready\"}")
        _ = try fixture.post(Self.two + "x\n")
        let metrics = try fixture.get("/metrics")
        #expect(metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        for line in [
            "tapline_lines_received_total 3", "tapline_lines_accepted_total 2",
            "tapline_lines_rejected_total{code=\"bad_json\"} 1",
            "tapline_http_responses_total{status=\"200\"} 3", "tapline_in_flight_bytes 0",
            "tapline_acknowledge_seconds_count 1",
        ] {
            #expect(metrics.body.split(separator: "\n").contains { $0 == line }, "\(line)")
        }
    }

    @Test func aRouteOfAnotherModuleIsServedUnderItsKey() throws {
        let answer = try Self.shared.get(
            "/v1/reports/campaigns", headers: ["Authorization: Bearer reader"])
        #expect(answer.body == "{\"app\":\"shop\"}")
        #expect(try Self.shared.get("/v1/reports/campaigns").status == 401)
    }

    // MARK: What is spooled

    @Test func oneRecordABodyHoldsItsCounts() throws {
        let fixture = try ServiceFixture()
        _ = try fixture.post(Self.two + "bad\n")
        _ = try fixture.post("bad\nbad\n")
        _ = try fixture.post("\n\n")
        let records = try fixture.records()
        #expect(records.map(\.received) == [3, 2])
        #expect(records.map(\.rejected) == [1, 2])
        #expect(try records.map { try $0.rows().count } == [2, 0])
        #expect(records.allSatisfy { $0.app == Array("shop".utf8) })
    }

    @Test func theHeaderXSentAtCorrectsTheClock() throws {
        let fixture = try ServiceFixture()
        let now = Clock.now() / 1_000_000
        // The device is an hour behind; the event is ten seconds old by its clock.
        let line =
            "{\"type\":\"clicked\",\"message_uid\":\"m\",\"occurred_at\":\(now - 3610)}"
        _ = try fixture.post(line, headers: ["X-Sent-At: \(now - 3600)"])
        _ = try fixture.post(line, headers: ["X-Sent-At: nonsense"])
        let rows = try fixture.records().flatMap { try $0.rows() }
        #expect(rows.map(\.timeRule) == [.corrected, .device])
        let age = rows[0].receivedAt - rows[0].eventTime
        #expect(abs(age - 10_000_000) <= 2_000_000)
    }

    @Test func chunkedBodiesAndContinueAreTaken() throws {
        let client = try Self.shared.client()
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\n\(Self.key)Transfer-Encoding: chunked\r\n\r\n")
        for byte in Self.two.utf8 { client.send(Array("1\r\n".utf8) + [byte] + Array("\r\n".utf8)) }
        client.send("0\r\n\r\n")
        #expect(try client.answer().body == Self.all(2))
        client.send(
            "POST /v1/events HTTP/1.1\r\nHost: t\r\n\(Self.key)Expect: 100-continue\r\n"
                + "Content-Length: \(Self.two.utf8.count)\r\n\r\n\(Self.two)")
        #expect(try client.answer().body == Self.all(2))
    }
}
