import Foundation
import Testing

extension SystemTests {
    /// Bad usage: one clear line on stderr, nothing on stdout, the right exit code.
    @Suite struct UsageTests {
        static func expectOneComplaint(
            _ outcome: Outcome, sourceLocation: SourceLocation = #_sourceLocation
        ) {
            #expect(
                outcome.complaints.filter { !$0.contains(" INFO ") }.count == 1, "\(outcome)",
                sourceLocation: sourceLocation)
            #expect(outcome.output.isEmpty, sourceLocation: sourceLocation)
        }

        struct Wrong: CustomTestStringConvertible, Sendable {
            let exit: Int32
            let arguments: [String]
            /// Words of the complaint.
            let words: [String]
            var testDescription: String { arguments.joined(separator: " ") }

            init(_ exit: Int32, _ line: String, _ words: String...) {
                self.exit = exit
                arguments = line.split(separator: " ").map { String($0).replacing("~", with: " ") }
                self.words = words
            }
        }

        static let unreachable = "host=127.0.0.1~port=1~connect_timeout=2~dbname=x"

        static let wrong: [Wrong] = [
            Wrong(2, "srve", "srve", "serve"),
            Wrong(2, "serve --lisen 1", "--lisen", "--listen"),
            Wrong(2, "serve --listen nonsense", "nonsense"),
            Wrong(2, "serve --set spool.bytes_max=many", "spool.bytes_max", "many"),
            Wrong(2, "serve --set spool.color=red", "spool.color"),
            Wrong(1, "serve --config /nonexistent.conf", "/nonexistent.conf"),
            Wrong(2, "report --from yesterday", "from", "yesterday"),
            Wrong(2, "report --to 2026-02-30", "to", "2026-02-30"),
            Wrong(2, "report --tz Mars/Olympus", "--tz", "Mars/Olympus"),
            Wrong(2, "report --as-of soon", "as-of", "soon"),
            Wrong(2, "report --by weather", "by", "weather"),
            Wrong(2, "report --format yaml", "--format", "yaml"),
            Wrong(2, "key create", "--app"),
            Wrong(2, "key create --app a --role king", "--role", "king"),
            Wrong(2, "send", "FILE"),
            Wrong(2, "send --batch 0 x.ndjson", "--batch", "0"),
            Wrong(1, "send --key k /nonexistent.ndjson", "/nonexistent.ndjson"),
            Wrong(1, "report --database \(unreachable)", "database"),
            Wrong(1, "check --database \(unreachable)", "database"),
            Wrong(1, "key create --app a --database \(unreachable)", "database"),
            Wrong(1, "migrate --database \(unreachable)", "database"),
            Wrong(1, "serve --listen 192.0.2.1:0 --database \(unreachable)", "192.0.2.1"),
        ]

        @Test(arguments: wrong) func badUsageIsSaidInOneLine(wrong: Wrong) throws {
            let home = TemporaryDirectory()
            let outcome = try Tapline.run(
                wrong.arguments,
                environment: [
                    "TAPLINE_DATA_DIR": home.path + "/d",
                    "DATABASE_URL": try Shared.daemon.conninfo,
                ], seconds: 60)
            // A missing setting file may count as usage.
            let isFile = wrong.arguments.contains("--config")
            #expect(outcome.exit == .code(wrong.exit) || isFile && outcome.exit == .code(2))
            Self.expectOneComplaint(outcome)
            for word in wrong.words {
                #expect(outcome.error.contains(word), "\(outcome.error)")
            }
        }

        @Test func aPortInUseIsNamed() throws {
            let shared = try Shared.daemon
            let home = TemporaryDirectory()
            let outcome = try Tapline.run([
                "serve", "--listen", "127.0.0.1:\(shared.port)", "--data-dir", home.path + "/d",
                "--database", shared.conninfo,
            ])
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains("\(shared.port)"))
            Self.expectOneComplaint(outcome)
        }

        @Test func aDataDirectoryThatIsAFileIsNamed() throws {
            let home = TemporaryDirectory()
            let file = try home.file("spool", "not a directory")
            let outcome = try Tapline.run([
                "serve", "--listen", "127.0.0.1:0", "--data-dir", file, "--database",
                try Shared.daemon.conninfo,
            ])
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains(file))
            Self.expectOneComplaint(outcome)
        }

        @Test(arguments: ["spool", "spool/x"]) func aSpoolThatCannotBeReadIsNamed(
            name: String
        ) throws {
            let home = TemporaryDirectory()
            try FileManager.default.createDirectory(
                atPath: home.path + "/d", withIntermediateDirectories: true)
            // A file where a directory is needed stops root too, unlike permissions.
            if name == "spool" {
                _ = try home.file("d/spool", "not a directory")
            } else {
                try FileManager.default.createSymbolicLink(
                    atPath: home.path + "/d/spool", withDestinationPath: "/proc/1/nonexistent")
            }
            let outcome = try Tapline.run([
                "serve", "--listen", "127.0.0.1:0", "--data-dir", home.path + "/d", "--database",
                try Shared.daemon.conninfo,
            ])
            #expect(outcome.exit == .code(1))
            #expect(outcome.error.contains("spool"))
            Self.expectOneComplaint(outcome)
        }

        @Test(arguments: ["--help", "--version", "help", "serve --help", "help report"])
        func helpGoesToStdoutAndIsSuccess(line: String) throws {
            let outcome = try Tapline.run(line.split(separator: " ").map(String.init))
            #expect(outcome.isSuccess && outcome.error.isEmpty)
            #expect(outcome.output.contains("tapline"))
        }

        @Test func settingsAreCheckedAndShownWithTheirSource() throws {
            let home = TemporaryDirectory()
            let file = try home.file("tapline.conf", "spool.bytes_max = 2GiB\n")
            let arguments = ["serve", "--config", file, "--data-dir", home.path + "/d"]
            let outcome = try Tapline.run(
                arguments + ["--print-config"], environment: ["TAPLINE_LOG_LEVEL": "debug"])
            #expect(outcome.isSuccess)
            #expect(outcome.output.contains("spool.bytes_max") && outcome.output.contains(file))
            #expect(outcome.output.contains("TAPLINE_LOG_LEVEL"))
            #expect(try Tapline.run(arguments + ["--check-config"]).isSuccess)
            let broken = try home.file("broken.conf", "spool.bytes_max = 2GiB\nnonsense\n")
            let refused = try Tapline.run(["serve", "--config", broken, "--check-config"])
            #expect(refused.exit == .code(2) || refused.exit == .code(1))
            #expect(refused.error.contains("broken.conf:2"))
        }
    }
}
