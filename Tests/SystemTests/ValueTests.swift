import Foundation
import Testing

extension SystemTests {
    /// What was sent is what is stored.
    @Suite struct ValueTests {
        /// Replaces what PostgreSQL cannot hold, keeps all else.
        @Test func halvesOfSurrogatePairsAndNULsAreReplacedInPropertiesOnly() throws {
            let app = try Shared.app()
            let before = try app.daemon.metric("tapline_lines_sanitized_total")
            try app.store([
                App.click("a", #","properties":{"t":"\ud83d"}"#),
                App.click("b", #","properties":{"t":"\ude00\ud83d"}"#),
                App.click("c", #","properties":{"t":"ok \ud83d\ude00 😀"}"#),
                App.click("d", #","properties":{"t":"a\u0000b","k\u0000":1}"#),
            ])
            let texts = try app.stored("properties::jsonb->>'t'").map { $0[0] }
            #expect(texts == ["\u{FFFD}", "\u{FFFD}\u{FFFD}", "ok 😀 😀", "a\u{FFFD}b"])
            #expect(try app.daemon.metric("tapline_lines_sanitized_total") == before + 3)
        }

        // S11
        @Test(arguments: [1, 999, 6553, 6554, 10_000])
        func textsOfAnyCharactersComeBackAsTheyWere(count: Int) throws {
            let app = try Shared.app()
            var random = Random(seed: 11)
            let alphabet: [String] = [
                "\\", "t", "n", "N", ".", "\"", "\t", "\r", "\n", "é", "😀", "\\.",
            ]
            func text() -> String {
                (0..<Int.random(in: 1...12, using: &random))
                    .map { _ in alphabet.randomElement(using: &random)! }.joined()
            }
            let fixed = ["\\.", "\\N", "\\b", "\t", "\r\n"]
            let texts = fixed.prefix(count) + (0..<max(0, count - fixed.count)).map { _ in text() }
            let lines = texts.enumerated().map { index, text in
                App.click(
                    "u\(index)",
                    #","campaign_id":\#(quote(text)),"properties":{"t":\#(quote(text))}"#,
                    device: text)
            }
            #expect(try app.store(lines)["accepted"] == .int(Int64(count)))
            let rows = try app.daemon.sql().rows(
                """
                SELECT device_id, campaign_id, properties::jsonb->>'t' FROM tapline.event
                WHERE app = '\(app.name)' ORDER BY substr(message_uid, 2)::int
                """)
            #expect(rows.map { $0[0] } == Array(texts))
            #expect(rows.allSatisfy { $0[0] == $0[1] && $0[0] == $0[2] })
        }

        // S21
        @Test func numbersAndNamesStayWhatTheyAre() throws {
            let app = try Shared.app()
            let ids = ["2147483648", "9223372036854775808", "\"12\"", "7"]
            try app.store(
                ids.enumerated().map {
                    App.click("m\($0.offset)", #","campaign_id":\#($0.element)"#)
                })
            let stored = try app.stored("campaign_id").map { $0[0] }
            #expect(stored == ["2147483648", "9223372036854775808", "12", "7"])
            let name = String(repeating: "k", count: 70)
            let properties = #"{"Aa":1,"aA":2,"message_uid":"x","\#(name)":9007199254740993}"#
            let other = try Shared.app()
            try other.store([
                App.click("m", #","properties":\#(properties),"unknown":{"a":[1.50,-0]}"#)
            ])
            let row = try other.stored("message_uid, properties")[0]
            #expect(row[0] == "m")
            let json = try #require(row[1])
            #expect(json.contains("9007199254740993") && json.contains("[1.50,-0]"))
            let parsed = try JSON(parsing: json.utf8)
            #expect(parsed.keys == ["Aa", "aA", "message_uid", name, "unknown"])
            #expect(parsed["Aa"] == .int(1) && parsed["aA"] == .int(2))
        }

        @Test func wordsAndFieldsHaveTheirOtherNames() throws {
            let app = try Shared.app()
            let id = "6F9619FF-8B86-D011-B42D-00C04FC964FF"
            try app.store([
                #"{"event":"ClickThru","message_uid":"\#(id)","device_id":"D","uuid":"\#(id)"}"#,
                #"{"kind":"pushReceived","message_uid":"b","activity_type":"t","activity_uid":"u"}"#,
                #"{"status":"inboxopen","inbox_message_uid":"c","device_id":"D","attributes":{"a":1}}"#,
                #"{"type":"cart.add","device_id":"z","time":"2026-01-01T00:00:00Z"}"#,
            ])
            let rows = try app.stored(
                "(SELECT name FROM tapline.event_type WHERE code = type), type_raw, message_uid, "
                    + "event_uid, campaign_id")
            let lower = id.lowercased()
            #expect(rows.contains(["clicked", "ClickThru", lower, lower, nil]))
            #expect(rows.contains(["received", "pushReceived", "b", nil, "t:u"]))
            #expect(rows.contains(["inbox_open", "inboxopen", "c", nil, nil]))
            #expect(rows.contains(["custom", "cart.add", nil, nil, nil]))
        }

        // S17
        struct Time: CustomTestStringConvertible, Sendable {
            let json: String
            /// The time it means; nil for one that is not believed, whose event gets our time.
            let meaning: Double?
            var testDescription: String { json }
            init(_ json: String, _ meaning: Double?) {
                self.json = json
                self.meaning = meaning
            }
        }

        static let yesterday = (Date().timeIntervalSince1970 - 86_400).rounded(.down)

        static let times: [Time] = {
            let seconds = Int(yesterday)
            let formatter = ISO8601DateFormatter()
            let text = formatter.string(from: Date(timeIntervalSince1970: yesterday))
            let local = formatter.string(from: Date(timeIntervalSince1970: yesterday + 19_800))
            let tomorrow = Int(Date().timeIntervalSince1970) + 14 * 86_400
            return [
                Time("\(seconds)", yesterday), Time("\(seconds)000", yesterday),
                Time("\(seconds)000000", yesterday), Time("\(seconds)000000000", yesterday),
                Time("\"\(seconds)\"", yesterday), Time("\"\(seconds)500\"", yesterday + 0.5),
                Time("\(seconds).25", yesterday + 0.25), Time("\"\(text)\"", yesterday),
                Time("\"\(text.dropLast()).123456789Z\"", yesterday + 0.123457),
                Time("\"\(local.dropLast())+05:30\"", yesterday),
                Time("-2147483648", nil), Time("0", nil), Time("1e18", nil), Time("1e300", nil),
                Time("\(tomorrow)", nil), Time("\"10013-12-10T01:09:46Z\"", nil),
                Time("\"-0025-01-01T23:01:01Z\"", nil), Time("\"9999-12-31T23:59:59Z\"", nil),
                Time("\"infinity\"", nil), Time("\"now\"", nil), Time("\"tomorrow\"", nil),
                Time("\"2026-02-30T00:00:00Z\"", nil), Time("\"55840-01-01T00:00:00Z\"", nil),
                Time("[]", nil), Time("true", nil), Time("\"\"", nil), Time("null", nil),
            ]
        }()

        @Test func absurdTimesAreKeptAndNotBelieved() throws {
            let app = try Shared.app()
            let lines = Self.times.enumerated().map {
                App.click(
                    String(format: "t%02d", $0.offset), #","occurred_at":\#($0.element.json)"#)
            }
            #expect(try app.store(lines)["accepted"] == .int(Int64(Self.times.count)))
            let rows = try app.stored(
                "time_rule, extract(epoch FROM event_time), event_time = received_at")
            for (time, row) in zip(Self.times, rows) {
                if let meaning = time.meaning {
                    #expect(row[0] == "0", "\(time.json)")
                    #expect(abs((Double(row[1] ?? "") ?? 0) - meaning) < 2e-6, "\(time.json)")
                } else {
                    #expect(row[0] == "2" && row[2] == "t", "\(time.json): \(row)")
                }
            }
        }

        @Test func aClockThatIsWrongIsCorrectedByTheTimeOfSending() throws {
            let app = try Shared.app()
            // The device's clock is 1000 days behind; the event was an hour before it was sent.
            let sent = Int(Date().timeIntervalSince1970) - 86_400_000
            let line = App.click("m", #","occurred_at":\#(sent - 3600)"#)
            let request = Request.events(line, key: app.key, query: "?ack=stored")
            _ = try app.daemon.send(request.with("X-Sent-At", "\(sent)"))
            let row = try app.stored(
                "time_rule, extract(epoch FROM received_at - event_time)::int, "
                    + "extract(epoch FROM occurred_at)::bigint")[0]
            #expect(row == ["1", "3600", "\(sent - 3600)"])
        }
    }
}
