import HTTPServer
import HTTPTestClient
import Testing

/// Requests whose end two servers could see at different places, each followed by another request on
/// the same connection.
@Suite struct SmugglingTests {
    struct Attack: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: String
        /// The statuses of all answers until the server closes the connection, or `refused`.
        let statuses: String

        /// - Parameters:
        ///   - statuses: `refused` is an error, after which nothing is read as a request. The library may
        ///     send an error of its own twice (0.9.75), or close without one where there is no HTTP.
        ///   - head: Without the final empty line.
        init(_ statuses: String, _ name: String, _ head: String, _ body: String = "") {
            testDescription = "\(statuses): \(name)"
            bytes = head + "\r\n\r\n" + body
            self.statuses = statuses
        }

        static func post(
            _ statuses: String, _ name: String, _ headers: String, _ body: String = ""
        ) -> Attack {
            Attack(statuses, name, "POST /count HTTP/1.1\r\nHost: a\r\n" + headers, body)
        }

        static func chunks(_ statuses: String, _ name: String, _ body: String) -> Attack {
            post(statuses, name, "Transfer-Encoding: chunked", body)
        }

        static func get(_ statuses: String, _ name: String, _ head: String) -> Attack {
            Attack(statuses, name, head)
        }
    }

    static let next = "GET /now HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    static let lengths: [Attack] = [
        .post("200 200", "the right length", "Content-Length: 3", "abc"),
        .post("200 200", "leading zeros", "Content-Length: 0003", "abc"),
        .post("200 refused", "shorter than the body", "Content-Length: 3", "abc{} "),
        .post("408", "longer than the body", "Content-Length: 5000", "abc"),
        .post("refused", "negative", "Content-Length: -3", "abc"),
        .post("refused", "hexadecimal", "Content-Length: 0x3", "abc"),
        .post("refused", "a fraction", "Content-Length: 3.0", "abc"),
        .post("refused", "an exponent", "Content-Length: 3e0", "abc"),
        .post("refused", "two numbers", "Content-Length: 3 3", "abc"),
        .post("refused", "a semicolon", "Content-Length: 3;", "abc"),
        .post("refused", "a wide digit", "Content-Length: \u{FF13}", "abc"),
        .post("refused", "empty", "Content-Length:", "abc"),
        .post("refused", "2^64 + 3", "Content-Length: 18446744073709551619", "abc"),
        .post("refused", "21 digits", "Content-Length: 000000000000000000003", "abc"),
        .post("refused", "a name before it", "Content-Length: x3", "abc"),
        .post("refused", "twice, different", "Content-Length: 3\r\nContent-Length: 4", "abc"),
        .post("refused", "twice, equal", "Content-Length: 3\r\nContent-Length: 3", "abc"),
        .post("refused", "a list", "Content-Length: 3, 3", "abc"),
        .post("refused", "an underscore is no hyphen", "Content_Length: 3\r\nContent-Length: x"),
        .post("refused", "a space before the colon", "Content-Length : 3", "abc"),
        // The library sees a value end at a NUL, and frames the body by what is before it.
        .post("200 200", "a NUL after it", "Content-Length: 3\0", "abc"),
        .post("200 200", "a NUL inside it", "Content-Length: 3\u{0}4", "abc"),
        .post("refused", "folded", "Content-Length:\r\n 3", "abc"),
        .post("refused", "folded after a digit", "Content-Length: 1\r\n\t3", "abc"),
        .post("refused", "a tab before the colon", "Content-Length\t: 3", "abc"),
    ]

    static let encodings: [Attack] = [
        .post("200 200", "chunked", "Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n"),
        .post("200 200", "after a tab", "Transfer-Encoding:\tchunked", "0\r\n\r\n"),
        .post(
            "refused", "length first", "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "0\r\n\r\n"),
        .post(
            "refused", "encoding first", "Transfer-Encoding: chunked\r\nContent-Length: 3",
            "0\r\n\r\n"),
        .post(
            "refused", "length and an encoding of no meaning",
            "Content-Length: 3\r\nTransfer-Encoding: x", "abc"),
        .post("refused", "twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        .post("refused", "chunked, chunked", "Transfer-Encoding: chunked, chunked", "0\r\n\r\n"),
        .post("refused", "identity", "Transfer-Encoding: identity", "abc"),
        .post("refused", "gzip, chunked", "Transfer-Encoding: gzip, chunked", "0\r\n\r\n"),
        .post("refused", "xchunked", "Transfer-Encoding: xchunked", "0\r\n\r\n"),
        .post("refused", "chunkedx", "Transfer-Encoding: chunkedx", "0\r\n\r\n"),
        .post("refused", "with a parameter", "Transfer-Encoding: chunked;q=1", "0\r\n\r\n"),
        .post("refused", "in quotes", "Transfer-Encoding: \"chunked\"", "0\r\n\r\n"),
        .post("refused", "after a vertical tab", "Transfer-Encoding: \u{B}chunked", "0\r\n\r\n"),
        .post("refused", "empty", "Transfer-Encoding:", "0\r\n\r\n"),
        .post("200 200", "a NUL after it", "Transfer-Encoding: chunked\0", "0\r\n\r\n"),
        .post("200 200", "a NUL inside it", "Transfer-Encoding: chunked\0x", "0\r\n\r\n"),
        .post("refused", "folded", "Transfer-Encoding:\r\n chunked", "0\r\n\r\n"),
        .post("refused", "a space before the colon", "Transfer-Encoding : chunked", "0\r\n\r\n"),
        Attack(
            "refused", "in HTTP/1.0",
            "POST /count HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked",
            "0\r\n\r\n"),
    ]

    static let chunked: [Attack] = [
        .chunks("200 200", "zeros before a size", "0003\r\nabc\r\n0\r\n\r\n"),
        .chunks("200 200", "a size in capitals", "A\r\n0123456789\r\n0\r\n\r\n"),
        .chunks("200 200", "an extension", "3;name=value\r\nabc\r\n0\r\n\r\n"),
        .chunks("200 200", "a quoted extension", "3;n=\"v\"\r\nabc\r\n0;x\r\n\r\n"),
        .chunks("200 200", "a trailer", "0\r\nX-Sum: 1\r\n\r\n"),
        .chunks("200 200", "a trailer that names a length", "0\r\nContent-Length: 500\r\n\r\n"),
        .chunks(
            "200 200", "a trailer that names an encoding",
            "0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        .chunks("refused", "no number", "xyz\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "a minus", "-3\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "a plus", "+3\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "0x", "0x3\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "empty", "\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "a space before", " 3\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "a letter after", "3g\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "too much for its size", "3\r\nabcd\r\n0\r\n\r\n"),
        .chunks("refused", "no line end after the data", "3\r\nabc0\r\n\r\n"),
        .chunks("408", "never ended", "fff\r\nabc"),
        .chunks("408", "2^64 - 1", "ffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
        .chunks("refused", "2^64 + 3", "10000000000000003\r\nabc\r\n0\r\n\r\n"),
    ]

    static let heads: [Attack] = [
        .get("200 200", "plain", "GET /now HTTP/1.1\r\nHost: a"),
        .get("200 200", "an absolute target", "GET http://a/now HTTP/1.1\r\nHost: a"),
        .get("200 200", "a value of bytes above 127", "GET /now HTTP/1.1\r\nHost: a\r\nX: é"),
        .get("200 200", "an empty value", "GET /now HTTP/1.1\r\nHost: a\r\nX:"),
        .get("refused", "no host", "GET /now HTTP/1.1\r\nX: 1"),
        .get("refused", "two hosts", "GET /now HTTP/1.1\r\nHost: a\r\nHost: a"),
        // The library ends these at the NUL before we see them. None of them frames a body.
        .get("200 200", "NUL in a value", "GET /now HTTP/1.1\r\nHost: a\r\nX: a\0b"),
        .get("200 200", "NUL in the target", "GET /now\0 HTTP/1.1\r\nHost: a"),
        .get(
            "200 200", "a line without a name is passed over", "GET /now HTTP/1.1\r\nHost: a\r\n: x"
        ),
        // The library takes it for the end of the name; of headers that frame a body it is refused.
        .get("200 200", "a folded value", "GET /now HTTP/1.1\r\nHost: a\r\nX: a\r\n b"),
        .get("refused", "NUL in a name", "GET /now HTTP/1.1\r\nHost: a\r\nX\0: a"),
        .get("refused", "a CR in a value", "GET /now HTTP/1.1\r\nHost: a\r\nX: a\rb"),
        .get("refused", "no colon", "GET /now HTTP/1.1\r\nHost: a\r\nX"),
        .get("refused", "a space in a name", "GET /now HTTP/1.1\r\nHost: a\r\nX Y: 1"),
        .get("refused", "a name in brackets", "GET /now HTTP/1.1\r\nHost: a\r\n[X]: 1"),
        .get("refused", "a space before the first name", "GET /now HTTP/1.1\r\n Host: a"),
        .get("refused", "only a target", "/now"),
        .get("refused", "no version", "GET /now\r\nHost: a"),
        .get("refused", "HTTP in small letters", "GET /now http/1.1\r\nHost: a"),
        .get("refused", "another protocol", "GET /now HTTX/1.1\r\nHost: a"),
        .get("refused", "HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM"),
        .get("refused", "HTTP/9.9", "GET /now HTTP/9.9\r\nHost: a"),
        .get("refused", "a TLS greeting", "\u{16}\u{3}\u{1}\u{1}\u{0}\u{1}"),
    ]

    @Test(arguments: lengths + encodings + chunked + heads)
    func whatFollowsIsReadAsARequestOnlyWhereAllAgree(attack: Attack) throws {
        let server = try TestServer {
            $0.bodyTimeoutMilliseconds = 300
            $0.headerTimeoutMilliseconds = 300
        }
        let client = try server.client()
        client.send(attack.bytes + Self.next)
        let text = try client.readToEnd()
        let statuses = text.components(after: "HTTP/1.1 ").map { $0.prefix(3) }
        let refusals: Set<Substring> = ["400", "413", "505"]
        var served = statuses[...]
        if attack.statuses.hasSuffix("refused") {
            while let last = served.last, refusals.contains(last) { served.removeLast() }
        }
        let expected = attack.statuses.split(separator: " ").filter { $0 != "refused" }
        #expect(Array(served) == expected, "\(text)")
        server.server.stop(drainSeconds: 1)
    }
}

extension String {
    /// What follows each occurrence of a text.
    fileprivate func components(after separator: String) -> [Substring] {
        var rest = self[...]
        var parts: [Substring] = []
        while let found = rest.firstRange(of: separator) {
            rest = rest[found.upperBound...]
            parts.append(rest)
        }
        return parts
    }
}
