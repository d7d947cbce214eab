import Event
import Testing

@testable import Load

/// A repeatable source of keys (SplitMix64, Sebastiano Vigna, public domain).
struct KeySource {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func key() -> Identity { Identity(high: next(), low: next()) }
}

@Suite struct KeyTableTests {
    @Test func agreesWithADictionaryThroughGrowth() {
        var source = KeySource(state: 1)
        var table = KeyTable()
        var reference: [Identity: EventContent] = [:]
        var disagreements = 0
        for round in 0..<50_000 {
            // A narrow range of seeds makes repeats.
            var seeded = KeySource(state: source.next() % 30_000)
            let key = seeded.key()
            let content = EventContent(campaign: UInt64(round), properties: 0)
            if table.insert(key, content) != reference[key] { disagreements += 1 }
            if reference[key] == nil { reference[key] = content }
        }
        #expect(disagreements == 0)
        #expect(table.count == reference.count)
        let zero = Identity(high: 0, low: 0)
        #expect(table.insert(zero, EventContent(campaign: 9, properties: 0)) == nil)
        #expect(table.content(of: zero)?.campaign == 9)
        let absent = table.content(of: Identity(high: 8, low: 1))
        #expect(absent == nil)
    }

    @Test func removeAllForgetsEveryKey() {
        var table = KeyTable()
        let key = Identity(high: 3, low: 4)
        table.insert(key, EventContent(campaign: 1, properties: 2))
        table.removeAll()
        let content = table.content(of: key)
        let count = table.count
        #expect(content == nil && count == 0)
    }
}

@Suite struct KeyFilterTests {
    @Test func neverForgetsAndSeldomInvents() {
        var source = KeySource(state: 2)
        let keys = (0..<100_000).map { _ in source.key() }
        var filter = KeyFilter(keys: keys.count)
        for key in keys { filter.insert(key) }
        var missing = 0
        for key in keys where !filter.mayContain(key) { missing += 1 }
        #expect(missing == 0)
        var invented = 0
        for _ in 0..<100_000 where filter.mayContain(source.key()) { invented += 1 }
        #expect(invented < 200, "false positives in 100 000: \(invented)")
    }
}

@Suite struct EventContentTests {
    @Test(arguments: [
        // stored campaign, properties; incoming campaign, properties; conflict?
        (1, 1, 1, 1, false), (1, 0, 2, 0, true), (0, 0, 2, 0, false), (1, 0, 0, 0, false),
        (1, 5, 1, 6, true), (1, 5, 1, 0, false), (1, 0, 1, 6, false), (1, 5, 2, 5, true),
    ])
    func onlyAFieldThatBothCarryMakesAConflict(
        _ row: (UInt64, UInt64, UInt64, UInt64, Bool)
    ) {
        let stored = EventContent(campaign: row.0, properties: row.1)
        let verdict = stored.verdict(for: EventContent(campaign: row.2, properties: row.3))
        #expect((verdict == .conflict) == row.4)
    }
}
