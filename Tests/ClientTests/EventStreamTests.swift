import Client
import Testing

@Suite struct EventStreamTests {
    @Test func eventsAreTheSameHoweverTheirBytesCome() {
        let text = Array(
            "retry: 1000\n\nevent: event\ndata: {\"a\":\"\u{E9}\"}\n\n:\n\ndata: x\ndata: y\n\nevent: cut"
                .utf8)
        let events = [
            EventStream.Event(name: "event", data: "{\"a\":\"\u{E9}\"}"),
            EventStream.Event(name: "message", data: "x\ny"),
        ]
        for first in 0...text.count {
            for second in first...text.count {
                var parser = EventParser()
                let found =
                    parser.take(Array(text[..<first])) + parser.take(Array(text[first..<second]))
                    + parser.take(Array(text[second...]))
                #expect(found == events, "\(first) \(second)")
            }
        }
    }
}
