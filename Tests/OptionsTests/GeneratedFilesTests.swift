import Foundation
import Options
import Testing

/// Files that are made from the table of options are the same as the table.
@Suite struct GeneratedFilesTests {
    static func file(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func theManualPageIsTheTable() throws {
        #expect(try Self.file("man/tapline.1") == manPage())
    }

    @Test(arguments: [
        ("bash", "tapline.bash"), ("zsh", "_tapline"), ("fish", "tapline.fish"),
    ]) func aCompletionScriptIsTheTable(shell: String, name: String) throws {
        #expect(try Self.file("completions/\(name)") == completionScript(shell: shell))
    }

    @Test func theSampleConfigurationIsTheTableAndHasTheDefaults() throws {
        let text = try Self.file("deploy/tapline.conf")
        #expect(text == sampleConfig())
        let assignments = text.split(separator: "\n").filter {
            $0.hasPrefix("#") && !$0.hasPrefix("# ") && $0.contains(" = ")
        }.map { $0.dropFirst() }.joined(separator: "\n")
        let entries = try parseConfig(assignments, name: "sample")
        #expect(entries.map(\.key) == SettingSpec.all.map(\.key))
        var settings = ServeSettings()
        for entry in entries {
            #expect(SettingSpec.named(entry.key)?.store(entry.value, in: &settings) == nil)
        }
        #expect(settings.http == HTTPSettings())
        #expect(settings.spool == SpoolSettings())
    }

    @Test func everyCommandHasHelpOfAtMost80Columns() {
        func check(_ command: CommandSpec, _ path: [String]) {
            let text = command.helpText(path: path)
            for line in text.split(separator: "\n") where !line.hasPrefix("  tapline") {
                #expect(line.count <= 80, "\(line)")
            }
            for option in command.options {
                #expect(text.contains("--\(option.name)") != option.hidden)
            }
            for next in command.commands { check(next, path + [next.name]) }
        }
        check(.tapline, [])
    }
}
