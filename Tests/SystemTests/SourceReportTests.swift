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

        private func rows(_ app: App, _ options: [String]) throws -> [String: JSON] {
            let report = try ReportTests.json(app, options)
            let dimension = options[1].split(separator: ",").last.map(String.init) ?? ""
            return Dictionary(
                report["campaigns"].items.map { ($0[dimension].text ?? "-", $0) }
                    + [("totals", report["totals"])]
            ) { $1 }
        }

        private func counts(_ row: JSON?, _ names: [String]) -> [Int64?] {
            names.map { row?[$0].int }
        }

        /// A log of sends with nothing but message ids gives the right denominators, whenever it comes.
        @Test(arguments: [true, false]) func aBulkLogOfMessageIdsGivesTheDenominators(
            isFirst: Bool
        ) throws {
            let app = try Shared.app()
            // Ten messages to a device each; one to two devices.
            let log =
                (0..<10).map { #"{"type":"sent","message_uid":"m\#($0)","campaign_id":"c"}"# }
                + [8, 9].map { #"{"type":"failed","message_uid":"m\#($0)"}"# }
            if isFirst { try app.store(log) }
            try app.store(
                (0..<6).map {
                    #"{"type":"received","message_uid":"m\#($0)","device_id":"d\#($0)"}"#
                } + [App.click("m0", device: "d0"), App.click("m8", device: "d8")])
            if !isFirst { try app.store(log) }
            // Again, as after a crash of who sends it.
            try app.store(log)
            let row = try #require(try rows(app, ["--by", "campaign"])["totals"])
            #expect(try rows(app, ["--by", "campaign"]).count == 2, "one campaign")
            #expect(
                counts(
                    row,
                    ["sent", "failed", "accepted", "delivered", "clicked", "failed_but_clicked"])
                    == [10, 2, 9, 7, 2, 1])
            #expect(
                counts(row["ctr_sent"], ["numerator", "denominator"]) == [2, 10]
                    && counts(row["ctr_accepted"], ["numerator", "denominator"]) == [2, 9])
            // To two devices: nobody knows how many were sent, and the report says so.
            try app.store([App.click("m1", device: "other")])
            let unsure = try #require(try rows(app, ["--by", "campaign"])["totals"])
            #expect(unsure["sent"] == .null && unsure["delivered"] == .int(8))
            #expect(unsure["flags"].items.contains(.string("sent_without_device")))
        }

        /// Two SDKs in one app that report the same messages, and some of their own.
        @Test func whatTwoProvidersReportIsToldApartAndCountedOnce() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            func send(_ request: Request) throws {
                let answer = try app.daemon.send(request)
                #expect(answer.status == 200, "\(answer.text)")
            }
            func vibes(_ message: String, _ type: String) throws {
                try send(
                    source.request(
                        "/mobile_apps/\(source.pathPart)/devices/d/events",
                        """
                        {"events":[{"uuid":"\(type)-\(message)","type":"\(type)",
                        "timestamp":"2026-11-20T06:10:00Z","attributes":{"message_uid":"\(message)"}}]}
                        """, key: "MobileAppToken", headers: SourceTests.android))
            }
            func pushwoosh(_ message: String, _ method: String) throws {
                try send(
                    source.request(
                        "/json/1.3/\(method)",
                        """
                        {"request":{"application":\(quote(source.alias)),"hwid":"d","hash":"\(message)"}}
                        """, key: nil))
            }
            for message in ["both", "vibes"] {
                try vibes(message, "push_receive")
                try vibes(message, "clickthru")
            }
            for message in ["both", "pushwoosh"] {
                try pushwoosh(message, "messageDeliveryEvent")
                try pushwoosh(message, "pushStat")
            }
            try app.daemon.waitUntilLoaded()
            let names = ["delivered", "observed", "clicked"]
            let rows = try rows(app, ["--by", "provider"])
            #expect(counts(rows["totals"], names) == [3, 3, 3])
            // It belongs to whoever reported it first.
            #expect(counts(rows["vibes"], names) == [2, 2, 2], "\(rows)")
            #expect(counts(rows["pushwoosh"], names) == [1, 1, 1], "\(rows)")
            #expect(
                try app.daemon.sql().int(
                    "SELECT count(*) FROM tapline.conflict WHERE app = '\(app.name)'") == 0)
        }

        /// An app that forgets to hand taps on to the SDK of Mapp is found, by the version that does.
        @Test func anAppThatKeepsTapsFromMappIsFound() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            func time(_ second: Int) -> String {
                "\(1_795_000_000 + second)"
            }
            var lines: [String] = []
            for (version, device) in [("1.0", "a"), ("2.0", "b")] {
                for number in 0..<40 {
                    let device = "\(device)\(number)"
                    lines.append(
                        #"{"type":"received","message_uid":"900","device_id":"\#(device)","app_version":"\#(version)","campaign_id":42,"provider":"mapp","occurred_at":\#(time(0))}"#
                    )
                    if number < 10 {
                        lines.append(
                            #"{"type":"launch","device_id":"\#(device)","app_version":"\#(version)","occurred_at":\#(time(20 + number))}"#
                        )
                    }
                }
            }
            try app.store(lines)
            func push(_ device: String, _ type: Int) throws {
                let answer = try app.daemon.send(
                    source.request(
                        "/api/push/event",
                        """
                        {"event_type":\(type),"message_id":900,"user_id":"\(device)","sendout_id":42}
                        """, key: "X_KEY"))
                #expect(answer.status == 200)
            }
            for number in 0..<10 {
                // Version 1 hands on that a message was dismissed, and no tap.
                if number > 7 { try push("a\(number)", 1) }
                try push("b\(number)", 0)
            }
            try app.daemon.waitUntilLoaded()
            let rows = try rows(app, ["--by", "app_version", "--journeys", "always"])
            func flags(_ version: String) -> [JSON] { rows[version]?["flags"].items ?? [] }
            #expect(flags("1.0").contains(.string("taps_not_forwarded")), "\(rows)")
            #expect(!flags("2.0").contains(.string("taps_not_forwarded")), "\(rows)")
            #expect(rows["2.0"]?["clicked"] == .int(10) && rows["1.0"]?["dismissed"] == .int(2))
            let table = try ReportTests.report(
                app, ["--by", "app_version", "--journeys", "always"])
            #expect(table.contains("The app does not hand taps to the SDK."), "\(table)")
        }
    }
}
