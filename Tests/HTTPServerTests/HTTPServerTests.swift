import HTTPServer
import HTTPTestClient
import Platform
import Testing

/// A request shape, and the status that it gets.
struct Shape: CustomTestStringConvertible, Sendable {
    var name: String
    var request: String
    var status: Int
    var testDescription: String { name }
}

@Suite struct HTTPServerTests {
    static let shapes: [Shape] = [
        Shape(name: "get", request: "GET /now HTTP/1.1\r\nHost: a\r\n\r\n", status: 200),
        Shape(name: "HTTP/1.0", request: "GET /now HTTP/1.0\r\n\r\n", status: 200),
        Shape(
            name: "length",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345",
            status: 200),
        Shape(
            name: "length 0",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            status: 200),
        Shape(name: "no length", request: "POST /count HTTP/1.1\r\nHost: a\r\n\r\n", status: 200),
        Shape(
            name: "header names in any case",
            request: "POST /count HTTP/1.1\r\nhOST: a\r\ncONTENT-lENGTH: 5\r\n\r\n12345",
            status: 200),
        Shape(
            name: "chunked",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
                + "3\r\nabc\r\n0\r\n\r\n", status: 200),
        Shape(
            name: "chunked with extension and trailer",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3;x=y\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", status: 200),
        Shape(
            name: "chunk size that is no number",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n",
            status: 400),
        Shape(
            name: "length and encoding",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 400),
        Shape(
            name: "two lengths",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
            status: 400),
        Shape(
            name: "two equal lengths",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
            status: 400),
        Shape(
            name: "list of lengths",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n12345",
            status: 400),
        Shape(
            name: "length with a sign",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n12345",
            status: 400),
        Shape(
            name: "encoding other than chunked",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            status: 400),
        Shape(
            name: "encoding with a second coding",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            status: 400),
        Shape(
            name: "two encodings",
            request:
                "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", status: 400),
        Shape(
            name: "chunked in HTTP/1.0",
            request: "POST /count HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            status: 400),
        Shape(
            name: "space before the colon",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n12345",
            status: 400),
        Shape(
            name: "two hosts", request: "GET /now HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            status: 400),
        Shape(name: "unknown path", request: "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", status: 404),
        Shape(
            name: "%2F is no slash", request: "GET %2Fnow HTTP/1.1\r\nHost: a\r\n\r\n", status: 404),
        Shape(name: "%6E is no n", request: "GET /%6Eow HTTP/1.1\r\nHost: a\r\n\r\n", status: 404),
        Shape(
            name: "%00 is no end", request: "GET /now%00x HTTP/1.1\r\nHost: a\r\n\r\n", status: 404),
        Shape(
            name: "announced length over the limit",
            request: "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 10485761\r\n\r\n",
            status: 413),
        Shape(
            name: "the handler refuses before the length is looked at",
            request: "POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 10485761\r\n\r\n",
            status: 401),
        Shape(
            name: "65 KiB of headers",
            request:
                "GET /now HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 66_000))\r\n\r\n",
            status: 431),
        Shape(
            name: "200 KiB of headers",
            request:
                "GET /now HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 200_000))\r\n\r\n",
            status: 431),
        Shape(
            name: "63 KiB in one header",
            request:
                "GET /now HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 64_500))\r\n\r\n",
            status: 200),
        Shape(
            name: "63 KiB in 60 headers",
            request:
                "GET /now HTTP/1.1\r\nHost: a\r\n"
                + (0..<60).map { "X-\($0): \(String(repeating: "x", count: 1040))\r\n" }.joined()
                + "\r\n", status: 200),
        Shape(
            name: "a handler that forgets", request: "GET /silent HTTP/1.1\r\nHost: a\r\n\r\n",
            status: 500),
        Shape(
            name: "deferred refusal",
            request: "POST /deferred-refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            status: 403),
        Shape(
            name: "deferred acceptance",
            request: "POST /deferred HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            status: 200),
        Shape(
            name: "answer inside the body",
            request:
                "POST /cap HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n01234567890123456789",
            status: 413),
    ]

    static let shared = try! TestServer()

    @Test(arguments: shapes) func everyShapeHasItsStatus(shape: Shape) throws {
        let answer = try Self.shared.answer(to: shape.request)
        #expect(answer.status == shape.status)
    }

    @Test func theWholeBodyArrivesInAnyCut() throws {
        let request = "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n"
        let client = try Self.shared.client()
        client.send(request)
        for _ in 0..<300 { client.send(String(repeating: "x", count: 1000)) }
        #expect(try client.answer().body == "{\"bytes\":300000}")
        client.send("POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<300 { client.send("3E8\r\n\(String(repeating: "x", count: 1000))\r\n") }
        client.send("0\r\n\r\n")
        #expect(try client.answer().body == "{\"bytes\":300000}")
    }

    @Test func aHeadRequestGetsTheLengthAlone() throws {
        let client = try Self.shared.client()
        client.send("HEAD /now HTTP/1.1\r\nHost: a\r\n\r\nGET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        let head = try client.answer(toHead: true)
        #expect(head.status == 200)
        #expect(head.headers["content-length"] == "2")
        #expect(try client.answer().body == "{}")
    }

    @Test func queryItemsAreDecodedAndThePathIsNot() throws {
        let answer = try Self.shared.answer(
            to: "GET /query?a=1&b=x%2Fy+z&c&d=%zz HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(answer.body == "a=1;b=x/y z;c=;d=%zz")
    }

    @Test func headersAreFoundInAnyCase() throws {
        let answer = try Self.shared.answer(
            to: "GET /header HTTP/1.1\r\nHost: a\r\nX-TEST:  a b \r\n\r\n")
        #expect(answer.body == "a b")
    }

    @Test func twoHundredPipelinedRequestsAreAnsweredInOrder() throws {
        let client = try Self.shared.client()
        var requests = ""
        for index in 0..<200 {
            let body = String(repeating: "x", count: index)
            requests += "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: \(index)\r\n\r\n\(body)"
        }
        client.send(requests)
        for index in 0..<200 {
            #expect(try client.answer().body == "{\"bytes\":\(index)}")
        }
    }

    @Test func aRefusedBodyIsReadAwayAndTheConnectionStays() throws {
        let client = try Self.shared.client()
        let body = String(repeating: "x", count: 500_000)
        for _ in 0..<3 {
            client.send("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n\(body)")
            #expect(try client.answer().status == 401)
        }
        client.send("POST /cap HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n\(body)")
        #expect(try client.answer().status == 413)
        client.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().status == 200)
    }

    @Test func aClientThatSendsAllOfATooLargeBodyStillReadsTheAnswer() throws {
        let client = try Self.shared.client()
        client.send("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n")
        let part = [UInt8](repeating: 65, count: 1_000_000)
        for _ in 0..<50 where !client.send(part) { break }
        let answer = try client.answer()
        #expect(answer.status == 413)
        #expect(answer.headers["connection"] == "close")
    }

    @Test func aChunkedBodyOverTheLimitIsRefused() throws {
        let server = try TestServer { configuration in
            configuration.bodyBytesMax = 1000
            configuration.discardBytesMax = 1000
        }
        let chunk = "64\r\n\(String(repeating: "x", count: 100))\r\n"
        let head = "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        // The limit itself fits.
        let client = try server.client()
        client.send(head + String(repeating: chunk, count: 10) + "0\r\n\r\n")
        #expect(try client.answer().status == 200)
        // A little over it is read away, and the connection stays.
        client.send(head + String(repeating: chunk, count: 15) + "0\r\n\r\n")
        #expect(try client.answer().status == 413)
        client.send("GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().status == 200)
        // Far over it ends the connection, after the answer.
        client.send(head + String(repeating: chunk, count: 1000))
        #expect(try client.answer().status == 413)
        #expect(try client.readToEnd() == "")
        server.server.stop(drainSeconds: 1)
    }

    @Test func expectContinueIsAnsweredBeforeTheBody() throws {
        let client = try Self.shared.client()
        client.send(
            "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        let first = try RawClient.interim(client)
        #expect(first == "HTTP/1.1 100 Continue")
        client.send("abc")
        #expect(try client.answer().body == "{\"bytes\":3}")
        // A refusal comes instead of it.
        client.send(
            "POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        #expect(try RawClient.interim(client).contains("401"))
    }

    @Test func aHundredKeepAliveClientsAreServedTogether() throws {
        let clients = try (0..<100).map { _ in try Self.shared.client() }
        for round in 0..<10 {
            let body = String(repeating: "x", count: round)
            for client in clients {
                client.send(
                    "POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: \(round)\r\n\r\n\(body)")
            }
            for client in clients {
                #expect(try client.answer().body == "{\"bytes\":\(round)}")
            }
        }
    }

    @Test func aServerOfSeveralThreadsServes() throws {
        let server = try TestServer { $0.threads = 3 }
        let clients = try (0..<20).map { _ in try server.client() }
        for client in clients {
            client.send("POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
        }
        for _ in clients { server.handler.takeWaiting().respond(.json(status: 200, "{}")) }
        for client in clients { #expect(try client.answer().status == 200) }
        server.server.stop(drainSeconds: 1)
    }

    /// libmicrohttpd must not be asked to end listening (`MHD_quiesce_daemon`): with epoll it aborts the
    /// process when one of its threads wakes at that moment, once in thousands of times.
    @Test func aServerStopsWhileClientsConnect() throws {
        for round in 0..<300 {
            let server = try TestServer { $0.threads = 4 }
            let clients = try (0..<round % 8).map { _ in try server.client() }
            server.server.stop(drainSeconds: 1)
            #expect(server.server.statistics.connections == 0)
            for client in clients { client.close() }
        }
    }
}

extension RawClient {
    /// The first line of the next answer, and nothing after its empty line.
    static func interim(_ client: RawClient) throws -> String {
        let text = try client.head()
        return text.split(separator: "\r\n").first.map(String.init) ?? ""
    }
}
