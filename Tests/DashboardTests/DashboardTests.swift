import Foundation
import Testing

/// What `dashboards/`, `deploy/` and `docs/` claim and what `Benchmarks/` rests on, checked on a real
/// daemon by scripts beside this file: Python's standard library, promtool, Prometheus and psql.
@Suite(.serialized) struct DashboardTests {
    @Test(arguments: [
        "test_rules", "test_documents", "test_deploy", "test_openapi", "test_dashboards",
        "test_benchmarks", "test_live",
    ])
    func scriptPasses(script: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-B", "-m", "unittest", script]
        process.currentDirectoryURL = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let failure = "\(script) failed:\n\(String(decoding: text, as: UTF8.self))"
        #expect(process.terminationStatus == 0, Comment(rawValue: failure))
    }
}
