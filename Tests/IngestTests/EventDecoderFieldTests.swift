import Event
import Ingest
import Testing

private func row(_ line: String) throws -> EventRow { try DecoderHarness.row(line) }

/// A status update that is complete, with more members.
private func clicked(_ members: String) -> String {
    "{\"type\":\"clicked\",\"message_uid\":\"m\"\(members.isEmpty ? "" : ",")\(members)}"
}

struct EventDecoderFieldTests {
    @Test func everyFieldHasItsColumn() throws {
        let row = try row(
            """
            {"type":"action","message_uid":"m1","device_id":"d1","event_uid":"e1","campaign_id":"c1",
             "occurred_at":"2026-11-30T05:59:00Z","action_id":"a1","category_id":"g1",
             "inbox_message_uid":"i1","collapse_key":"k1","sent_at":"2026-11-30T05:59:59.5Z",
             "opens_app":true,"platform":"iOS","app_version":"1.2","os_version":"17","sdk_version":"3",
             "locale":"de_DE","country":"DE","provider":"apns","person_id":"p1","is_test":false,
             "silent":true,"properties":{"x":1}}
            """)
        let expected: [(EventColumn, String?)] = [
            (.app, "shop"), (.messageUID, "m1"), (.deviceID, "d1"), (.eventUID, "e1"),
            (.campaignID, "c1"), (.actionID, "a1"), (.categoryID, "g1"), (.inboxMessageUID, "i1"),
            (.collapseKey, "k1"), (.platform, "ios"), (.appVersion, "1.2"), (.osVersion, "17"),
            (.sdkVersion, "3"), (.locale, "de_DE"), (.country, "DE"), (.provider, "apns"),
            (.personID, "p1"), (.occurredRaw, nil), (.typeRaw, nil), (.properties, "{\"x\":1}"),
        ]
        for (column, text) in expected { #expect(row.text(column) == text, "\(column)") }
        #expect(row.type == .action)
        #expect(row.flag(.opensApp) == true)
        #expect(row.flag(.isTest) == false)
        #expect(row.flag(.silent) == true)
        #expect(row.time(.occurredAt) == DecoderHarness.received - 60_000_000)
        #expect(row.time(.sentAt) == DecoderHarness.received - 500_000)
        #expect(row.timeRule == .device)
    }

    @Test func nullIsAbsentAndAnEmptyTextToo() throws {
        let line = try row(clicked(""))
        for name in EventField.allCases.map({ "\($0.name)" })
        where name != "type" && name != "message_uid" {
            let other = try row(clicked("\"\(name)\":null"))
            #expect(other.key == line.key)
            for column in EventColumn.allCases {
                #expect(
                    other.field(column)?.count == line.field(column)?.count, "\(name) \(column)")
            }
        }
        #expect(try row(clicked("\"device_id\":\"\",\"platform\":\"\"")).text(.deviceID) == nil)
        #expect(try row(clicked("\"platform\":\"\"")).text(.platform) == nil)
    }

    @Test(arguments: ["type", "event", "status", "kind"])
    func theTypeHasFourNames(name: String) throws {
        let row = try row("{\"\(name)\":\"ClickThru\",\"message_uid\":\"m\"}")
        #expect(row.type == .clicked)
        #expect(row.text(.typeRaw) == "ClickThru")
        #expect(row.text(.properties) == nil)
    }

    @Test func theCanonicalNameWinsAndTheAliasIsKept() throws {
        let row = try row(
            """
            {"status":"ok","type":"sent","event":7,"message_uid":"m","uuid":"u","event_uid":"e",
             "timestamp":5,"occurred_at":"2026-11-30T05:00:00Z","time":"x","props":[1],"attributes":{"b":2},
             "properties":{"a":1}}
            """)
        #expect(row.type == .sent)
        #expect(row.text(.eventUID) == "e")
        #expect(row.text(.occurredRaw) == nil)
        #expect(
            row.text(.properties)
                == #"{"a":1,"event":7,"status":"ok","uuid":"u","timestamp":5,"time":"x","attributes":{"b":2},"props":[1]}"#
        )
    }

    @Test func ofTheSameFieldTwiceTheLastWins() throws {
        #expect(try row(clicked("\"message_uid\":\"n\"")).text(.messageUID) == "n")
        #expect(try row(clicked("\"device_id\":7,\"device_id\":\"e\"")).text(.deviceID) == "e")
        #expect(try row(clicked("\"device_id\":\"e\",\"device_id\":null")).text(.deviceID) == nil)
    }

    @Test func escapesInNamesAndTextsAreRead() throws {
        let row = try row(
            #"{"t\u0079pe":"cl\u0069cked","message\u005fuid":"m\u00e9\ud83d\ude00\n"}"#)
        #expect(row.type == .clicked)
        #expect(row.text(.typeRaw) == nil)
        #expect(row.text(.messageUID) == "mé😀\n")
    }

    @Test(arguments: [
        ("\"2147483648\"", "2147483648"), ("2147483648", "2147483648"),
        ("9223372036854775808", "9223372036854775808"), ("-7", "-7"), ("\"12\"", "12"), ("0", "0"),
    ])
    func anIntegerIsItsText(json: String, text: String) throws {
        #expect(try row(clicked("\"campaign_id\":\(json)")).text(.campaignID) == text)
        #expect(try row(clicked("\"device_id\":\(json)")).text(.deviceID) == text)
    }

    @Test func aUUIDIsFoldedWhereRetriesMayDiffer() throws {
        let upper = "0F8FAD5B-D9CB-469F-A165-70867728950E"
        let line =
            #"{"type":"inbox_open","message_uid":"\#(upper)","inbox_message_uid":"\#(upper)","uuid":"\#(upper)","device_id":"\#(upper)"}"#
        let row = try row(line)
        for column in [EventColumn.messageUID, .inboxMessageUID, .eventUID] {
            #expect(row.text(column) == upper.lowercased())
        }
        #expect(row.text(.deviceID) == upper)
        let notOne = "0F8FAD5B-D9CB-469F-A165-70867728950G"
        #expect(
            try DecoderHarness.row(#"{"type":"sent","message_uid":"\#(notOne)"}"#).text(.messageUID)
                == notOne)
        let tooShort = String(upper.dropLast())
        #expect(
            try DecoderHarness.row(#"{"type":"sent","message_uid":"\#(tooShort)"}"#).text(
                .messageUID) == tooShort)
    }

    @Test func aCampaignIsElseTheActivity() throws {
        let both = "\"activity_type\":\"BROADCAST\",\"activity_uid\":7"
        let row = try row(clicked(both))
        #expect(row.text(.campaignID) == "BROADCAST:7")
        #expect(row.text(.properties) == nil)
        let named = try DecoderHarness.row(clicked("\"campaign_id\":\"c\",\(both)"))
        #expect(named.text(.campaignID) == "c")
        #expect(named.text(.properties) == #"{"activity_type":"BROADCAST","activity_uid":7}"#)
        let half = try DecoderHarness.row(clicked("\"activity_type\":\"A\""))
        #expect(half.text(.campaignID) == nil)
        #expect(half.text(.properties) == #"{"activity_type":"A"}"#)
        let odd = try DecoderHarness.row(clicked("\"activity_type\":{},\"activity_uid\":\"u\""))
        #expect(odd.text(.properties) == #"{"activity_type":{},"activity_uid":"u"}"#)
        let empty = try DecoderHarness.row(clicked("\"activity_type\":\"\",\"activity_uid\":\"u\""))
        #expect(empty.text(.properties) == #"{"activity_type":"","activity_uid":"u"}"#)
    }

    @Test func anInboxMessageStandsForTheMessage() throws {
        let row = try row(#"{"type":"inbox_open","inbox_message_uid":"i"}"#)
        #expect(row.text(.messageUID) == "i")
        #expect(row.text(.inboxMessageUID) == "i")
        let both = try DecoderHarness.row(
            #"{"type":"inboxopen","message_uid":"m","inbox_message_uid":"i"}"#)
        #expect(both.text(.messageUID) == "m")
        #expect(both.field(.inboxUnit) != nil)
    }

    @Test func dimensionsOfAnotherTypeAreKept() throws {
        let long = String(repeating: "x", count: 129)
        let row = try row(
            clicked(
                #""platform":7,"app_version":1.50,"locale":["de"],"country":true,"provider":"\#(long)","os_version":{"a":1}"#
            ))
        #expect(row.text(.platform) == "7")
        #expect(row.text(.appVersion) == "1.50")
        #expect(row.text(.provider) == nil)
        #expect(
            row.text(.properties)
                == #"{"os_version":{"a":1},"locale":["de"],"country":true,"provider":"\#(long)"}"#)
    }

    @Test func aCustomWordIsKeptAsSent() throws {
        let line = #"{"type":"Page_View","device_id":"d","time":1796018000,"props":{}}"#
        let row = try row(line)
        #expect(row.type == .custom)
        #expect(row.text(.typeRaw) == "Page_View")
        #expect(row.text(.occurredRaw) == "1796018000")
        #expect(row.time(.occurredAt) == 1_796_018_000_000_000)
        let other = try DecoderHarness.row(line.replacing("Page_View", with: "page_view"))
        #expect(other.key != row.key)
    }
}
