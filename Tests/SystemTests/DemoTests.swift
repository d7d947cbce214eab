import Foundation
import Testing

extension SystemTests {
    /// `tapline demo`: one command, a report at the end, and nothing left.
    @Suite struct DemoTests {
        /// The processes that have a directory in their command line.
        static func processes(of directory: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: "/proc")
                .filter { Int32($0) != nil }
                .compactMap { try? String(contentsOfFile: "/proc/\($0)/cmdline", encoding: .utf8) }
                .filter { $0.contains(directory) }
        }

        @Test func theDemoPrintsAReportAndLeavesNothingRunning() throws {
            let home = TemporaryDirectory()
            let directory = home.path + "/demo"
            let outcome = try Tapline.run(["demo", "--data-dir", directory], seconds: 180)
            #expect(outcome.isSuccess, "\(outcome)")
            #expect(outcome.output.contains("spring-sale") && outcome.output.contains("shop"))
            #expect(outcome.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
            #expect(try Self.processes(of: directory).isEmpty)
            // The commands it suggests work, without a daemon.
            let report = try Tapline.run(
                [
                    "report", "--data-dir", directory, "--format", "json", "--by",
                    "campaign,platform",
                ])
            let json = try JSON(parsing: report.output.utf8)
            #expect(json["campaigns"].items.count >= 20)
            #expect(json["totals"]["clicked"].int ?? 0 > 1000)
            let books = try Tapline.run(["check", "--data-dir", directory, "--format", "json"])
            #expect(books.isSuccess)
            #expect(try JSON(parsing: books.output.utf8)["received"].int ?? 0 >= 200_000)
            #expect(try Self.processes(of: directory).isEmpty)
        }

        @Test func anInterruptedDemoStopsWhatItStarted() throws {
            let home = TemporaryDirectory()
            let directory = home.path + "/demo"
            let demo = try Tapline.start(["demo", "--data-dir", directory])
            try until("the demo has a database", seconds: 60) {
                FileManager.default.fileExists(atPath: directory + "/postgres/data/postmaster.pid")
                    ? true : nil
            }
            demo.signal(SIGINT)
            #expect(try demo.wait(seconds: 30) != .code(0))
            #expect(try Self.processes(of: directory).isEmpty)
        }
    }
}
