import Foundation
import Testing

extension SystemTests {
    /// What a body may look like on the wire.
    @Suite struct BodyTests {
        static let lines = (0..<3).map { App.click("m\($0)") }
        static let text = lines.joined(separator: "\n") + "\n"

        /// A way to send the three lines.
        struct Shape: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let change: @Sendable (inout Request) -> Void

            init(_ name: String, _ change: @escaping @Sendable (inout Request) -> Void) {
                testDescription = name
                self.change = change
            }

            static func header(_ name: String, _ value: String) -> Shape {
                Shape("\(name): \(value)") { $0 = $0.with(name, value) }
            }

            static func coding(_ value: String) -> Shape {
                Shape("Content-Encoding: \(value)") {
                    $0 = $0.gzipped.with("Content-Encoding", value)
                }
            }

            static func body(_ name: String, _ body: String, json: Bool = false) -> Shape {
                Shape(name) {
                    $0.body = Array(body.utf8)
                    if json { $0 = $0.with("Content-Type", "application/json") }
                }
            }
        }

        static let shapes: [Shape] = [
            Shape("no Content-Type") { $0.headers = [] },
            .header("Content-Type", "application/ndjson"),
            .header("Content-Type", "application/jsonl"),
            .header("Content-Type", "text/plain; charset=utf-8"),
            .header("content-type", "Application/X-NDJSON"),
            .coding("gzip"), .coding("GZIP"), .coding("x-gzip"),
            Shape("chunks of one byte") { $0.chunkBytes = 1 },
            Shape("gzip in chunks") {
                $0 = $0.gzipped
                $0.chunkBytes = 7
            },
            Shape("zeros after gzip") {
                $0 = $0.gzipped
                $0.body += [UInt8](repeating: 0, count: 512)
            },
            .body("CRLF", text.replacing("\n", with: "\r\n")),
            .body("BOM", "\u{FEFF}" + text),
            .body("no last newline", String(text.dropLast())),
            .body("blank lines", "\n \n" + text.replacing("\n", with: "\n\n\t\n") + "\n"),
            .body("array", "[" + lines.joined(separator: ",") + "]", json: true),
            .body("array on lines", "[\n" + lines.joined(separator: ",\n") + "\n]\n", json: true),
        ]

        @Test(arguments: shapes) func everyShapeOfABodyIsTheSameEvents(shape: Shape) throws {
            let app = try Shared.app()
            var request = Request.events(Self.text, key: app.key, query: "?ack=stored")
            shape.change(&request)
            let answer = try app.daemon.send(request)
            #expect(answer.status == 200)
            #expect(answer.header("content-type") == "application/json")
            let json = try answer.json
            #expect(json["received"] == .int(3) && json["accepted"] == .int(3))
            #expect(json["rejected"] == .int(0) && json["errors"].items.isEmpty)
            #expect(try app.stored("message_uid").map { $0[0] } == ["m0", "m1", "m2"])
        }

        @Test func onePrettyPrintedObjectIsOneEvent() throws {
            let app = try Shared.app()
            let body =
                "{\n  \"type\": \"clicked\",\n  \"message_uid\": \"m\",\n  \"device_id\": \"d\"\n}"
            let request = Request.events(body, key: app.key).with(
                "Content-Type", "application/json")
            let json = try app.daemon.send(request).json
            #expect(json["received"] == .int(1) && json["accepted"] == .int(1))
        }

        @Test func aClientThatExpectsContinueIsToldToGoOn() throws {
            let app = try Shared.app()
            let request = Request.events(Self.text, key: app.key).with("Expect", "100-continue")
            let connection = try app.daemon.connect()
            try connection.send(request.head)
            #expect(try connection.answer(takesContinue: true).status == 100)
            try connection.send(request.body)
            #expect(try connection.answer().json["accepted"] == .int(3))
        }

        @Test func pipelinedRequestsAreAnsweredInOrder() throws {
            let app = try Shared.app()
            let connection = try app.daemon.connect()
            let bodies = (1...20).map { count in
                (0..<count).map { App.click("p\($0)") }.joined(separator: "\n")
            }
            try connection.send(bodies.flatMap { Request.events($0, key: app.key).bytes })
            for count in 1...20 {
                #expect(try connection.answer().json["received"] == .int(Int64(count)))
            }
            #expect(try app.storedCount() == 20)
        }

        @Test func everyMemberOfAGzipBodyIsRead() throws {
            let app = try Shared.app()
            let connection = try app.daemon.connect()
            let text = Array(Self.text.utf8)
            for cut in 0...text.count {
                var request = Request.events(Self.text, key: app.key).gzipped
                request.body = gzip(text[..<cut]) + gzip(text[cut...])
                try connection.send(request.bytes)
                let json = try connection.answer().json
                #expect(json["accepted"] == .int(3) && json["received"] == .int(3), "cut at \(cut)")
            }
            #expect(try app.storedCount() == 3)
        }

        @Test func ofABrokenGzipBodyNothingIsStored() throws {
            let app = try Shared.app()
            let whole = gzip(Self.text)
            var bodies = (0..<whole.count).dropFirst().map { Array(whole[..<$0]) }
            for index in 10..<whole.count {
                bodies.append(whole)
                bodies[bodies.count - 1][index] ^= 0x55
            }
            bodies.append(whole + Array("garbage".utf8))
            bodies.append(whole + whole.dropLast())
            bodies.append(Array(Self.text.utf8))
            for body in bodies {
                var request = Request.events(body, key: app.key)
                request.headers.append(("Content-Encoding", "gzip"))
                let answer = try app.daemon.send(request)
                #expect(answer.status == 400, "\(body.count) of \(whole.count) bytes")
                #expect(try answer.json["error"]["code"] == .string("bad_gzip"))
            }
            #expect(try app.storedCount() == 0)
        }

        @Test func gzipWithoutItsHeaderIsRefused() throws {
            let app = try Shared.app()
            let answer = try app.post(gzip(Self.text))
            #expect(answer.status == 400)
            #expect(try app.storedCount() == 0)
        }

        @Test(arguments: ["[{}", "{\"a\":", "nonsense", "[1,", "{} {}", "[] x"])
        func jsonThatCannotBeReadIsRefused(body: String) throws {
            let app = try Shared.app()
            let request = Request.events(body, key: app.key).with(
                "Content-Type", "application/json")
            #expect(try app.daemon.send(request).status == 400)
        }

        @Test(arguments: ["", "\n", "\r\n \n\t\n"]) func aBlankBodyIsZeroEvents(body: String) throws
        {
            let answer = try Shared.app().post(body)
            #expect(answer.status == 200)
            #expect(try answer.json["received"] == .int(0))
            #expect(try answer.json["accepted"] == .int(0))
        }

        @Test func strictAnswers400AndStoresTheGoodLines() throws {
            let app = try Shared.app()
            let answer = try app.post(Self.text + "{}\n", query: "?strict=1")
            #expect(answer.status == 400)
            let json = try answer.json
            #expect(json["received"] == .int(4) && json["accepted"] == .int(3))
            #expect(json["errors"][0]["line"] == .int(4))
            #expect(try app.storedCount() == 3)
            #expect(try app.post(Self.text, query: "?strict=1").status == 200)
        }

        @Test func theListOfErrorsIsCapped() throws {
            let answer = try Shared.app().post(String(repeating: "x\n", count: 150))
            #expect(answer.status == 200)
            let json = try answer.json
            #expect(json["received"] == .int(150) && json["rejected"] == .int(150))
            #expect(json["errors"].items.count == 100)
            #expect(json["errors_truncated"] == .bool(true))
        }

        @Test func linesAreCountedAsTheyAreInTheFile() throws {
            let answer = try Shared.app().post("\n\r\n\(Self.lines[0])\n\n{\"type\":\"\"}\n")
            #expect(try answer.json["errors"][0]["line"] == .int(5))
        }
    }
}
