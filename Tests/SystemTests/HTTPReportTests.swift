import Foundation
import Testing

extension SystemTests {
    /// Reports over HTTP are those of the command line.
    @Suite struct HTTPReportTests {
        /// An app with a key for reading, and with events.
        final class Sent: Sendable {
            let app: App
            let reader: String

            init(_ app: App, campaigns: Int) throws {
                self.app = app
                reader = try app.daemon.key(app.name, role: "read")
                let lines = (0..<campaigns).flatMap { campaign in
                    (0..<(4 + campaign % 3)).map { unit in
                        let type = unit % 4 == 0 ? "clicked" : "received"
                        return #"{"type":"\#(type)","message_uid":"m\#(campaign)-\#(unit)","#
                            + #""device_id":"d\#(unit)","campaign_id":"c/\#(campaign) ü&","#
                            + #""platform":"\#(unit % 2 == 0 ? "ios" : "android")","#
                            + #""occurred_at":"2026-0\#(1 + campaign % 3)-0\#(1 + unit)T10:00:00Z"}"#
                    }
                }
                try app.store(
                    lines + [#"{"type":"received","message_uid":"lost","device_id":"d0"}"#])
            }

            func get(_ target: String, _ headers: (String, String)...) throws -> Answer {
                var request = Request.get("/v1/reports/" + target, key: reader)
                for (name, value) in headers { request = request.with(name, value) }
                return try app.daemon.send(request)
            }
        }

        static let shared = Result { try Sent(try Shared.app(), campaigns: 23) }

        /// Options of the command line, and the query that means the same.
        static let views: [([String], String)] = [
            ([], ""),
            (["--by", "platform"], "by=platform"),
            (["--by", "campaign,day", "--tz", "Asia/Tokyo"], "by=campaign,day&tz=Asia%2FTokyo"),
            (["--from", "2026-02-01", "--to", "2026-03-01"], "from=2026-02-01&to=2026-03-01"),
            (["--sort", "ctr_delivered", "--top", "5"], "sort=ctr_delivered&top=5"),
            (["--campaign", "(unattributed)"], "campaign=(unattributed)"),
            (["--by-activity", "--include-test"], "by_activity&include_test=true"),
            (["--journeys", "never"], "journeys=never"),
            (
                ["--conversion-window", "7d", "--as-of", "2030-01-01"],
                "conversion_window=7d&as_of=2030-01-01"
            ),
        ]

        /// Without what differs between two calls.
        private static func withoutTimes(_ text: String) -> String {
            text.replacing(#/"(as_of|data_through)":"[^"]*"/#, with: "")
        }

        @Test(arguments: views) func aReportIsThatOfTheCommandLine(
            options: [String], query: String
        ) throws {
            let sent = try Self.shared.get()
            for format in ["json", "ndjson", "csv"] {
                let expected = try ReportTests.report(sent.app, options + ["--format", format])
                let answer = try sent.get("campaigns?\(query)&format=\(format)")
                #expect(answer.status == 200)
                #expect(Self.withoutTimes(answer.text) == Self.withoutTimes(expected))
            }
        }

        @Test func oneCampaignIsTheSameObject() throws {
            let sent = try Self.shared.get()
            for (path, id) in [
                ("c%2F5%20%C3%BC%26", "c/5 ü&"), ("c/5%20%c3%bc&", "c/5 ü&"),
                ("%28unattributed%29", "(unattributed)"), ("(unattributed)", "(unattributed)"),
            ] {
                let expected = try ReportTests.report(
                    sent.app, ["--campaign", id, "--by", "platform", "--format", "json"])
                let answer = try sent.get("campaigns/\(path)?by=platform")
                #expect(Self.withoutTimes(answer.text) == Self.withoutTimes(expected))
                let rows = try sent.get("campaigns/\(path)").json["campaigns"].items
                #expect(rows.map { $0["campaign_id"].text } == [id])
            }
        }

        @Test func aCampaignIsUnknownOnlyIfNoEventNamesIt() throws {
            let sent = try Self.shared.get()
            let answer = try sent.get("campaigns/nobody")
            try StatusTests.expectRefusal(answer, 404)
            #expect(try answer.json["error"]["code"].text == "no_campaign")
            // In another period it is there, with nothing.
            let empty = try sent.get("campaigns/(unattributed)?to=2020-01-01")
            #expect(empty.status == 200)
            #expect(try empty.json["campaigns"].items.isEmpty)
            #expect(try empty.json["totals"]["delivered"] == .int(0))
        }

        @Test func aComparisonIsThatOfTheCommandLine() throws {
            let sent = try Self.shared.get()
            let names = ["c/2 ü&", "c/5 ü&", "unheard"]
            let query = names.map { "campaign=" + escaped($0) }.joined(separator: "&")
            let views: [([String], String)] = [
                ([], ""),
                (
                    ["--rate", "engagement_rate", "--tz", "Asia/Tokyo"],
                    "&rate=engagement_rate&tz=Asia/Tokyo"
                ),
            ]
            for (options, more) in views {
                let outcome = try Tapline.run(
                    ["compare"] + names + options + ["--app", sent.app.name, "--format", "json"]
                        + sent.app.daemon.store)
                #expect(outcome.isSuccess, "\(outcome)")
                let answer = try sent.get("compare?\(query)\(more)")
                #expect(Self.withoutTimes(answer.text) == Self.withoutTimes(outcome.output))
            }
        }

        @Test func whatHasChangedAndThePageAreThoseOfTheCommandLine() throws {
            let sent = try Self.shared.get()
            for (options, query) in [
                (["--since", "2020-01-01"], "since=2020-01-01"),
                (
                    ["--since", "2020-01-01", "--by", "platform", "--top", "1"],
                    "since=2020-01-01&by=platform&top=1&format=json"
                ),
            ] {
                let expected = try ReportTests.report(sent.app, options + ["--format", "json"])
                let answer = try sent.get("campaigns?\(query)")
                #expect(answer.status == 200)
                #expect(Self.withoutTimes(answer.text) == Self.withoutTimes(expected))
            }
            let page = try sent.get("campaigns?format=html&by=campaign,platform")
            #expect(page.status == 200)
            #expect(page.header("content-type") == "text/html; charset=utf-8")
            let expected = try ReportTests.report(
                sent.app, ["--format", "html", "--by", "campaign,platform"])
            func figures(_ text: String) -> [Substring] {
                text.split(separator: "\n").filter { $0.contains("<td") }
            }
            #expect(!figures(page.text).isEmpty && figures(page.text) == figures(expected))
        }

        private func escaped(_ text: String) -> String {
            text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
        }

        // MARK: Pages

        @Test(arguments: [
            "", "by=campaign,platform&sort=clicked&", "from=2026-01-05&tz=Asia/Tokyo&",
        ])
        func pagesHaveEveryRowOnceWhateverIsLoadedMeanwhile(query: String) throws {
            let sent = try Sent(try Shared.app(), campaigns: 11)
            let whole = try sent.get("campaigns?\(query)journeys=always").json
            #expect(whole["campaigns"].items.count > 7 && whole["next"] == .null)
            var rows: [JSON] = []
            var target = "/v1/reports/campaigns?\(query)limit=3"
            while true {
                let answer = try sent.app.daemon.get(target, key: sent.reader)
                let page = try answer.json
                #expect(page["totals"] == whole["totals"], "\(target)")
                #expect(page["campaigns"].items.count <= 3)
                #expect(page["as_of"] == whole["as_of"] && page["from"] == whole["from"])
                rows += page["campaigns"].items
                guard let next = page["next"].text else {
                    #expect(answer.header("link") == nil)
                    break
                }
                #expect(answer.header("link") == "<\(next)>; rel=\"next\"")
                target = next
                try sent.app.store([
                    #"{"type":"clicked","message_uid":"n\#(rows.count)","device_id":"d","#
                        + #""campaign_id":"new \#(rows.count)"}"#
                ])
            }
            #expect(rows == whole["campaigns"].items)
        }

        @Test func topBoundsAllPagesTogether() throws {
            let sent = try Self.shared.get()
            let first = try sent.get("campaigns?top=5&limit=3").json
            #expect(first["campaigns"].items.count == 3)
            let target = try #require(first["next"].text)
            let second = try sent.app.daemon.get(target, key: sent.reader).json
            #expect(second["campaigns"].items.count == 2 && second["next"] == .null)
            #expect(try sent.get("campaigns?top=3&limit=3").json["next"] == .null)
            #expect(try sent.get("campaigns?offset=1000").json["campaigns"].items.isEmpty)
        }

        // MARK: Caching

        @Test func theSameAsOfIsNotSentTwice() throws {
            let sent = try Sent(try Shared.app(), campaigns: 2)
            let now = try sent.get("campaigns")
            let asOf = try #require(try now.json["as_of"].text)
            #expect(now.header("cache-control") == "private, no-cache")
            let target = "campaigns?as_of=\(escaped(asOf))"
            for path in [target, "campaigns/(unattributed)?as_of=\(escaped(asOf))"] {
                let tag = try #require(try sent.get(path).header("etag"))
                for sentTag in [tag, String(tag.dropFirst(2)), "\"other\", \(tag)"] {
                    let answer = try sent.get(path, ("If-None-Match", sentTag))
                    #expect(answer.status == 304 && answer.body.isEmpty)
                    #expect(answer.header("etag") == tag)
                }
                #expect(try sent.get(path, ("If-None-Match", "\"other\"")).status == 200)
                #expect(try sent.get(path + "&top=1").header("etag") != tag)
                // The tag of one app says nothing about another's report.
                let other = try sent.app.daemon.key(try Shared.app().name, role: "read")
                let request = Request.get("/v1/reports/" + target, key: other)
                #expect(try sent.app.daemon.send(request.with("If-None-Match", tag)).status == 200)
            }
            // What is new, or marked as test, is another answer.
            let tag = try #require(now.header("etag"))
            try sent.app.store([#"{"type":"clicked","message_uid":"x","device_id":"d0"}"#])
            #expect(try sent.get("campaigns", ("If-None-Match", tag)).status == 200)
            let past = try #require(try sent.get(target).header("etag"))
            try sent.app.daemon.sql().rows(
                "INSERT INTO tapline.test_device (app, device_id) VALUES ('\(sent.app.name)', 'd0')"
            )
            #expect(try sent.get(target, ("If-None-Match", past)).status == 200)
        }

        // MARK: Who may

        @Test func onlyReadAndAdminKeysOfTheAppSeeIt() throws {
            let sent = try Self.shared.get()
            let daemon = sent.app.daemon
            let admin = try daemon.key(sent.app.name, role: "admin")
            let stranger = try daemon.key(try Shared.app().name, role: "read")
            let compare = "compare?campaign=a&campaign=b"
            for target in ["campaigns", "campaigns/(unattributed)", compare] {
                let path = "/v1/reports/" + target
                try StatusTests.expectRefusal(try daemon.get(path), 401)
                try StatusTests.expectRefusal(try daemon.get(path, key: "nobody"), 401)
                try StatusTests.expectRefusal(try daemon.get(path, key: sent.app.key), 403)
                #expect(try daemon.get(path, key: admin).status == 200)
                let named = path + (target == compare ? "&" : "?") + "app=\(sent.app.name)"
                #expect(try daemon.get(named, key: sent.reader).status == 200)
                try StatusTests.expectRefusal(try daemon.get(named, key: stranger), 403)
                #expect(!(try daemon.get(path, key: stranger).text.contains(sent.app.name)))
            }
            try StatusTests.expectRefusal(
                try daemon.get("/v1/reports/campaigns/(unattributed)", key: stranger), 404)
        }

        @Test(arguments: [
            ("from=yesterday", "from", "yesterday"), ("tz=Mars%2FOlympus", "tz", "Mars/Olympus"),
            ("by=colour", "by", "colour"), ("limit=0", "limit", "0"), ("colour=red", "colour", nil),
            ("sort=clicked&sort=sent", "sort", nil), ("campaign=%00", "campaign", "\0"),
            ("since=soon", "since", "soon"), ("since=7d&format=csv", "format", "csv"),
            ("since=7d&limit=5", "limit", "5"), ("format=html&offset=5", "offset", "5"),
        ]) func aWrongParameterIsNamed(query: String, name: String, value: String?) throws {
            try Self.expectNamed("campaigns?" + query, name, value)
        }

        @Test(arguments: [
            ("", "campaign", ""), ("campaign=a", "campaign", "a"),
            ("campaign=a&campaign=a", "campaign", "a a"),
            ("campaign=a&campaign=b&rate=nope", "rate", "nope"),
            ("campaign=a&campaign=b&tz=Mars", "tz", "Mars"),
            ("campaign=a&campaign=b&from=soon", "from", "soon"),
            ("campaign=a&campaign=b&by=platform", "by", nil),
            ("campaign=a&campaign=b&limit=5", "limit", nil),
        ]) func aWrongParameterOfCompareIsNamed(query: String, name: String, value: String?) throws
        {
            try Self.expectNamed("compare?" + query, name, value)
        }

        static func expectNamed(_ target: String, _ name: String, _ value: String?) throws {
            let answer = try shared.get().get(target)
            try StatusTests.expectRefusal(answer, 400)
            let error = try answer.json["error"]
            #expect(error["parameter"].text == name)
            #expect(error["value"].text == value)
            #expect(error["message"].text?.contains(name) == true)
        }

        @Test func otherMethodsAreNotAllowedAndHeadIs() throws {
            let sent = try Self.shared.get()
            for path in ["campaigns", "campaigns/x", "compare"] {
                let request = Request(target: "/v1/reports/" + path, key: sent.reader)
                let answer = try sent.app.daemon.send(request)
                try StatusTests.expectRefusal(answer, 405)
                #expect(answer.header("allow") == "GET, HEAD")
            }
            let get = try sent.get("campaigns")
            let head = try sent.app.daemon.send(
                Request(method: "HEAD", target: "/v1/reports/campaigns", key: sent.reader))
            #expect(head.status == 200 && head.body.isEmpty)
            #expect(head.header("content-length") == "\(get.body.count)")
        }

        // MARK: When the database does not do

        @Test func withoutTheDatabaseItIs503AndThenRecovers() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let sent = try Sent(try App(daemon), campaigns: 2)
            #expect(try sent.get("campaigns").status == 200)
            for fault in [{ try cluster.stop(.fast) }, { try cluster.kill() }] {
                try fault()
                let answer = try sent.get("campaigns")
                try StatusTests.expectRefusal(answer, 503)
                #expect(try answer.json["error"]["code"].text == "database_unavailable")
                #expect(try sent.app.post(App.click("m")).status == 200)
                try cluster.start()
                try until("reports are back") {
                    try sent.get("campaigns").status == 200 ? true : nil
                }
            }
            // A session that died while nobody asked is no reason for a 503.
            try cluster.stop(.fast)
            try cluster.start()
            #expect(try sent.get("campaigns").status == 200)
            #expect(try daemon.stop() == .code(0))
        }

        @Test func aReportThatTakesTooLongIs503AndEventsGoOn() throws {
            let daemon = try Daemon(settings: ["report.timeout": "1s"]).start()
            let sent = try Sent(try App(daemon), campaigns: 2)
            let other = try Sent(try App(daemon), campaigns: 1)
            let sql = try daemon.sql()
            try sql.rows("BEGIN")
            try sql.rows("LOCK TABLE tapline.turn IN ACCESS EXCLUSIVE MODE")
            // More than may wait for one app: those over it are told at once.
            let connections = try (0..<20).map { _ in try daemon.connect() }
            for connection in connections {
                try connection.send(Request.get("/v1/reports/campaigns", key: sent.reader).bytes)
            }
            // Nothing of it holds up the HTTP thread.
            #expect(try daemon.get("/healthz").status == 200)
            let codes = try connections.map { connection in
                let answer = try connection.answer()
                try StatusTests.expectRefusal(answer, 503)
                return try answer.json["error"]["code"].text ?? ""
            }
            #expect(Set(codes) == ["report_timeout", "too_many_reports"])
            #expect(codes.count { $0 == "report_timeout" } <= 10)
            try sql.rows("ROLLBACK")
            #expect(try other.get("campaigns").status == 200)
            #expect(try sent.get("campaigns").status == 200)
        }

        @Test func stopDoesNotWaitForAReport() throws {
            let daemon = try Daemon(settings: ["http.drain_timeout": "1s"]).start()
            let sent = try Sent(try App(daemon), campaigns: 1)
            let sql = try daemon.sql()
            try sql.rows("BEGIN")
            try sql.rows("LOCK TABLE tapline.turn IN ACCESS EXCLUSIVE MODE")
            let connection = try daemon.connect()
            try connection.send(Request.get("/v1/reports/campaigns", key: sent.reader).bytes)
            try until("the report waits for the lock") {
                try daemon.sql().rows(
                    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'tapline reports' "
                        + "AND wait_event_type = 'Lock'"
                ).isEmpty ? nil : true
            }
            let started = Date()
            #expect(try daemon.stop() == .code(0))
            #expect(Date().timeIntervalSince(started) < 15)
            try StatusTests.expectRefusal(try connection.answer(), 503)
        }
    }
}
