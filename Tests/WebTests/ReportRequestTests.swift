import HTTPServer
import Ingest
import Platform
import Report
import Testing

@testable import Web

@Suite struct ReportRequestTests {
    static func request(
        _ query: String, _ kind: ReportKind = .campaigns
    ) throws(ServiceRefusal) -> ReportRequest {
        try ReportRequest(kind, RequestTarget("/?" + query).queryItems, app: "shop")
    }

    struct Refused: CustomTestStringConvertible, Sendable {
        let query: String
        let kind: ReportKind
        let code: String
        let says: String
        var testDescription: String { "\(kind) \(query)" }

        init(_ query: String, _ code: String, _ says: String, _ kind: ReportKind = .campaigns) {
            self.query = query
            self.kind = kind
            self.code = code
            self.says = says
        }
    }

    static let refused: [Refused] = [
        Refused("form=1", "unknown_parameter", #"no parameter "form"; there are from, to"#),
        Refused("form=1&from=x", "unknown_parameter", "form"),
        Refused("rate=ctr_sent", "unknown_parameter", "rate"),
        Refused("campaign=a", "unknown_parameter", "campaign", .campaign("a")),
        Refused("by=day&campaign=a", "unknown_parameter", "by", .comparison),
        Refused("from=7d&from=7d", "repeated_parameter", "from"),
        Refused("as_of=7d&as-of=7d", "repeated_parameter", "as-of"),
        Refused("campaign=a&campaign=b", "repeated_parameter", "campaign"),
        Refused(
            "from=yesterday", "invalid_parameter", #""from" has value "yesterday": not a date"#),
        Refused("from=2026-02-30", "invalid_parameter", "2026-02-30"),
        Refused("to=infinity", "invalid_parameter", "infinity"),
        Refused("by=colour", "invalid_parameter", "platform"),
        Refused("by=day,hour,platform", "invalid_parameter", "one or two"),
        Refused("sort=beauty", "invalid_parameter", "beauty"),
        Refused("top=0", "invalid_parameter", "above 0"),
        Refused("limit=0", "invalid_parameter", "1 to 5000"),
        Refused("limit=5001", "invalid_parameter", "1 to 5000"),
        Refused("limit=ten", "invalid_parameter", "1 to 5000"),
        Refused("offset=-1", "invalid_parameter", "from 0"),
        Refused("format=table", "invalid_parameter", "json, ndjson, csv"),
        Refused("journeys=some", "invalid_parameter", "auto, always or never"),
        Refused("include_test=maybe", "invalid_parameter", "true or false"),
        Refused("conversion_window=0h", "invalid_parameter", "24h or 7d"),
        Refused("tz=", "invalid_parameter", "is empty"),
        Refused("campaign=%00", "invalid_parameter", "NUL"),
        Refused("app=news", "wrong_app", #"of app "shop""#),
        Refused("", "invalid_parameter", "2 to 26", .comparison),
        Refused("campaign=a", "invalid_parameter", "2 to 26", .comparison),
        Refused("campaign=a&campaign=a", "invalid_parameter", "2 to 26", .comparison),
        Refused("campaign=a&campaign=b&rate=odds", "invalid_parameter", "ctr_sent", .comparison),
    ]

    @Test(arguments: refused) func everyRefusalNamesWhatIsWrong(item: Refused) {
        do throws(ServiceRefusal) {
            _ = try Self.request(item.query, item.kind)
            Issue.record("was taken")
        } catch {
            #expect(error.code == item.code)
            #expect(error.status == (item.code == "wrong_app" ? 403 : 400))
            #expect(error.message.contains(item.says), "\(error.message)")
        }
    }

    @Test func aValueOfAnyLengthAndContentIsQuotedInTheAnswer() throws {
        let value = "%22%5C%0A" + String(repeating: "x", count: 10_000)
        let error = #expect(throws: ServiceRefusal.self) { try Self.request("from=" + value) }
        let message = try #require(error?.message)
        #expect(message.count < 250)
        let text = String(decoding: try #require(error).response.body, as: UTF8.self)
        #expect(text.contains(#""parameter":"from","value":"\"\\\u000axxx"#))
    }

    @Test func everyParameterIsTaken() throws {
        let request = try Self.request(
            "from=7d&to=24h&tz=Europe%2FBerlin&app=shop&campaign=(unattributed)&by=campaign,day"
                + "&by_activity=1&as_of=2026-11-30T06:10:00%2B01:00&conversion-window=7d"
                + "&journeys=never&include-test&sort=clicked&top=30&format=csv&limit=20&offset=20")
        #expect(request.options.from == .daysAgo(7) && request.options.to == .hoursAgo(24))
        #expect(request.options.timeZone == "Europe/Berlin")
        #expect(request.options.app == "shop" && request.options.campaign == "(unattributed)")
        #expect(request.options.by == [.campaign, .day] && request.options.isByActivity)
        #expect(request.options.conversionHours == 168 && request.options.journeys == .never)
        #expect(request.options.includesTest && request.options.sort == .count(.clicked))
        #expect(request.format == .csv && request.mediaType == "text/csv; charset=utf-8")
        // Of the first 30 rows, the last 10.
        #expect(request.options.offset == 20 && request.rowsMax == 10)
    }

    @Test func theAppIsAlwaysThatOfTheKey() throws {
        #expect(try Self.request("").options.app == "shop")
        #expect(
            try Self.request("campaign=a&campaign=b", .comparison).options.app == "shop")
    }

    @Test func onlyUnreservedCharactersStayInALink() {
        #expect(percentEncoded("aZ09-._~") == "aZ09-._~")
        #expect(percentEncoded("a b+/?&=ü") == "a%20b%2B%2F%3F%26%3D%C3%BC")
        let all = String(decoding: (1...127).map { UInt8($0) }, as: UTF8.self)
        let target = RequestTarget("/?x=" + percentEncoded(all))
        #expect(target.queryItem("x") == all)
    }

    @Test(arguments: [
        ("", []), (#""a""#, [#"W/"a""#]), (#"W/"a", "b""#, [#"W/"a""#, #"W/"b""#]),
    ]) func tagsAreComparedWeakly(header: String, tags: [String]) {
        var fields = HeaderFields()
        if !header.isEmpty { fields.append(name: "if-none-match", value: header) }
        #expect(EntityTag.list(fields) == tags)
    }

    @Test(arguments: [
        ("spring", "spring"), ("a%20b", "a b"), ("a+b", "a+b"),
        ("%28unattributed%29", "(unattributed)"),
        ("EVENT:x", "EVENT:x"), ("%C3%BC", "ü"), ("%", "%"), ("%FF", nil),
    ]) func aCampaignInThePathIsDecoded(part: String, id: String?) {
        #expect(RequestTarget.decodedPath(part[...]) == id)
    }
}
