import Foundation
import ProcessTesting
import Testing

/// What `dashboards/`, `deploy/` and `docs/` claim and what `Benchmarks/` rests on, checked on a real
/// daemon by scripts beside this file: Python's standard library, promtool, Prometheus and psql.
@Suite(.serialized) struct DashboardTests {
    @Test(arguments: [
        "test_rules", "test_documents", "test_deploy", "test_openapi", "test_dashboards",
        "test_benchmarks", "test_live",
    ])
    func scriptPasses(script: String) throws {
        let (status, text) = try ProcessTesting.run(
            ["python3", "-B", "-m", "unittest", script],
            in: URL(fileURLWithPath: #filePath).deletingLastPathComponent())
        #expect(status == 0, Comment(rawValue: "\(script) failed:\n\(text)"))
    }
}
