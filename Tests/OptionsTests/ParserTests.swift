import Options
import Testing

@Suite struct ParserTests {
    static func parse(_ line: String) throws -> Invocation {
        try Options.parse(line.split(separator: " ").map(String.init), root: .tapline)
    }

    struct DoesNotRun: Error {}

    static func run(_ line: String) throws -> Parsed {
        guard case .run(let parsed) = try parse(line) else {
            throw DoesNotRun()
        }
        return parsed
    }

    @Test(arguments: ["report --format csv", "report --format=csv"])
    func aValueFollowsItsOptionOrAnEqualsSign(line: String) throws {
        let parsed = try Self.run(line)
        #expect(parsed.path == ["report"])
        #expect(parsed.value("format") == "csv")
    }

    @Test func optionsAndOperandsMixUntilTwoDashes() throws {
        let parsed = try Self.run("send a --batch 7 - b -- --batch -V")
        #expect(parsed.operands == ["a", "-", "b", "--batch", "-V"])
        #expect(parsed.number("batch") == 7)
    }

    @Test func theLastValueWinsUnlessTheOptionRepeats() throws {
        #expect(try Self.run("report --app a --app=b").value("app") == "b")
        let parsed = try Self.run("serve --set a=1 --set b=2")
        #expect(parsed.all("set") == ["a=1", "b=2"])
    }

    @Test func anEmptyValueAndOneThatLooksNegativeAreValues() throws {
        #expect(try Self.run("report --app=").value("app") == "")
        #expect(try Self.run("report --app -1").value("app") == "-1")
    }

    @Test func nestedCommandsAreFound() throws {
        #expect(try Self.run("key create --app shop").path == ["key", "create"])
    }

    @Test(arguments: ["--help", "-h"]) func helpWinsOverWhatFollows(flag: String) throws {
        #expect(try Self.parse("\(flag) frob") == .help(path: []))
        #expect(try Self.parse("key create \(flag) --frob") == .help(path: ["key", "create"]))
    }

    @Test(arguments: ["--version", "-V", "report -V"]) func versionIsEverywhere(
        line: String
    ) throws {
        #expect(try Self.parse(line) == .version)
    }

    @Test(arguments: [
        (
            "report --form csv",
            "tapline report: unknown option \"--form\" (did you mean --format?)"
        ),
        ("report --xyzzy", "tapline report: unknown option \"--xyzzy\""),
        ("report -x", "tapline report: unknown option \"-x\""),
        ("serv", "tapline: unknown command \"serv\" (did you mean serve?)"),
        ("key crate", "tapline key: unknown command \"crate\" (did you mean create?)"),
        ("key", "tapline key: expected a command: create, list, revoke"),
        ("report --format", "tapline report: option --format needs a value"),
        ("report --app --from 7d", "tapline report: option --app needs a value"),
        ("demo --keep=yes", "tapline demo: option --keep takes no value"),
        (
            "report --format xml",
            "tapline report: --format is \"xml\", expected table, json, ndjson, csv or html"
        ),
        (
            "send --batch 0 x",
            "tapline send: --batch is \"0\", expected a number from 1 to 1000000"
        ),
        (
            "send --retry-for 10 x",
            "tapline send: --retry-for is \"10\", expected a duration such as 24h, 30s or 500ms"
        ),
        ("key create", "tapline key create: option --app is required"),
        ("send", "tapline send: expected FILE"),
        ("check now", "tapline check: unexpected argument \"now\""),
        ("completion tcsh", "tapline completion: SHELL is \"tcsh\", expected bash, zsh or fish"),
    ]) func aWrongCommandLineIsNamed(line: String, message: String) {
        let error = #expect(throws: OptionsError.self) { try Self.parse(line) }
        #expect(error?.message == message)
    }

    @Test func controlCharactersInAComplaintAreVisible() {
        #expect(quoted("a\u{1B}[31m\"\n") == "\"a\\u{1b}[31m\\\"\\u{a}\"")
    }
}
