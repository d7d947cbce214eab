import Foundation
import Testing

extension SystemTests {
    /// One bad line costs only itself.
    @Suite struct LineTests {
        struct BadLine: CustomTestStringConvertible, Sendable {
            let code: String
            let field: String?
            let line: [UInt8]
            var testDescription: String { "\(code) \(field ?? "") (\(line.count) bytes)" }

            init(_ code: String, _ field: String?, _ line: String) {
                self.code = code
                self.field = field
                self.line = Array(line.utf8)
            }

            init(_ code: String, bytes: [UInt8]) {
                self.code = code
                field = nil
                line = bytes
            }
        }

        private static func nested(_ depth: Int) -> String {
            // The line itself is one level, properties another.
            App.click(
                "deep\(depth)",
                #","properties":{"x":"#
                    + String(repeating: "[", count: depth - 2)
                    + String(repeating: "]", count: depth - 2) + "}")
        }

        private static func hex(_ count: Int) -> String {
            var random = Random(seed: UInt64(count))
            return String(
                (0..<count).map { _ in "0123456789abcdef".randomElement(using: &random)! })
        }

        static let badLines: [BadLine] = [
            // S01
            BadLine("invalid_character", "device_id", App.click("n", device: "d\u{0}x")),
            BadLine("invalid_character", "message_uid", App.click("n\u{0}")),
            // S02
            BadLine(
                "invalid_character", "device_id",
                #"{"type":"clicked","message_uid":"s","device_id":"\ud83d"}"#),
            BadLine(
                "invalid_utf8",
                bytes: Array(#"{"type":"clicked","message_uid":"u","properties":{"a":""#.utf8)
                    + [0xED, 0xA0, 0xBD] + Array("\"}}".utf8)),
            // S06
            BadLine(
                "line_too_long", nil, App.click("l", #","properties":{"a":"\#(hex(3 << 20))"}"#)),
            BadLine("line_too_long", nil, nested(1_000_000)),
            // S07
            BadLine("missing_type", "type", #"{"message_uid":null,"type":""}"#),
            BadLine(
                "missing_message_uid", "message_uid", #"{"message_uid":null,"type":"clicked"}"#),
            BadLine("no_identity", "occurred_at", #"{"type":"launch","device_id":"d"}"#),
            BadLine("no_identity", nil, #"{"type":"launch","occurred_at":1700000000}"#),
            // S19
            BadLine("field_too_long", "message_uid", App.click(hex(129))),
            BadLine("field_too_long", "device_id", App.click("f", device: hex(2700))),
            BadLine("field_too_long", "message_uid", App.click(hex(10_000))),
            BadLine("field_too_long", "type", #"{"type":"\#(hex(65))","message_uid":"t"}"#),
            // S21
            BadLine("invalid_type", "campaign_id", App.click("c", #","campaign_id":1.5"#)),
            BadLine("invalid_type", "campaign_id", App.click("c", #","campaign_id":1e3"#)),
            BadLine("invalid_type", "message_uid", #"{"type":"clicked","message_uid":true}"#),
            // S22
            BadLine("too_deep", nil, nested(65)), BadLine("too_deep", nil, nested(1000)),
            BadLine("too_deep", nil, nested(20_000)),
            BadLine("invalid_character", "type", #"{"type":"a b","message_uid":"t"}"#),
            BadLine("bad_json", nil, #"{"type":"clicked","message_uid":"j",}"#),
            BadLine("bad_json", nil, "{"), BadLine("not_an_object", nil, "[1]"),
            BadLine("number_too_large", nil, App.click("x", #","properties":{"n":1e100000}"#)),
        ]

        @Test(arguments: badLines) func oneBadLineInAThousandCostsOnlyItself(bad: BadLine) throws {
            let app = try Shared.app()
            var lines = (0..<999).map { Array(App.click("m\($0)").utf8) }
            lines.insert(bad.line, at: 516)
            let body = gzip(Array(lines.joined(separator: [0x0A])))
            var request = Request.events(body, key: app.key, query: "?ack=stored")
            request.headers.append(("Content-Encoding", "gzip"))
            for expected in [("accepted", 999), ("duplicates", 999)] {
                let answer = try app.daemon.send(request)
                #expect(answer.status == 200)
                let json = try answer.json
                #expect(json["received"] == .int(1000) && json["rejected"] == .int(1))
                #expect(json[expected.0] == .int(Int64(expected.1)), "\(answer.text)")
                #expect(json["errors"].items.count == 1)
                let error = json["errors"][0]
                #expect(error["line"] == .int(517) && error["code"] == .string(bad.code))
                #expect(error["field"].text == bad.field)
                #expect(error["message"].text?.isEmpty == false)
            }
            #expect(try app.count() == 999)
        }

        @Test func whatIsJustWithinALimitIsStored() throws {
            let app = try Shared.app()
            let frame = App.click("long", #","properties":{"a":""}"#).utf8.count
            let json = try app.store([
                Self.nested(64), App.click(Self.hex(128)), App.click("d", device: Self.hex(128)),
                App.click("long", #","properties":{"a":"\#(Self.hex(65_536 - frame))"}"#),
            ])
            #expect(json["accepted"] == .int(4), "\(json)")
        }
    }
}
