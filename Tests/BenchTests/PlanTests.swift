import Bench
import Event
import JSONLines
import Testing

/// The events of a run are a function of its numbers.
@Suite struct PlanTests {
    static let plan = BenchPlan(
        seed: 42, events: 4000, batch: 300, start: 1_764_522_000_123_000, delay: 3_600_000_000)

    @Test func aRunMakesTheSameBytesForEver() {
        let lines = EventMaker(Self.plan).lines(ofBody: 0)
        #expect(lines == EventMaker(Self.plan).lines(ofBody: 0))
        // A log can be checked by a later version only if it makes the same events.
        let digest = sha256(lines).prefix(8).map { String($0, radix: 16) }.joined(separator: ".")
        #expect(digest == "1a.20.54.eb.4e.1e.85.ee")
    }

    @Test func anotherSeedMakesOtherIds() {
        var other = Self.plan
        other.seed = 43
        let text = String(decoding: EventMaker(other).lines(ofBody: 0), as: UTF8.self)
        #expect(text.contains("bench-2b-m0") && !text.contains("-2a-"))
    }

    @Test func everyKindOfEventIsThere() {
        let events = (0..<Self.plan.events).map { BenchEvent($0, of: Self.plan) }
        for type in [
            EventType.custom, .sent, .failed, .received, .displayed, .consumed, .clicked, .action,
            .dismissed, .inboxOpen, .launch, .conversion,
        ] {
            #expect(events.contains { $0.type == type }, "\(type)")
        }
        #expect(events.contains { $0.kind == .sent && $0.device == nil })
        #expect(events.contains { $0.kind == .clicked && !$0.namesCampaign })
        #expect(Set(events.map(\.campaignOfMessage)).count == 5)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 63, 64, 65, 1000]) func aShuffledRunSendsEachEventOnce(
        events: Int
    ) {
        let plan = BenchPlan(seed: 9, events: events, batch: 7, isShuffled: true)
        var numbers: [Int] = []
        for body in 0..<plan.bodies { plan.forEachNumber(ofBody: body) { numbers.append($0) } }
        #expect(numbers.sorted() == Array(0..<events))
        #expect(events < 60 || numbers != Array(0..<events))
    }

    @Test func anIdentityGivesItsNumberBack() {
        let maker = EventMaker(Self.plan)
        for number in 0..<Self.plan.events {
            let event = maker.event(number)
            let found = Self.number(
                maker, message: event.message.map { "bench-2a-m\($0)" },
                event: event.hasEventUID ? "bench-2a-e\(number)" : nil, event.type,
                "\(event.word)")
            #expect(found == number)
        }
    }

    @Test(arguments: [
        "bench-2a-e05", "bench-2a-e", "bench-2a-e4005", "bench-2b-e5", "bench-2a-m5",
        "bench-2a-e5 ", "bench-2a-e-5", "bench-2a-e99999999999999999999", "e5", "",
    ]) func anIdThatWasNeverMadeHasNoNumber(id: String) {
        let maker = EventMaker(Self.plan)
        #expect(Self.number(maker, message: nil, event: "bench-2a-e5", .launch, "") == 5)
        #expect(Self.number(maker, message: nil, event: id, .launch, "") == nil)
        let ofMessage = Self.number(maker, message: id, event: nil, .sent, "")
        #expect(ofMessage == (id == "bench-2a-m5" ? 40 : nil))
    }

    private static func number(
        _ maker: EventMaker, message: String?, event: String?, _ type: EventType, _ word: String
    ) -> Int? {
        let message = message.map { Array($0.utf8) }
        let event = event.map { Array($0.utf8) }
        let word = Array(word.utf8)
        return maker.number(
            messageUID: message?.rawSpan, eventUID: event?.rawSpan, type: type,
            typeRaw: word.rawSpan)
    }
}
