import Foundation
import Testing

extension SystemTests {
    /// The table of statuses, and who may do what.
    @Suite struct StatusTests {
        /// Every refusal is JSON with a code and a message.
        static func expectRefusal(
            _ answer: Answer, _ status: Int, sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
            #expect(answer.header("content-type") == "application/json")
            let error = try answer.json["error"]
            #expect(error["code"].text?.isEmpty == false, "\(answer.text)")
            #expect(error["message"].text?.isEmpty == false, "\(answer.text)")
            #expect(!answer.text.contains("\n"))
            if [429, 503, 507].contains(status) {
                let header = try #require(answer.header("retry-after").flatMap { Int($0) })
                let member = try #require(try answer.json["retry_after"].number)
                #expect(header >= 1 && member > 0 && abs(Double(header) - member) <= 1)
            }
        }

        struct Refused: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let status: Int
            let request: @Sendable (String) -> Request

            init(
                _ status: Int, _ name: String, _ request: @escaping @Sendable (String) -> Request
            ) {
                self.status = status
                testDescription = "\(status) \(name)"
                self.request = request
            }
        }

        static let refused: [Refused] = [
            Refused(401, "no key") { _ in .events("{}", key: nil) },
            Refused(401, "unknown key") { _ in .events("{}", key: "nobody") },
            Refused(401, "empty key") { _ in .events("{}", key: "") },
            Refused(401, "unknown scheme") {
                Request.events("{}", key: nil).with("Authorization", "Digest \($0)")
            },
            Refused(404, "path") { .get("/v2/events", key: $0) },
            Refused(404, "path below") { Request(target: "/v1/events/x", key: $0) },
            Refused(404, "escaped path") { Request(target: "/v1%2Fevents", key: $0) },
            Refused(415, "content type") {
                Request.events("{}", key: $0).with("Content-Type", "text/csv")
            },
            Refused(415, "br") {
                Request.events("{}", key: $0).with("Content-Encoding", "br")
            },
            Refused(415, "two codings") {
                Request.events("{}", key: $0).with("Content-Encoding", "gzip, gzip")
            },
            Refused(400, "plain text as gzip") {
                Request.events("{}", key: $0).with("Content-Encoding", "gzip")
            },
            Refused(413, "lines") {
                .events(String(repeating: "{}\n", count: 10_001), key: $0)
            },
            Refused(413, "inflated") {
                Request.events([UInt8](repeating: 0x20, count: (10 << 20) + 1), key: $0).gzipped
            },
            Refused(413, "chunked") {
                var request = Request.events(
                    [UInt8](repeating: 0x20, count: (10 << 20) + 1), key: $0)
                request.chunkBytes = 1 << 20
                return request
            },
            Refused(431, "headers") {
                Request.events("{}", key: $0).with("X", String(repeating: "x", count: 70_000))
            },
        ]

        @Test(arguments: refused) func aRefusalSaysWhyInJSON(refused: Refused) throws {
            let app = try Shared.app()
            let connection = try app.daemon.connect()
            // A daemon that refuses early may close while the rest is still being sent.
            try? connection.send(refused.request(app.key).bytes)
            let answer = try connection.answer()
            try Self.expectRefusal(answer, refused.status)
            if refused.status == 413 {
                let error = try answer.json["error"]
                for limit in ["max_bytes", "max_lines", "max_line_bytes"] {
                    #expect(error[limit].int ?? 0 > 0, "\(answer.text)")
                }
            }
            if refused.status == 401 { #expect(answer.header("www-authenticate") != nil) }
            #expect(try app.storedCount() == 0)
        }

        @Test func aLengthOverTheLimitIsRefusedBeforeTheBodyIsSent() throws {
            let app = try Shared.app()
            let connection = try app.daemon.connect()
            try connection.send(
                "POST /v1/events HTTP/1.1\r\nHost: l\r\nAuthorization: Bearer \(app.key)\r\n"
                    + "Content-Length: 52428800\r\n\r\n")
            try Self.expectRefusal(try connection.answer(), 413)
        }

        @Test(arguments: ["GET", "PUT", "DELETE", "PATCH"])
        func anotherMethodIsToldWhatIsAllowed(method: String) throws {
            let app = try Shared.app()
            let answer = try app.daemon.send(
                Request(method: method, target: "/v1/events", key: app.key))
            try Self.expectRefusal(answer, 405)
            #expect(answer.header("allow")?.contains("POST") == true)
        }

        @Test(arguments: [
            "Content-Length: 2\r\nTransfer-Encoding: chunked",
            "Content-Length: 2\r\nContent-Length: 3",
            "Transfer-Encoding: gzip", "Content-Length: +2", "Content-Length: 2, 2",
        ]) func aHeadThatTwoServersCouldReadDifferentlyIsRefused(headers: String) throws {
            let app = try Shared.app()
            let connection = try app.daemon.connect()
            try connection.send(
                "POST /v1/events HTTP/1.1\r\nHost: l\r\nAuthorization: Bearer \(app.key)\r\n"
                    + headers + "\r\n\r\n{}")
            // What follows the head is not read as another request: the connection ends.
            let text = try connection.rest()
            #expect(text.hasPrefix("HTTP/1.1 400 ") && !text.contains("HTTP/1.1 2"), "\(text)")
            #expect(try app.storedCount() == 0)
        }

        @Test func slowBodiesAndHeadsAreCutOff() throws {
            let shared = try Shared.daemon
            let daemon = try Daemon(
                database: shared.conninfo,
                settings: ["http.body_timeout": "1s", "http.header_timeout": "1s"])
            try daemon.start()
            let app = try App(daemon)
            let body = try daemon.connect()
            try body.send(Request.events(App.click("m"), key: app.key).head)
            let head = try daemon.connect()
            try head.send("POST /v1/events HTTP/1.1\r\nHost: l\r\n")
            try Self.expectRefusal(try body.answer(), 408)
            #expect(try body.isAtEnd())
            let answer = try? head.answer()
            #expect(answer == nil || answer?.status == 408)
            #expect(try head.isAtEnd())
            #expect(try app.post(App.click("m")).status == 200)
            #expect(try daemon.stop() == .code(0))
        }

        @Test(arguments: [
            (429, "http.key_requests_per_second_max", "5"),
            (503, "http.in_flight_bytes_max", "1MiB"),
        ]) func whatIsTooMuchNowMayBeSentAgain(status: Int, name: String, value: String) throws {
            let shared = try Shared.daemon
            let daemon = try Daemon(database: shared.conninfo, settings: [name: value]).start()
            let app = try App(daemon)
            let text = App.click("m") + String(repeating: "\n", count: status == 503 ? 2 << 20 : 1)
            var refusal: Answer?
            for _ in 0..<50 where refusal == nil {
                let answer = try app.post(text)
                if answer.status != 200 { refusal = answer }
            }
            try Self.expectRefusal(try #require(refusal), status)
            try until("a small body is taken again") {
                try app.post(App.click("m")).status == 200 ? true : nil
            }
            #expect(try app.storedCount() == 1)
            #expect(try daemon.stop() == .code(0))
        }

        // MARK: S04

        @Test func bombsAreRefusedInBoundedMemory() throws {
            let app = try Shared.app()
            let process = try #require(app.daemon.process)
            var bomb = Request.events(
                gzip([UInt8](repeating: 0, count: 400 << 20), level: 1), key: app.key)
            bomb.headers.append(("Content-Encoding", "gzip"))
            bomb.chunkBytes = 65_536
            let bytes = bomb.bytes
            let before = process.memory("VmRSS")
            let port = app.daemon.port
            let answers = Answers()
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                answers.add {
                    let connection = try Connection(port: port)
                    try? connection.send(bytes)
                    return try connection.answer()
                }
            }
            #expect(answers.statuses == [Int](repeating: 413, count: 8))
            #expect(process.memory("VmHWM") - before < 160 << 20)
            #expect(try app.post(App.click("m")).status == 200)
            // The key comes first: nothing is inflated for a stranger.
            bomb.key = "nobody"
            let connection = try app.daemon.connect()
            try? connection.send(bomb.bytes)
            #expect(try connection.answer().status == 401)
        }
    }
}

/// Answers collected from several threads.
final class Answers: @unchecked Sendable {
    private let lock = NSLock()
    private(set) var statuses: [Int] = []
    private(set) var bodies: [JSON] = []

    func add(_ body: () throws -> Answer) {
        do {
            let answer = try body()
            let json = (try? answer.json) ?? .null
            lock.withLock {
                statuses.append(answer.status)
                bodies.append(json)
            }
        } catch {
            lock.withLock { bodies.append(.string("\(error)")) }
        }
    }
}
