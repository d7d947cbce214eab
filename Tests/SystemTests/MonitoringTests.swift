import Foundation
import Testing

extension SystemTests {
    /// What ops look at.
    @Suite struct MonitoringTests {
        @Test(arguments: ["/healthz", "/readyz"]) func probesAnswer200(path: String) throws {
            let daemon = try Shared.daemon
            #expect(try daemon.get(path).status == 200)
            #expect(try daemon.send(Request(method: "HEAD", target: path)).status == 200)
        }

        @Test func metricsHoldEveryTermOfTheBooks() throws {
            let app = try Shared.app()
            try app.store([App.click("m"), App.click("m"), "{}"])
            let daemon = app.daemon
            try daemon.waitUntilLoaded()
            var sum = 0.0
            for term in ["stored", "duplicate", "conflict", "rejected", "dead_lettered"] {
                sum += try daemon.metric("tapline_events_\(term)_total")
            }
            #expect(try daemon.metric("tapline_events_received_total") == sum)
            let text = try daemon.get("/metrics").text
            for name in ["tapline_acknowledge_seconds", "tapline_load_batch_seconds"] {
                #expect(text.contains("# TYPE \(name) histogram"))
                #expect(text.contains("\(name)_bucket{le=\"+Inf\"}"))
            }
            let type = try #require(try daemon.get("/metrics").header("content-type"))
            #expect(type.hasPrefix("text/plain; version=0.0.4"))
        }

        @Test func openFilesAreCountedWithTheConnections() throws {
            let daemon = try Daemon().start()
            let connections = try (0..<100).map { _ in try daemon.connect() }
            try until("all are taken") {
                try daemon.metric("tapline_http_connections") > 100 ? true : nil
            }
            let pid = try #require(daemon.process).pid
            let listed = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")
            let counted = try Int(daemon.metric("process_open_fds"))
            // The connection of the request, and what other threads open and close meanwhile.
            #expect(abs(counted - listed.count) <= 8, "\(counted) of \(listed.count)")
            #expect(counted > connections.count)
            #expect(try daemon.stop() == .code(0))
        }

        static let promtool = ["/usr/bin/promtool", "/usr/local/bin/promtool"]
            .first { FileManager.default.isExecutableFile(atPath: $0) }

        @Test(.enabled(if: promtool != nil)) func promtoolFindsNothingToSay() throws {
            let directory = TemporaryDirectory()
            let file = try directory.file("metrics", try Shared.daemon.get("/metrics").body)
            try Tapline.tool([Self.promtool!, "check", "metrics"], input: file)
        }
    }
}
