import Sample
import Testing

@Suite struct SampleTests {
    /// 2026-11-30, midnight.
    static let anchor: Int64 = 1_795_996_800

    static func make(
        _ app: SampleApp, percent: Int = 3, orderFree: Bool = false
    ) -> SampleOutput {
        var options = SampleOptions(anchorSeconds: anchor)
        options.percent = percent
        options.isOrderFree = orderFree
        return Sample.lines(app: app, options: options)
    }

    /// FNV-1a, 64 bits.
    static func hash(_ bytes: [UInt8]) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    static func lines(_ output: SampleOutput) -> [[UInt8]] {
        output.bytes.split(separator: 0x0A).map(Array.init)
    }

    @Test func theNumbersAreSplitMix64() {
        var random = SplitMix64(seed: 0)
        #expect(random.next() == 0xE220_A839_7B1D_CDAF)
        #expect(random.next() == 0x6E78_9E6A_A1B9_65F4)
    }

    @Test(arguments: [
        (SampleApp.shop, 0x535C_78A4_39A7_237D as UInt64), (.news, 0x580F_E3BA_D686_91E7),
        (.games, 0x4652_02EA_9FE0_E24A),
    ]) func theBytesAreTheSameOnEveryMachine(app: SampleApp, hash: UInt64) {
        #expect(Self.hash(Self.make(app, percent: 2).bytes) == hash)
    }

    @Test func anotherAnchorMovesOnlyTimes() {
        var options = SampleOptions(anchorSeconds: Self.anchor)
        options.percent = 2
        let first = Sample.lines(app: .shop, options: options)
        options.anchorSeconds += 86_400
        let second = Sample.lines(app: .shop, options: options)
        #expect(first.types == second.types)
        #expect(first.lines == second.lines)
        #expect(first.bytes != second.bytes)
    }

    @Test(arguments: SampleApp.allCases) func everyLineIsAccountedFor(app: SampleApp) {
        let output = Self.make(app)
        #expect(output.lines == output.good + output.rejected)
        #expect(Self.lines(output).count { $0 != [0x0D] } == output.lines)
        #expect(output.types.values.reduce(0, +) == output.distinct)
        #expect(output.bytes.last == 0x0A)
        for kind in BadLine.allCases {
            #expect(output.bad[kind] == (kind == .tooLong ? 1 : 7), "\(kind)")
        }
    }

    @Test func theWholeSampleHasMoreThan200000DistinctEvents() {
        // Counted on a tenth, which is cheap in a debug build; sizes grow with the percentage.
        let outputs = SampleApp.allCases.map { Self.make($0, percent: 10) }
        #expect(outputs.map(\.distinct).reduce(0, +) > 20_000)
        #expect(outputs.map(\.duplicates).reduce(0, +) > 500)
        #expect(outputs.map(\.conflicts).reduce(0, +) > 0)
    }

    @Test func theAppsHaveTheirHabits() {
        let shop = Self.make(.shop).types
        let news = Self.make(.news).types
        let games = Self.make(.games).types
        for type in ["sent", "received", "displayed", "consumed", "clicked", "failed"] {
            #expect(shop[type, default: 0] > 0, "\(type)")
        }
        for type in ["action", "inbox_received", "inbox_open", "confirmed", "dismissed"] {
            #expect(news[type, default: 0] > 0, "\(type)")
        }
        #expect(shop["conversion", default: 0] > 0)
        #expect(games["sent"] == nil)
        #expect(games["clicked", default: 0] > 0)
    }

    @Test(arguments: SampleApp.allCases) func whatArrivalDecidesCanBeLeftOut(app: SampleApp) {
        let output = Self.make(app, orderFree: true)
        #expect(output.conflicts == 0)
        #expect(output.duplicates > 0)
        // Repeats are the same bytes then, so distinct good lines are as many as distinct events.
        let text = Set(
            Self.lines(output).map { $0.last == 0x0D ? Array($0.dropLast()) : $0 })
        #expect(text.count - text.count { $0.isEmpty } >= output.distinct)
        let needle = Array("sent_at".utf8)
        #expect(!Self.lines(output).contains { $0.firstRange(of: needle) != nil })
    }

    @Test func oddThingsAreInside() {
        let text = String(
            decoding: SampleApp.allCases.flatMap { Self.make($0).bytes }, as: UTF8.self)
        for odd in [
            "\\u0000", "\\ud83d\"", "👋🏽", "\"battery\":", "\"is_test\":true", "\"silent\":true",
            "push_receive", "clickthru", "\"opens_app\":false", "\"sent_at\":", "activity_type",
            "\"campaign_id\":4101", "\r\n", "\n\n", "+02:00", "000,\"platform\"",
        ] {
            #expect(text.contains(odd), "\(odd.debugDescription)")
        }
    }
}
