import Foundation
import Testing

extension SystemTests {
    /// From what sources say of devices and categories to the numbers of a report.
    @Suite struct SourceDeviceReportTests {
        /// The rows of a report by a dimension: delivered and clicked of each value, `-` for none.
        static func rows(_ app: App, by dimension: String, _ options: [String] = []) throws
            -> [String:
            [Int64?]]
        {
            try app.daemon.waitUntilLoaded()
            let report = try ReportTests.json(app, ["--by", dimension] + options)
            var rows: [String: [Int64?]] = [:]
            for row in report["campaigns"].items {
                rows[row[dimension].text ?? "-"] = [row["delivered"].int, row["clicked"].int]
            }
            return rows
        }

        static func line(_ type: String, _ message: String, _ device: String) -> String {
            #"{"type":"\#(type)","message_uid":"\#(message)","device_id":"\#(device)"}"#
        }

        static func send(_ source: SourceApp, _ request: Request) throws {
            let answer = try source.app.daemon.send(request)
            guard answer.status == 200 else {
                throw Failure("\(request.target): \(answer.status) \(answer.text)", isFinal: true)
            }
        }

        @Test func aReportByADimensionHasWhatWasTrueOfTheDeviceAtTheEvent() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            func send(_ request: Request) throws { try Self.send(source, request) }
            func notiPilot(_ call: String, _ attributes: String) throws {
                try send(
                    source.request(
                        "/api/v1/\(call)-device",
                        """
                        {"app_id":\(quote(source.alias)),"device_uid":"N","platform":"ios",
                        "provider":null,"attributes":{\(attributes)}}
                        """, key: nil))
            }
            // NotiPilot: its events come as our lines, which say nothing of the device.
            try notiPilot("register", #""locale":"de","app_version":"1.0","country":null"#)
            try app.store([Self.line("received", "n1", "N"), Self.line("clicked", "n1", "N")])
            try notiPilot("identify", #""locale":"en","app_version":null,"country":"GB""#)
            try app.store([Self.line("received", "n2", "N")])
            // The first message stays what it was, although it is clicked once more as another.
            try app.store([Self.line("dismissed", "n1", "N")])
            // What an event says itself is right.
            try app.store([
                #"{"type":"received","message_uid":"n3","device_id":"N","locale":"fr"}"#
            ])

            // Vibes: a device that registers here, then sends events with its token.
            let (id, token) = try SourceDeviceTests.register(
                source, #"{"device":{"os":"Android","locale":"pt","app_version":"2.0"}}"#)
            func vibes(_ message: String) throws {
                try send(
                    SourceDeviceTests.call(
                        source, "\(id)/events",
                        """
                        {"events":[{"uuid":"\(message)","type":"clickthru","attributes":{
                        "message_uid":"\(message)"}}]}
                        """, token: token))
            }
            try vibes("v1")
            try send(
                SourceDeviceTests.call(
                    source, id, #"{"device":{"app_version":"2.1"}}"#, token: token, method: "PUT"))
            try vibes("v2")

            // SAP: statuses alone.
            func sap(_ path: String, _ body: String) throws {
                try send(source.request("/sap/\(path)", body))
            }
            try sap(
                "registrations",
                #"{"deviceId":"S","pushGroup":"g1","userLocale":"es","topics":["t"]}"#)
            try sap(
                "notification-status",
                #"{"notificationId":"s1","status":"CONFIRMED","deviceId":"S"}"#)
            try sap("registrations", #"{"deviceId":"S","pushGroup":"g2"}"#)
            try sap(
                "notification-status",
                #"{"notificationId":"s2","status":"CONFIRMED","deviceId":"S"}"#)
            // A device for tests is in no report.
            try sap(
                "registrations", #"{"deviceId":"T","provider":"test","userLocale":"es"}"#)
            try sap(
                "notification-status",
                #"{"notificationId":"s3","status":"CONFIRMED","deviceId":"T"}"#)

            // Pushwoosh and Mapp Engage.
            try send(
                SourceAliasTests.pushwoosh(source, "registerDevice", #""app_version":"3.0""#))
            try send(SourceAliasTests.pushwoosh(source, "pushStat", #""hash":"p1""#))
            try send(
                source.request(
                    "/api/v3/device", #"{"user_id":"M","locale":"nl"}"#, key: "X_KEY", method: "PUT"
                ))
            try send(
                source.request(
                    "/api/push/event", #"{"event_type":0,"message_id":"m1","user_id":"M"}"#,
                    key: "X_KEY"))

            #expect(
                try Self.rows(app, by: "locale") == [
                    "de": [1, 1], "en": [1, 0], "fr": [1, 0], "pt": [2, 2], "es": [2, 0],
                    "nl": [1, 1], "-": [1, 1],
                ])
            #expect(
                try Self.rows(app, by: "app_version") == [
                    "1.0": [3, 1], "2.0": [1, 1], "2.1": [1, 1], "3.0": [1, 1], "-": [3, 1],
                ])
            // The first message had none until it was dismissed.
            let countries = try Self.rows(app, by: "country")
            #expect(countries == ["GB": [3, 1], "-": [6, 4]])
            let groups = try Self.rows(app, by: "push_group")
            #expect(groups == ["g1": [1, 0], "g2": [1, 0], "-": [7, 5]])
            #expect(
                try Self.rows(app, by: "locale", ["--include-test"])["es"] == [3, 0])
            // Computed from all events, too.
            #expect(
                try Self.rows(app, by: "locale", ["--journeys", "always"])
                    == Self.rows(app, by: "locale"))
            #expect(try Shared.daemon.check().exit == .code(0))
        }

        @Test func aMarkOfATestDeviceComesAndGoes() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            try app.store([Self.line("received", "a", "D"), Self.line("received", "b", "E")])
            func device(_ words: String...) throws -> Outcome {
                try Tapline.run(["device"] + words + app.daemon.store)
            }
            func delivered() throws -> Int64? {
                try ReportTests.json(app)["totals"]["delivered"].int
            }
            #expect(try device("mark-test", "--app", app.name, "D").isSuccess)
            #expect(try delivered() == 1)
            #expect(try device("unmark-test", "--app", app.name, "D").isSuccess)
            #expect(try delivered() == 2)
            // In every app that has a key.
            #expect(try device("mark-test", "E").isSuccess)
            #expect(try delivered() == 1)
            #expect(try device("unmark-test", "E").isSuccess)
            #expect(try delivered() == 2)
            #expect(try device("mark-test", "").exit == .code(2))

            try app.store([
                #"{"type":"device_register","device_id":"D","event_uid":"1","topics":["t"],"locale":"de"}"#
            ])
            let shown = try device("show", "--app", app.name, "--format", "json", "D")
            let row = try JSON(parsing: shown.output.utf8)[0]
            #expect(row["topics"] == .array([.string("t")]), "\(shown)")
            #expect(row["registered"] == .bool(true) && row["locale"] == .string("de"), "\(shown)")
            #expect(try device("list", "--app", app.name).output.contains(" D "))
            #expect(try device("show", "--app", app.name, "nobody").exit == .code(1))
        }

        @Test func noRegistrationThatWasAnsweredIsLostWithTheDaemon() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let source = try SourceApp(daemon)
            // One that is loaded, so that the daemon knows the secret of tokens.
            var ids = [try SourceDeviceTests.register(source).id]
            try daemon.waitUntilLoaded()
            // Between answer and load: there is nothing to load into.
            try cluster.stop(.immediate)
            for _ in 0..<10 { ids.append(try SourceDeviceTests.register(source).id) }
            for number in 0..<10 {
                try Self.send(
                    source,
                    source.request(
                        "/api/v1/register-device",
                        #"{"app_id":\#(quote(source.alias)),"device_uid":"n\#(number)"}"#, key: nil)
                )
                ids.append("n\(number)")
            }
            try daemon.kill()
            try daemon.start()
            let (last, token) = try SourceDeviceTests.register(source)
            ids.append(last)
            try cluster.start()
            try daemon.waitUntilLoaded()
            let stored = try daemon.sql().rows(
                "SELECT device_id FROM tapline.device_state WHERE app = '\(source.app.name)'")
            #expect(stored.compactMap { $0[0] }.sorted() == ids.sorted(), "each once")
            // The token is good after the daemon and its database were away.
            try Self.send(
                source,
                SourceDeviceTests.call(source, "\(last)/events", #"{"events":[]}"#, token: token))
            #expect(try daemon.check().exit == .code(0))
        }

        // MARK: Categories

        @Test func aButtonIsAClickOrNotByTheTableOfCategories() throws {
            let source = try SourceApp(Shared.daemon)
            let app = source.app
            let directory = TemporaryDirectory()
            func category(_ name: String, _ text: String, _ options: String...) throws
                -> Outcome
            {
                try Self.importCategories(app, directory.file(name, text), options)
            }
            func press(_ message: String, _ button: String, _ more: String = "") throws {
                try Self.send(
                    source,
                    SourceAliasTests.pushwoosh(
                        source, "pushStat",
                        #""hash":"\#(message)","category_id":"sale","action_id":"\#(button)"\#(more)"#
                    ))
            }
            func counts() throws -> [Int64?] {
                try app.daemon.waitUntilLoaded()
                let totals = try ReportTests.json(app, ["--journeys", "never"])["totals"]
                let exact = try ReportTests.json(app, ["--journeys", "always"])["totals"]
                #expect(totals["clicked"] == exact["clicked"])
                #expect(totals["actions"] == exact["actions"])
                return [totals["actions"].int, totals["clicked"].int]
            }
            // Before the table is known, and what the call says itself.
            try press("m1", "buy")
            try press("m2", "later")
            try press("m3", "later", #","startApplication":1"#)
            #expect(try counts() == [3, 1])
            let json = """
                [{"id":"sale","label":"Sale","buttons":[
                {"id":"buy","label":"Buy, now","type":1,"startApplication":1},
                {"id":"later","label":null,"type":"2","startApplication":0}]}]
                """
            let first = try category("c.json", json)
            #expect(first.isSuccess, "\(first)")
            #expect(
                first.output
                    == "1 categories with 2 buttons imported; stored events were counted anew\n")
            #expect(try counts() == [3, 2], "history is healed")
            try press("m4", "buy")
            try press("m5", "buy", #","startApplication":0"#)
            #expect(try counts() == [5, 3])
            let byButton = try ReportTests.json(app, ["--by", "category,action"])["campaigns"].items
            let names = byButton.map { row in
                ["category", "category_label", "action", "action_label"].map { row[$0].text }
            }
            #expect(names.contains(["sale", "Sale", "buy", "Buy, now"]), "\(names)")
            #expect(names.contains(["sale", "Sale", "later", nil]), "\(names)")
            let table = try ReportTests.report(app, ["--by", "action"])
            #expect(table.contains("Buy, now (buy)"), "\(table)")
            let csv1 = try ReportTests.report(app, ["--by", "action", "--format", "csv"])
            #expect(csv1.contains(",buy,\"Buy, now\",") && csv1.contains("action,action_label,"))
            let shares = try ReportTests.json(app, ["--journeys", "always"])["totals"][
                "action_share"]
            let labels = Set(shares.items.map { $0["action_label"].text })
            #expect(labels == ["Buy, now", nil], "\(shares)")

            let expected = """
                [{"categoryId":"sale","label":"Sale","buttons":[
                {"id":"buy","label":"Buy, now","type":1,"startApplication":1},
                {"id":"later","label":null,"type":2,"startApplication":0}]}]
                """
            func returned() throws -> JSON {
                let answer = try Shared.daemon.send(
                    SourceAliasTests.pushwoosh(source, "registerDevice", ""))
                return try answer.json["response"]["iosCategories"]
            }
            let wanted = try JSON(parsing: expected.utf8)
            try until("the device is told", seconds: 10) { try returned() == wanted ? true : nil }
            // The other way round, from CSV.
            let csv = """
                category_id,category_label,button_id,label,type,start_application
                sale,Sale,buy,"Buy ""now"", or not",1,0\r
                sale,,later,,,1

                empty,None,,,,
                """
            let zipped = try directory.file("c.csv.gz", gzip(csv))
            let second = try Self.importCategories(app, zipped)
            #expect(second.isSuccess, "\(second)")
            #expect(try counts() == [5, 2], "m2 and m3")
            let list = try Tapline.run(
                ["category", "list", "--app", app.name, "--format", "json"] + app.daemon.store)
            let found = try JSON(parsing: list.output.utf8)
            #expect(found.items.map { $0["id"] } == [.string("empty"), .string("sale")])
            #expect(found[1]["buttons"][0]["label"] == .string("Buy \"now\", or not"))
            let long = String(repeating: "é", count: 256) + "x"
            let header = "category_id,category_label,button_id,label,type,start_application\n"
            // A table that says nothing new of stored events counts none anew.
            #expect(
                try category("d.csv", csv, "--replace").output
                    == "2 categories with 2 buttons imported\n")
            for (text, message) in [
                ("x", "line 1 does not name the columns"),
                ("[{}]", "category 1: id is missing"), ("[", "is not valid JSON"),
                ("{}", "no array"),
                (
                    #"[{"id":"a","label":"\u0000"}]"#, "category 1: label has a NUL"
                ),
                (
                    #"[{"id":"a","buttons":[{"id":"b","type":"\#(long)"}]}]"#,
                    "category 1, button 1: type is 513 bytes, limit is 512"
                ),
                (#"[{"id":"a"},{"id":"a"}]"#, "category \"a\" is there twice"),
                (
                    #"[{"id":"a","buttons":[{"id":"b","startApplication":2}]}]"#,
                    "category 1, button 1: startApplication is \"2\", not 0 or 1"
                ),
                (header + "a,b\n", "line 2: has 2 columns, expected 6"),
                (header + "a,,b,\"c,,\n", "line 2: a quote is not closed"),
                (header + "a,,b,\"c\"d,,\n", "line 2: text follows a closing quote"),
                (header + "a,,b,\0,,\n", "line 2: label has a NUL"),
                (header + "a,\(long),b,,,\n", "line 2: category_label is 513 bytes, limit is 512"),
            ] {
                let refused = try category("bad", text)
                #expect(refused.exit == .code(1))
                #expect(refused.complaints.first?.contains(message) == true, "\(refused)")
            }
            for (before, after, message) in [
                (header + "a,,b,", ",,\n", "line 2: column 4 is not valid UTF-8"),
                (#"[{"id":""#, #""}]"#, "is not valid UTF-8"),
            ] {
                let refused = try Self.importCategories(
                    app, directory.file("bad", Array(before.utf8) + [0xFF] + Array(after.utf8)))
                let isNamed = refused.complaints.first?.contains(message) == true
                #expect(refused.exit == .code(1) && isNamed, "\(refused)")
            }
            #expect(try counts() == [5, 2], "nothing is imported of a bad file")
        }

        private static func importCategories(
            _ app: App, _ file: String, _ options: [String] = []
        ) throws -> Outcome {
            try Tapline.run(
                ["category", "import", "--app", app.name] + options + [file] + app.daemon.store)
        }
    }
}
