import Foundation
import Testing

extension SystemTests {
    /// Of every fault the operator sees one clear line with the reason and what to do, and a metric.
    ///
    /// What a person has to mend in the database is in ``ConfigurationFaultTests``, which asks the same of
    /// each of its faults.
    @Suite struct FaultReportTests {
        /// A database, a daemon on it, and an app; the database has what was sent before.
        final class Site {
            let cluster: Cluster
            let proxy: DatabaseProxy
            let daemon: Daemon
            let app: App
            /// What a fault has to hold on to.
            var held: [Any] = []

            init(_ settings: [String: String], isDebug: Bool) throws {
                cluster = try Cluster()
                proxy = try DatabaseProxy(cluster)
                daemon = try Daemon(
                    database: proxy.conninfo(),
                    settings: settings.merging(["load.batch_age_ms": "20"]) { own, _ in own })
                if isDebug { daemon.binary = FailpointTests.binary }
                try daemon.start()
                app = try App(daemon)
                try app.store([App.click("before")])
            }

            /// Stops the database and fills some segments.
            func spool(bodies: Int) throws {
                try cluster.stop(.fast)
                for index in 0..<bodies {
                    #expect(try app.post(SpoolFaultTests.bulk("b\(index)").text).status == 200)
                }
            }

            func segment(_ number: Int) -> String {
                daemon.directory + "/spool/" + String(format: "%012d.seg", number)
            }
        }

        struct Fault: CustomTestStringConvertible, Sendable {
            let testDescription: String
            let level: String
            /// What the line says, and the line after it; nil where there is nothing to do.
            let words: String
            let hint: String?
            /// A metric that is zero before, and above it then.
            let metric: String
            let settings: [String: String]
            let isDebug: Bool
            let harm: @Sendable (Site) throws -> Void

            init(
                _ name: String, _ level: String, _ words: String, hint: String?, metric: String,
                settings: [String: String] = [:], isDebug: Bool = false,
                _ harm: @escaping @Sendable (Site) throws -> Void
            ) {
                testDescription = name
                self.level = level
                self.words = words
                self.hint = hint
                self.metric = metric
                self.settings = settings
                self.isDebug = isDebug
                self.harm = harm
            }
        }

        static let database: [Fault] = [
            Fault(
                "PostgreSQL is stopped", "WARN", "loading waits: could not connect",
                hint: "Check that PostgreSQL runs",
                metric: "tapline_load_failures_total{reason=\"connection\"}"
            ) { site in
                try site.cluster.stop(.fast)
                _ = try site.app.post(App.click("m"))
            },
            Fault(
                "the postmaster is killed", "WARN", "loading waits: could not connect",
                hint: "Check that PostgreSQL runs",
                metric: "tapline_load_failures_total{reason=\"connection\"}"
            ) { site in
                try site.cluster.kill()
                _ = try site.app.post(App.click("m"))
            },
            Fault(
                "the server says nothing", "WARN", "says nothing for 6000 ms",
                hint: "Check that PostgreSQL runs",
                metric: "tapline_load_failures_total{reason=\"connection\"}",
                settings: ["load.statement_timeout": "1s"]
            ) { site in
                site.proxy.set(.swallow)
                _ = try site.app.post(App.click("m"))
            },
            Fault(
                "one row is refused", "ERROR", "kept as a dead letter", hint: "tapline dlq list",
                metric: "tapline_events_dead_lettered_total"
            ) { site in
                try site.daemon.sql().rows(
                    "ALTER TABLE tapline.event_1 ADD CONSTRAINT poison CHECK (campaign_id <> 'p')")
                try site.app.store([App.click("bad", #","campaign_id":"p""#), App.click("good")])
            },
            Fault(
                "a partition is dropped", "ERROR", "partition tapline.event_1 is gone",
                hint: "restore a backup",
                metric: "tapline_load_failures_total{reason=\"configuration\"}"
            ) { site in
                try site.daemon.sql().rows("DROP TABLE tapline.event_1")
                try site.app.store([App.click("m")])
            },
            Fault(
                "a partition is detached", "ERROR",
                "partition tapline.event_1 was detached with its 1 events",
                hint: "did not see them", metric: "tapline_partitions_detached_total"
            ) { site in
                try site.daemon.sql().rows(
                    "ALTER TABLE tapline.event DETACH PARTITION tapline.event_1")
            },
            Fault(
                "another daemon has a copy of the spool", "ERROR", "another daemon loads spool",
                hint: "stop one", metric: "tapline_load_failures_total{reason=\"fenced\"}"
            ) { site in
                let other = try Daemon(database: site.proxy.conninfo())
                #expect(try site.daemon.stop() == .code(0))
                try Tapline.tool(["cp", "-a", site.daemon.directory, other.directory])
                try other.start()
                try other.store([App.click("other")], key: site.app.key)
                site.held.append(other)
                try site.daemon.start()
                _ = try site.app.post(App.click("m"))
            },
        ]

        static let spool: [Fault] = [
            Fault(
                "too much waits", "ERROR", "wait to be loaded, limit is",
                hint: "raise spool.bytes_max",
                metric: "tapline_http_responses_total{status=\"503\"}",
                settings: ["spool.bytes_max": "1MiB", "spool.segment_bytes_max": "256KiB"]
            ) { site in
                try site.cluster.stop(.fast)
                _ = try SpoolFaultTests.fill(site.app, "full")
            },
            Fault(
                "a sync fails", "ERROR", "could not append to spool segment",
                hint: "Nothing of it is acknowledged", metric: "tapline_spool_failures_total",
                isDebug: true
            ) { site in
                #expect(try site.daemon.stop() == .code(0))
                site.daemon.environment = ["TAPLINE_FAILPOINTS": "spool.sync.before=eio%2"]
                try site.daemon.start()
                for index in 0..<2 { _ = try site.app.post(App.click("m\(index)")) }
            },
            Fault(
                "a record is damaged", "ERROR", "spool records cannot be read",
                hint: "tapline check", metric: "tapline_spool_quarantined_records"
            ) { site in
                try site.spool(bodies: 3)
                try site.daemon.kill()
                let file = try #require(FileHandle(forUpdatingAtPath: site.segment(1)))
                let used = try #require(try file.readToEnd()?.lastIndex { $0 != 0 })
                try file.seek(toOffset: UInt64(used / 2))
                try file.write(contentsOf: Data(repeating: 0x2A, count: 64))
                try file.close()
                try site.cluster.start()
                try site.daemon.start()
            },
            Fault(
                "a segment is gone", "ERROR", "spool segment is missing", hint: "Put it back",
                metric: "tapline_spool_missing_segments",
                settings: ["spool.segment_bytes_max": "64KiB"]
            ) { site in
                try site.spool(bodies: 5)
                try site.daemon.kill()
                try FileManager.default.removeItem(atPath: site.segment(3))
                try site.cluster.start()
                try site.daemon.start()
            },
            Fault(
                "a write was not finished", "WARN", "torn tail of the spool cut off", hint: nil,
                metric: "tapline_spool_torn_tails"
            ) { site in
                try site.spool(bodies: 2)
                try site.daemon.kill()
                let file = try #require(FileHandle(forUpdatingAtPath: site.segment(1)))
                let used = try #require(try file.readToEnd()?.lastIndex { $0 != 0 })
                try file.truncate(atOffset: UInt64(used - 100))
                try file.close()
                try site.daemon.start()
            },
        ]

        static let http: [Fault] = [
            Fault(
                "a key sends too many requests", "WARN", "refusing with 429",
                hint: "Raise http.key_requests_per_second_max",
                metric: "tapline_http_rate_limited_total{limit=\"requests\"}",
                settings: ["http.key_requests_per_second_max": "2"]
            ) { site in
                while try site.app.post(App.click("m")).status == 200 {}
            },
            Fault(
                "too many connections in all", "WARN", "12 connections are open",
                hint: "Raise http.connections_max",
                metric: "tapline_http_connections_refused_total{limit=\"all\"}",
                settings: ["http.connections_max": "12"]
            ) { site in try Self.hold(20, site) },
            Fault(
                "too many connections of one address", "WARN",
                "one address has 12 connections open",
                hint: "Raise http.connections_per_address_max",
                metric: "tapline_http_connections_refused_total{limit=\"address\"}",
                settings: ["http.connections_per_address_max": "12"]
            ) { site in try Self.hold(20, site) },
            Fault(
                "connections of one address in storms", "WARN",
                "one address opens more than 20 connections a second",
                hint: "Raise http.address_connections_per_second_max",
                metric: "tapline_http_connections_refused_total{limit=\"rate\"}",
                settings: [
                    "http.address_connections_per_second_max": "20",
                    "http.connections_per_address_max": "20",
                ]
            ) { site in
                for _ in 0..<100 { _ = try Connection(port: site.daemon.port, source: 3) }
            },
        ]

        /// Holds connections until the daemon has them all, and lets them go.
        static func hold(_ count: Int, _ site: Site) throws {
            let held = try (0..<count).map { _ in
                try Connection(port: site.daemon.port, source: 3)
            }
            try until("it says so\n\(site.daemon.log)") {
                site.daemon.log.contains("refusing more") ? true : nil
            }
            withExtendedLifetime(held) {}
        }

        static let faults = database + spool + http

        @Test(arguments: faults) func aFaultIsOneLineWithReasonAndHintAndAMetric(
            fault: Fault
        ) throws {
            let site = try Site(fault.settings, isDebug: fault.isDebug)
            let daemon = site.daemon
            #expect(try daemon.metric(fault.metric) == 0)
            #expect(!daemon.log.contains(fault.words), "\(daemon.log)")
            try fault.harm(site)
            try until("it is said and counted\n\(daemon.log)") {
                try daemon.log.contains(fault.words) && daemon.metric(fault.metric) > 0
                    ? true : nil
            }
            let lines = daemon.log.split(separator: "\n").map(String.init)
            let places = lines.indices.filter { lines[$0].contains(fault.words) }
            #expect(places.count == 1, "\(daemon.log)")
            let place = try #require(places.first)
            #expect(lines[place].contains(" \(fault.level) "), "\(lines[place])")
            if let hint = fault.hint {
                let next = lines.indices.contains(place + 1) ? lines[place + 1] : ""
                #expect(next.hasPrefix("hint: ") && next.contains(hint), "\(daemon.log)")
            }
        }
    }
}
