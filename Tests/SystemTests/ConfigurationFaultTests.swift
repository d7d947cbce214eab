import Foundation
import Testing

extension SystemTests {
    /// What a person has to mend: events wait in the spool, one log line says what to do, and no event
    /// is blamed for it.
    @Suite struct ConfigurationFaultTests {
        /// A database of its own with a user that is no superuser, and a daemon on it.
        final class Site {
            let name: String
            let admin: SQL
            let sql: SQL
            let daemon: Daemon
            let app: App
            /// Connections that are held.
            var sessions: [SQL] = []

            init(_ cluster: Cluster, _ name: String) throws {
                self.name = name
                admin = try SQL(cluster.conninfo("postgres"))
                try admin.rows("CREATE ROLE \(name) LOGIN PASSWORD 'right'")
                try admin.rows("CREATE DATABASE \(name) OWNER \(name)")
                sql = try SQL(cluster.conninfo(name))
                daemon = try Daemon(
                    database: cluster.conninfo(name, user: name) + " password=right",
                    settings: ["load.lock_timeout": "300ms", "load.batch_age_ms": "20"]
                ).start()
                app = try App(daemon)
                try app.store([App.click("before")])
            }

            /// Ends the sessions of the daemon.
            func terminate() throws {
                try admin.rows(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        + "WHERE usename = '\(name)' AND application_name LIKE 'tapline%'")
            }

            /// The value of `tapline_load_failures_total` for a reason.
            func failures(_ reason: String) throws -> Double {
                let prefix = "tapline_load_failures_total{reason=\"\(reason)\"} "
                let line = try daemon.get("/metrics").text.split(separator: "\n").first {
                    $0.hasPrefix(prefix)
                }
                return line.flatMap { Double($0.dropFirst(prefix.count)) } ?? 0
            }
        }

        /// Something that a person has done to the database, and how it is undone.
        struct Fault: CustomTestStringConvertible, Sendable {
            let testDescription: String
            /// The label of the metric.
            let reason: String
            /// What the log line says.
            let complaint: String
            /// What the line after it advises.
            let hint: String
            /// Whether a new session is needed to notice it.
            let endsSessions: Bool
            let harm: @Sendable (Site, Cluster) throws -> Void
            let mend: @Sendable (Site) throws -> Void

            init(
                _ name: String, _ reason: String, _ complaint: String, hint: String,
                endsSessions: Bool = false,
                harm: @escaping @Sendable (Site, Cluster) throws -> Void,
                mend: @escaping @Sendable (Site) throws -> Void
            ) {
                testDescription = name
                self.reason = reason
                self.complaint = complaint
                self.hint = hint
                self.endsSessions = endsSessions
                self.harm = harm
                self.mend = mend
            }

            /// One that is SQL both ways; `USER` stands for user and database.
            init(
                _ name: String, _ reason: String, _ complaint: String, hint: String,
                endsSessions: Bool = false, _ harm: String, _ mend: String
            ) {
                self.init(
                    name, reason, complaint, hint: hint, endsSessions: endsSessions,
                    harm: { site, _ in
                        try site.sql.rows(harm.replacing("USER", with: site.name))
                    },
                    mend: { site in try site.sql.rows(mend.replacing("USER", with: site.name)) })
            }
        }

        static let faults: [Fault] = [
            Fault(
                "wrong password", "configuration", "28P01", hint: "Check the user and the password",
                endsSessions: true, "ALTER ROLE USER PASSWORD 'other'",
                "ALTER ROLE USER PASSWORD 'right'"),
            Fault(
                "revoked INSERT", "configuration", "42501", hint: "Grant the database user",
                "REVOKE INSERT ON tapline.event_1 FROM USER",
                "GRANT INSERT ON tapline.event_1 TO USER"),
            Fault(
                "revoked USAGE of the schema", "configuration", "42501",
                hint: "Grant the database user", "REVOKE USAGE ON SCHEMA tapline FROM USER",
                "GRANT USAGE ON SCHEMA tapline TO USER"),
            Fault(
                "read-only", "configuration", "25006", hint: "Connect to the primary",
                endsSessions: true, "ALTER ROLE USER SET default_transaction_read_only = on",
                "ALTER ROLE USER RESET default_transaction_read_only"),
            Fault(
                "a table that is gone", "configuration", "42P01", hint: "tapline migrate",
                "ALTER TABLE tapline.turn RENAME TO turned",
                "ALTER TABLE tapline.turned RENAME TO turn"),
            Fault(
                "a column that is gone", "configuration", "42703", hint: "tapline migrate",
                "ALTER TABLE tapline.spool RENAME chain TO gone",
                "ALTER TABLE tapline.spool RENAME gone TO chain"),
            Fault(
                "a constraint that no row meets", "row", "every row of the batch is refused",
                hint: "Look for a constraint",
                "ALTER TABLE tapline.event_1 ADD CONSTRAINT wall CHECK (false) NOT VALID",
                "ALTER TABLE tapline.event_1 DROP CONSTRAINT wall"),
            Fault(
                "a column of the events that was dropped, and is added at another place",
                "configuration", "42703", hint: "tapline migrate",
                "ALTER TABLE tapline.event DROP COLUMN collapse_key CASCADE",
                "ALTER TABLE tapline.event ADD collapse_key text"),
            Fault(
                "a column too many, which must not be empty", "row",
                "every row of the batch is refused", hint: "changed column",
                "ALTER TABLE tapline.event ADD surplus integer NOT NULL DEFAULT 0; "
                    + "ALTER TABLE tapline.event ALTER surplus DROP DEFAULT; "
                    + "ALTER TABLE tapline.event_1 ALTER surplus DROP DEFAULT",
                "ALTER TABLE tapline.event DROP surplus"),
            Fault(
                "connections of the user", "retry", "53300", hint: "Raise max_connections",
                endsSessions: true, "ALTER ROLE USER CONNECTION LIMIT 0",
                "ALTER ROLE USER CONNECTION LIMIT -1"),
            Fault(
                "connections exhausted", "retry", "53300", hint: "Raise max_connections",
                harm: { site, cluster in
                    // Whoever comes first takes what the daemon's ended sessions leave.
                    let conninfo = cluster.conninfo(site.name, user: site.name) + " password=right"
                    try until("no connection is left for the daemon") {
                        try site.terminate()
                        while let session = try? SQL(conninfo) { site.sessions.append(session) }
                        return try site.failures("retry") > 0 ? true : nil
                    }
                },
                mend: { $0.sessions = [] }),
            Fault(
                "a lock that is held", "retry", "55P03", hint: "Look in pg_stat_activity",
                "BEGIN; LOCK TABLE tapline.event_1 IN ACCESS EXCLUSIVE MODE", "COMMIT"),
            Fault(
                "a full disk, as the server says it", "retry", "53100", hint: "Free space",
                """
                CREATE FUNCTION tapline.full() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
                CREATE TRIGGER full_disk BEFORE INSERT ON tapline.event_1
                    FOR EACH ROW EXECUTE FUNCTION tapline.full()
                """, "DROP FUNCTION tapline.full() CASCADE"),
        ]

        @Test func whatAPersonHasToMendIsSaidAndCostsNoEvent() throws {
            let cluster = try Cluster()
            try cluster.requirePasswords()
            for (index, fault) in Self.faults.enumerated() {
                try Self.run(fault, on: cluster, name: "site\(index)")
            }
        }

        private static func run(_ fault: Fault, on cluster: Cluster, name: String) throws {
            let site = try Site(cluster, name)
            let daemon = site.daemon
            let what = Comment(rawValue: fault.testDescription)
            try fault.harm(site, cluster)
            if fault.endsSessions { try site.terminate() }
            for index in 0..<20 {
                #expect(try site.app.post(App.click("m\(index)")).status == 200, what)
            }
            try until("\(fault.testDescription): the daemon complains\n\(daemon.log)") {
                try site.failures(fault.reason) >= 2 && daemon.log.contains(fault.complaint)
                    ? true : nil
            }
            #expect(try daemon.metric("tapline_database_up") == 0, what)
            #expect(try daemon.get("/readyz").status == 200, what)
            #expect(try site.app.post(App.click("late")).status == 200, what)
            let lines = daemon.log.split(separator: "\n")
            let places = lines.indices.filter { lines[$0].contains(fault.complaint) }
            #expect(places.count == 1, "\(fault.testDescription): \(daemon.log)")
            let place = try #require(places.first)
            let next = lines.indices.contains(place + 1) ? lines[place + 1] : ""
            #expect(
                next.hasPrefix("hint: ") && next.contains(fault.hint),
                "\(fault.testDescription): \(daemon.log)")
            try fault.mend(site)
            #expect(try site.app.storedCount() == 22, what)
            let names = Set(try site.app.stored("message_uid").compactMap { $0[0] })
            #expect(names == Set((0..<20).map { "m\($0)" } + ["before", "late"]), what)
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["stored"] == .int(22), "\(what): \(books)")
            #expect(books["dead_lettered"] == .int(0), "\(fault.testDescription): \(books)")
            #expect(try daemon.stop() == .code(0), what)
        }

        @Test func anEmptyPartitionThatWasDroppedIsMadeAnew() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            // The loader has its session.
            #expect(try app.post("{}").status == 200)
            try daemon.waitUntilLoaded()
            try daemon.sql().rows("DROP TABLE tapline.event_1")
            for index in 0..<20 {
                #expect(try app.post(App.click("m\(index)")).status == 200)
            }
            #expect(try app.storedCount() == 20)
            #expect(daemon.log.contains("partition tapline.event_1 is gone"))
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["dead_lettered"] == .int(0), "\(books)")
            #expect(try daemon.stop() == .code(0))
        }

        @Test(.enabled(if: SpoolFaultTests.canMount)) func aFullDiskOfTheDatabasePasses() throws {
            let disk = TemporaryDirectory()
            try SpoolFaultTests.mount(disk.path, megabytes: 8)
            defer { _ = try? Tapline.tool(["umount", "-l", disk.path]) }
            try Tapline.tool(["chmod", "777", disk.path])
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store([App.click("before")])
            let sql = try daemon.sql()
            try Tapline.tool(
                ["install", "-d", "-o", cluster.owner, "-m", "700", disk.path + "/space"])
            try sql.rows("CREATE TABLESPACE small LOCATION '\(disk.path)/space'")
            try sql.rows("ALTER TABLE tapline.event_1 SET TABLESPACE small")
            let ballast = disk.path + "/ballast"
            _ = try? Tapline.tool(["dd", "if=/dev/zero", "of=\(ballast)", "bs=64k"])
            var count = 1
            for index in 0..<40 {
                let (text, events) = SpoolFaultTests.bulk("b\(index)")
                #expect(try app.post(text).status == 200)
                count += events
            }
            try until("the daemon complains\n\(daemon.log)") {
                daemon.log.contains("53100") && daemon.log.contains("Free space on the disk")
                    ? true : nil
            }
            #expect(try app.post(App.click("late")).status == 200)
            try FileManager.default.removeItem(atPath: ballast)
            #expect(try app.storedCount() == count + 1)
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["dead_lettered"] == .int(0), "\(books)")
            #expect(try daemon.stop() == .code(0))
            // The tablespace is on the disk that goes away next.
            try cluster.stop(.immediate)
        }
    }
}
