import Foundation
import Testing

extension SystemTests {
    /// From the requests of sources to the numbers of a report.
    @Suite struct SourceReportTests {
        @Test func theNumbersOfAReportAreThoseOfTheSources() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            var lines: [String] = []
            for number in 0..<10 {
                for (campaign, message) in [
                    ("B:1", "v\(number)"), ("42", "m\(number)"), ("pw", "p\(number)"),
                ] {
                    lines.append(
                        #"{"type":"sent","message_uid":"\#(message)","campaign_id":"\#(campaign)","device_id":"d\#(number)"}"#
                    )
                }
            }
            try app.store(lines)
            func send(_ request: Request) throws {
                let answer = try app.daemon.send(request)
                #expect(answer.status == 200, "\(answer.text)")
            }
            func vibes(_ number: Int, _ type: String) throws {
                // Sent twice, as after an answer that was lost.
                for _ in 0..<2 {
                    try send(
                        source.request(
                            "/mobile_apps/\(source.pathPart)/devices/d\(number)/events",
                            """
                            {"events":[{"uuid":"\(type)\(number)","type":"\(type)","attributes":{
                            "message_uid":"v\(number)","activity_type":"B","activity_uid":"1"}}]}
                            """, key: "MobileAppToken", headers: SourceTests.android))
                }
            }
            for number in 0..<8 { try vibes(number, "push_receive") }
            for number in 0..<3 { try vibes(number, "clickthru") }
            for (number, type) in [(0, 0), (1, 0), (1, 0), (2, 1), (3, 2)] {
                try send(
                    source.request(
                        "/api/push/event",
                        """
                        {"event_type":\(type),"message_id":"m\(number)","user_id":"d\(number)","sendout_id":42}
                        """, key: "X_KEY"))
            }
            for number in 0..<4 {
                for method in ["messageDeliveryEvent", "pushStat"]
                where method != "pushStat" || number < 1 {
                    try send(
                        source.request(
                            "/json/1.3/\(method)",
                            """
                            {"request":{"application":\(quote(source.alias)),"hwid":"d\(number)","hash":"p\(number)"}}
                            """, key: nil))
                }
            }
            try app.daemon.waitUntilLoaded()
            let report = try ReportTests.json(app)
            func row(_ campaign: String) throws -> [JSON] {
                let rows = report["campaigns"].items.filter {
                    $0["campaign_id"] == .string(campaign)
                }
                let row = try #require(rows.first)
                return ["sent", "delivered", "clicked", "clicks_total", "dismissed", "actions"].map
                { row[$0] }
            }
            #expect(try row("B:1") == [10, 8, 3, 3, 0, 0].map { JSON.int($0) })
            #expect(try row("42") == [10, 4, 2, 2, 1, 1].map { JSON.int($0) }, "\(report)")
            #expect(try row("pw") == [10, 4, 1, 1, 0, 0].map { JSON.int($0) })
        }

        /// A send without a device, a receipt through an alias, and an opening that names only its inbox
        /// message are one unit; and receipts of iOS are told to be biased.
        @Test func whatEachSideKnowsOfAMessageComesTogether() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            try app.store([#"{"type":"sent","message_uid":"v","campaign_id":"late:1"}"#])
            let path = "/mobile_apps/\(source.pathPart)/devices/d/events"
            func send(_ event: String) throws {
                let answer = try app.daemon.send(
                    source.request(
                        path, "{\"events\":[\(event)]}", key: "MobileAppToken",
                        headers: SourceTests.ios))
                #expect(answer.status == 200, "\(answer.text)")
            }
            try send(
                #"{"uuid":"o","type":"inbox_open","attributes":{"inbox_message_uid":"I"}}"#)
            try send(
                """
                {"uuid":"r","type":"push_receive","attributes":{"client_app_data":
                "{\\"message_uid\\":\\"v\\",\\"inbox_message_uid\\":\\"I\\"}"}}
                """)
            try app.daemon.waitUntilLoaded()
            let rows = try ReportTests.json(app)["campaigns"].items
            #expect(rows.count == 1, "\(rows)")
            let row = try #require(rows.first)
            #expect(row["campaign_id"] == .string("late:1"))
            let counts = ["sent", "delivered", "inbox_opened"].map { row[$0] }
            #expect(counts == [.int(1), .int(1), .int(1)], "\(row)")
            #expect(row["flags"].items.contains(.string("receipt_biased")), "\(row)")
        }
    }
}
