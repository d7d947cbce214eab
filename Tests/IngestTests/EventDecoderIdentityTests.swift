import Event
import Ingest
import Testing

struct EventDecoderIdentityTests {
    private func key(_ line: String, app: String = "shop") throws -> Identity {
        var harness = DecoderHarness()
        harness.app = app
        return try harness.decode(line).get().key
    }

    /// Groups of lines that are one event; lines of different groups are different events.
    private static let groups: [[String]] = [
        // Rule 2: neither time, campaign, dimensions nor properties tell status updates apart.
        [
            #"{"type":"clicked","message_uid":"m","device_id":"d"}"#,
            #"{"type":"CLICKTHRU","message_uid":"m","device_id":"d","occurred_at":1,"campaign_id":"c"}"#,
            #"{"status":"open","message_uid":"m","device_id":"d","props":{"a":1},"platform":"ios"}"#,
        ],
        [#"{"type":"clicked","message_uid":"m"}"#],
        [#"{"type":"clicked","message_uid":"m","device_id":"e"}"#],
        [
            #"{"type":"received","message_uid":"m","device_id":"d"}"#,
            #"{"type":"delivered","message_uid":"m","device_id":"d"}"#,
        ],
        [#"{"type":"action","message_uid":"m","device_id":"d","action_id":"a"}"#],
        [#"{"type":"action","message_uid":"m","device_id":"d","action_id":"b"}"#],
        [
            #"{"type":"action","message_uid":"m","device_id":"d"}"#,
            #"{"type":"button","message_uid":"m","device_id":"d","action_id":null}"#,
        ],
        // Rule 1: the client's id alone, and a re-stamped retry is a duplicate.
        [
            #"{"type":"clicked","message_uid":"m","device_id":"d","event_uid":"e"}"#,
            #"{"type":"click","message_uid":"m","device_id":"d","insert_id":"e","time":5,"action_id":"a","props":{"x":1}}"#,
        ],
        [#"{"type":"clicked","message_uid":"m","device_id":"d","event_uid":"f"}"#],
        [#"{"type":"inbox_open","message_uid":"m","device_id":"d","event_uid":"e"}"#],
        [#"{"type":"launch","event_uid":"e"}"#],
        [#"{"type":"launch","device_id":"e","event_uid":"e"}"#],
        [
            #"{"type":"launch","event_uid":"0F8FAD5B-D9CB-469F-A165-70867728950E"}"#,
            #"{"type":"launch","uuid":"0f8fad5b-d9cb-469f-a165-70867728950e"}"#,
        ],
        // Rule 3: time as sent and properties, in any order.
        [
            #"{"type":"view","device_id":"d","occurred_at":"1","props":{"a":1,"b":{"y":2,"x":[1]}}}"#,
            #"{"props":{"b":{"x":[1.0],"y":2e0},"a":10e-1},"time":1,"type":"view","device_id":"d","sent_at":9}"#,
            #"{"type":"view","device_id":"d","time":1,"a":1,"props":{"b":{"y":2,"x":[1]}}}"#,
        ],
        [
            #"{"type":"view","device_id":"d","occurred_at":"1.0","props":{"a":1,"b":{"y":2,"x":[1]}}}"#
        ],
        [#"{"type":"view","device_id":"d","occurred_at":"1"}"#],
        [#"{"type":"View","device_id":"d","occurred_at":"1"}"#],
        [#"{"type":"view","device_id":"d","occurred_at":"1","props":{}}"#],
        [#"{"type":"view","message_uid":"d","occurred_at":"1"}"#],
        [#"{"type":"view","device_id":"d","message_uid":"m","occurred_at":"1"}"#],
        [
            #"{"type":"launch","device_id":"d","occurred_at":"1"}"#,
            #"{"type":"LAUNCH","device_id":"d","occurred_at":1}"#,
        ],
        // Fields do not run into each other.
        [#"{"type":"sent","message_uid":"ab","device_id":"c"}"#],
        [#"{"type":"sent","message_uid":"a","device_id":"bc"}"#],
    ]

    @Test func linesAreTheSameEventExactlyWhenTheRuleSaysSo() throws {
        var seen: [Identity: Int] = [:]
        for (index, group) in Self.groups.enumerated() {
            for line in group {
                let key = try key(line)
                #expect(seen[key, default: index] == index, "\(line)")
                seen[key] = index
                #expect(key == (try self.key(group[0])), "\(line)")
                #expect(key != (try self.key(line, app: "other")), "\(line)")
            }
        }
        #expect(seen.count == Self.groups.count)
    }

    @Test func aUnitIsMessageAndDeviceOfAnApp() throws {
        var harness = DecoderHarness()
        func unit(_ members: String) throws -> Unit {
            try harness.decode("{\"type\":\"launch\",\"event_uid\":\"e\"\(members)}").get().unit
        }
        let both = try unit(",\"message_uid\":\"m\",\"device_id\":\"d\"")
        let again = try unit(",\"message_uid\":\"n\",\"device_id\":\"d\"")
        #expect(both.device == again.device && both.message != again.message)
        #expect(try unit(",\"message_uid\":\"m\"") == Unit(message: both.message, device: 0))
        #expect(try unit(",\"device_id\":\"d\"") == Unit(message: 0, device: both.device))
        #expect(try unit("") == Unit(message: 0, device: 0))
        harness.app = "other"
        let other = try unit(",\"message_uid\":\"m\",\"device_id\":\"d\"")
        #expect(other.device != both.device && other.message != both.message)
    }

    @Test func anInboxMessageHasTheUnitThatItWouldBe() throws {
        let row = try DecoderHarness.row(
            #"{"type":"received","message_uid":"m","inbox_message_uid":"i","device_id":"d"}"#)
        let inbox = try DecoderHarness.row(
            #"{"type":"inbox_open","inbox_message_uid":"i","device_id":"d"}"#)
        let range = try #require(row.field(.inboxUnit))
        let bytes = Array(row.payload[range])
        let start = inbox.range.lowerBound + 26
        #expect(bytes == Array(inbox.payload[start..<start + 16]))
    }

    @Test func propertiesAreHashedWhereAConflictIsTold() throws {
        func hash(_ members: String) throws -> Int64? {
            try DecoderHarness.row("{\"type\":\"clicked\",\"message_uid\":\"m\"\(members)}")
                .propertiesHash
        }
        #expect(try hash(",\"props\":{\"a\":1}") == nil)
        #expect(try hash(",\"uuid\":1") == nil)
        let one = try #require(try hash(",\"uuid\":1,\"props\":{\"a\":1,\"b\":2}"))
        #expect(try hash(",\"uuid\":2,\"b\":2.0,\"props\":{\"a\":1}") == one)
        #expect(try hash(",\"uuid\":1,\"props\":{\"a\":1,\"b\":3}") != one)
    }

    /// What `dlq replay` and conflicts rely on.
    @Test func aRowWrittenAsJSONIsDecodedToTheSameRow() throws {
        var lines = Self.groups.flatMap(\.self)
        lines += [
            #"{"type":"Inbox_Open","inbox_message_uid":"i\"\\\n","activity_type":"a","activity_uid":"b","sent_at":"2026-11-30T05:59:30Z","occurred_at":"2026-11-30T05:59:20.250Z","opens_app":false,"is_test":true,"x":"\u0000","platform":"IOS"}"#,
            #"{"type":"sent","message_uid":"m","occurred_at":"2026-11-30 05:59:20+00:00"}"#,
            #"{"type":"sent","message_uid":"m","occurred_at":"now","provider":[1],"props":7,"k\"\u0001":"é"}"#,
        ]
        for line in lines {
            var harness = DecoderHarness()
            let row = try harness.decode(line).get()
            let again = try harness.decode(row.json()).get()
            #expect(Array(row.payload[row.range]) == Array(again.payload[again.range]), "\(line)")
        }
    }
}

struct EventDecoderTimeTests {
    @Test func theLinesOwnTimeOfSendingGoesBeforeTheHeaders() throws {
        var harness = DecoderHarness()
        let now = DecoderHarness.received
        harness.sentAtHeader = now - 100_000_000
        let occurred = "\"occurred_at\":\(now / 1_000_000 - 110)"
        let row = try harness.decode("{\"type\":\"launch\",\"device_id\":\"d\",\(occurred)}").get()
        #expect(row.timeRule == .corrected)
        #expect(row.eventTime == now - 10_000_000)
        #expect(row.time(.sentAt) == now - 100_000_000)
        let own = try harness.decode(
            "{\"type\":\"launch\",\"device_id\":\"d\",\(occurred),\"sent_at\":\(now / 1_000_000 - 60)}"
        ).get()
        #expect(own.eventTime == now - 50_000_000)
        #expect(own.key == row.key)
        let unread = try harness.decode(
            "{\"type\":\"launch\",\"device_id\":\"d\",\(occurred),\"sent_at\":\"when\"}"
        ).get()
        #expect(unread.eventTime == now - 10_000_000)
    }

    @Test(arguments: [
        ("\"10013-12-10T01:09:46Z\"", "10013-12-10T01:09:46Z"),
        ("\"-0025-01-01T23:01:01Z\"", "-0025-01-01T23:01:01Z"),
        ("-2147483648", "-2147483648"), ("0", "0"), ("\"infinity\"", "infinity"),
        ("\"now\"", "now"), ("1e18", "1e18"),
        ("\"2026-12-14T06:00:00.0Z\"", "2026-12-14T06:00:00.0Z"), ("\"a\\u0000\"", "a\u{FFFD}"),
        ("1e308", "1e308"),
    ])
    func anAbsurdTimeIsKeptAsSentAndNotBelieved(json: String, raw: String) throws {
        let row = try DecoderHarness.row(
            "{\"type\":\"launch\",\"device_id\":\"d\",\"time\":\(json)}")
        #expect(row.timeRule == .server)
        #expect(row.eventTime == DecoderHarness.received)
        #expect(row.text(.occurredRaw) == raw)
    }

    @Test func aTimeOfAnotherTypeIsKeptInTheProperties() throws {
        let row = try DecoderHarness.row(#"{"type":"sent","message_uid":"m","timestamp":{"s":1}}"#)
        #expect(row.timeRule == .server)
        #expect(row.text(.properties) == #"{"timestamp":{"s":1}}"#)
    }
}
