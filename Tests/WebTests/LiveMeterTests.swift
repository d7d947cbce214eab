import Load
import Testing

@testable import Web

/// Rates and the lag, second by second.
@Suite struct LiveMeterTests {
    static func counters(
        received: Int64, unloaded: Int64, stored: Int64 = 0, isUp: Bool = true,
        oldest: Int64? = nil
    ) -> LiveCounters {
        var books = Books()
        books.received = received
        books.stored = stored
        return LiveCounters(
            books: books, unloaded: unloaded, isDatabaseUp: isUp, oldestUnloaded: oldest,
            spoolBytes: 0, spoolUnloadedBytes: 0, spoolBytesMax: 1)
    }

    /// What a member says after each of the counts, a second apart.
    static func values(_ member: String, _ counters: [LiveCounters]) -> [String] {
        let meter = LiveMeter()
        return counters.enumerated().map { index, counters in
            let json = meter.json(counters, now: 100_000_000 + Int64(index) * 1_000_000)
            let start = json.firstRange(of: "\"\(member)\":")!.upperBound
            return String(json[start...].prefix { $0 != "," && $0 != "}" })
        }
    }

    @Test func ratesAreOfTheLastSecond() {
        let counts = [0, 50, 50, 1050].map { Self.counters(received: $0, unloaded: 0) }
        #expect(Self.values("received_per_second", counts) == ["null", "50.0", "0.0", "1000.0"])
    }

    @Test func whatADatabaseTellsWhenItComesUpIsNoRate() {
        let counts = [
            Self.counters(received: 5, unloaded: 5, isUp: false),
            Self.counters(received: 9, unloaded: 9, isUp: false),
            Self.counters(received: 1_000_009, unloaded: 9, stored: 1_000_000),
            Self.counters(received: 1_000_009, unloaded: 0, stored: 1_000_009),
        ]
        #expect(Self.values("received_per_second", counts) == ["null", "4.0", "null", "0.0"])
        #expect(Self.values("stored_per_second", counts) == ["null", "0.0", "null", "9.0"])
    }

    @Test func theLagIsThatOfTheOldestLineNotLoaded() {
        let counts = [
            Self.counters(received: 100, unloaded: 0), Self.counters(received: 200, unloaded: 100),
            Self.counters(received: 300, unloaded: 200),
            Self.counters(received: 400, unloaded: 250),
            Self.counters(received: 500, unloaded: 250), Self.counters(received: 500, unloaded: 0),
        ]
        // 150 are loaded at the fourth, so what came in the second one waits since then; 250 at the
        // fifth, and the third has come then.
        #expect(
            Self.values("lag_seconds", counts) == ["0.0", "0.0", "1.0", "2.0", "2.0", "0.0"])
    }

    @Test func anOlderBacklogIsAsOldAsTheSpoolSays() {
        let counts = [
            Self.counters(received: 100, unloaded: 100, oldest: 40_000_000),
            Self.counters(received: 100, unloaded: 50, oldest: 40_000_000),
            Self.counters(received: 200, unloaded: 100, oldest: 40_000_000),
        ]
        #expect(Self.values("lag_seconds", counts) == ["60.0", "61.0", "0.0"])
    }
}
