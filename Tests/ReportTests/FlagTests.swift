import Report
import Testing

@Suite struct FlagTests {
    /// Units of a version, some of them clicked.
    static func units(_ version: String?, _ count: Int, clicked: Int) -> [Seed] {
        (0..<count).flatMap { number in
            let message = "\(version ?? "none")-\(number)"
            let seed = Seed(.received, message).with { $0.version = version }
            return number < clicked ? [seed, Seed(.clicked, message, at: 1)] : [seed]
        }
    }

    @Test func aVersionIsComparedWithTheOneBeforeItThatHasEnoughUnits() throws {
        let base = try ReportBase()
        try base.add(
            Self.units(nil, 40, clicked: 39) + Self.units("5.9", 40, clicked: 18)
                + Self.units("5.10", 30, clicked: 0) + Self.units("5.11", 40, clicked: 5)
                + Self.units("5.12", 40, clicked: 4))
        let report = try base.report { try $0.set("by", "app_version") }
        let flagged = report.rows.filter { !$0.flags.isEmpty }
        #expect(flagged.map(\.dimensions) == [["5.11"]])
        #expect(flagged.map(\.flags) == [["ctr_drop"]])
    }
}
