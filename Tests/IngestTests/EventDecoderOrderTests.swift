import Event
import JSONLines
import Testing

@testable import Ingest

/// A decoder expects the fields of a line in the order of the lines before; that must change nothing.
struct EventDecoderOrderTests {
    private static let lines = [
        #"{"type":"clicked","message_uid":"m","device_id":"d","event_uid":"e","platform":"iOS"}"#,
        #"{"device_id":"d","type":"clicked","message_uid":"m","event_uid":"e","extra":"aaaaaaaaaaaaaaa"}"#,
        #"{"extra":"aaaaaaaaaaaaaaaaaaaaaaa","type":"received","message_uid":"m","device_id":"d"}"#,
        #"{"type":"received","type":"clicked","message_uid":"m","device_id":null,"event_uid":"eeeeee"}"#,
        #"{"type":null,"kind":"shared","message_uid":"m","device_id":"d","event_uid":"eeeeeeeeeeeeeee"}"#,
        #"{ "type" : "clicked", "message_uid" : "m", "device_id" : "d", "props" : {"a":10,"b":[]} }"#,
        #"{"t\u0079pe":"clicked","message_uid":"m","device_id":"\ud800","event_uid":"eeeeeeeeeeeeeee"}"#,
        #"{"type":"clicked","message_uids":"m","device_id":"d","event_uid":"eeeeeeeeeeeeeeeeeeeeeeee"}"#,
        #"{"type":"clicked","message_uid":7,"device_id":{},"event_uid":"eeeeeeeeeeeeeeeeeeeeeeeeeee"}"#,
        #"{"type":"clicked","message_uid":"m","device_id":"d","event_uid":"e""#,
        #"{"type":"clicked","message_uid":"m","device_id":"d","event_uid""#, "[]", "",
    ].map { Array($0.utf8) }

    private static func isEqual(
        _ left: Result<EventRow, Rejection>, _ right: Result<EventRow, Rejection>
    ) -> Bool {
        switch (left, right) {
        case (.success(let left), .success(let right)):
            left.payload[left.range] == right.payload[right.range]
        case (.failure(let left), .failure(let right)): left == right
        default: false
        }
    }

    @Test func aLineComesOutTheSameAfterAnyOther() {
        for line in Self.lines {
            var fresh = DecoderHarness()
            let expected = fresh.decode(line)
            for other in Self.lines {
                var harness = DecoderHarness()
                _ = harness.decode(other)
                // The second time all keys of the other line are expected.
                _ = harness.decode(other)
                for _ in 0..<3 {
                    let found = harness.decode(line)
                    let text = String(decoding: line, as: UTF8.self)
                    #expect(
                        Self.isEqual(found, expected),
                        "\(text) after \(String(decoding: other, as: UTF8.self))")
                }
            }
        }
    }
}
