import Options
import Testing

@Suite struct TerminalTests {
    @Test func aFileIsNoTerminalAndGetsNoColour() {
        let terminal = Terminal(
            descriptor: -1, surroundings: Surroundings(variables: [:], isRoot: false))
        #expect(!terminal.isTerminal)
        #expect(terminal.styled("x", 31) == "x")
        #expect(terminal.columns == 80)
    }

    @Test func aProgressLineFitsItsTerminal() {
        for columns in [1, 20, 39, 40, 80, 200] {
            for fraction in [nil, -1, 0, 0.5, 1, 2] as [Double?] {
                let text = progressText(
                    fraction: fraction, "12 MB 3,000 events/s", columns: columns)
                #expect(text.count < max(columns, 2), "\(columns) \(text)")
            }
        }
        #expect(
            progressText(fraction: 0.5, "x", columns: 31) == "[==========          ]  50% x")
    }

    @Test func numbersAreForPeople() {
        #expect(grouped(0) == "0" && grouped(999) == "999" && grouped(1000) == "1,000")
        #expect(grouped(-1_234_567) == "-1,234,567")
        #expect(humanBytes(812) == "812 B" && humanBytes(14_230_000) == "14.2 MB")
        #expect(humanBytes(999_600) == "1.0 MB")
        #expect(humanSeconds(0.04) == "0.0 s" && humanSeconds(185) == "3 min 05 s")
        #expect(fixed(-0.04, 1) == "0.0" && fixed(12.345, 2) == "12.35")
    }
}
