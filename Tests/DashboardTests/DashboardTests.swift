import Glibc
import PythonTesting
import Testing

/// What `dashboards/`, `deploy/` and `docs/` claim and what `Benchmarks/` rests on, checked on a real
/// daemon by scripts beside this file: Python's standard library, promtool, Prometheus and psql.
@Suite(.serialized) struct DashboardTests {
    @Test(arguments: [
        "test_rules", "test_documents", "test_deploy", "test_openapi", "test_dashboards",
        "test_benchmarks", "test_live", "test_report",
    ])
    func scriptPasses(script: String) throws {
        let (status, said) = try PythonScript.run(["-m", "unittest", script], in: "DashboardTests")
        #expect(status == 0, "\(script) failed:\n\(said)")
    }

    @Test func aScriptThatHangsSaysWhere() throws {
        let script = "import threading\ndef hang(): threading.Event().wait()\nhang()"
        let (status, said) = try PythonScript.run(["-c", script], in: "DashboardTests", seconds: 5)
        #expect(status == -SIGABRT && said.contains("line 2 in hang"), "\(said)")
    }
}
