import Testing

extension SystemTests.EraseTests {
    /// A daemon with closed segments and an open one.
    struct Rig {
        let cluster: Cluster
        let daemon: Daemon
        let app: App
        let sql: SQL

        init() throws {
            cluster = try Cluster()
            daemon = try Daemon(
                database: cluster.conninfo(),
                settings: ["load.batch_age_ms": "5", "load.segment_rows_max": "100"]
            ).start()
            app = try App(daemon)
            try app.store([App.click("first", device: "d1")])
            sql = try daemon.sql()
            try sql.rows(
                "ALTER TABLE tapline.event ADD CONSTRAINT poison "
                    + "CHECK (campaign_id <> 'poison')")
        }

        /// Sends 241 events in several batches, a conflict and a dead letter.
        func fill() throws {
            for start in stride(from: 0, to: 80, by: 20) {
                try app.store(SystemTests.EraseTests.lines(start..<start + 20))
            }
            let json = try app.store([
                SystemTests.EraseTests.conflict, SystemTests.EraseTests.poison,
            ])
            guard json["conflicts"] == .int(1), json["dead_lettered"] == .int(1) else {
                throw Failure("\(json)", isFinal: true)
            }
            let segments = try sql.int("SELECT max(segment) FROM tapline.segment")
            try #require(segments > 2)
        }

        /// When about half was stored.
        func middle() throws -> String {
            try #require(
                try sql.value(
                    """
                    SELECT to_char(
                        stored_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    FROM tapline.batch ORDER BY batch OFFSET 3 LIMIT 1
                    """))
        }

        func erase(_ arguments: [String] = ["--device", "gone-d", "--person", "gone-p"]) throws
            -> JSON
        {
            let outcome = try Tapline.run(
                ["erase", "--format", "json"] + arguments + daemon.store)
            guard outcome.isSuccess else {
                // Where one was killed, its session may not have ended yet.
                throw Failure(
                    "erase: \(outcome)", isFinal: !outcome.error.contains("another"))
            }
            return try JSON(parsing: outcome.output.utf8)
        }

        /// How many events are as `condition` says.
        func count(_ condition: String) throws -> Int {
            try sql.int("SELECT count(*) FROM tapline.event WHERE \(condition)")
        }

        /// Rows of any table that hold a text anywhere; tables are named with their number.
        func rows(with text: String = SystemTests.EraseTests.secret) throws -> [String] {
            let hex = text.utf8.map { String($0, radix: 16) }.joined()
            let tables = try sql.rows(
                """
                SELECT oid::regclass FROM pg_class
                WHERE relkind = 'r' AND relnamespace = 'tapline'::regnamespace
                """
            ).compactMap { $0[0] }
            return try tables.compactMap { table in
                let count = try sql.int(
                    """
                    SELECT count(*) FROM \(table) t
                    WHERE t::text LIKE '%\(text)%' OR t::text LIKE '%\(hex)%'
                    """)
                return count == 0 ? nil : "\(table): \(count)"
            }
        }

        /// Versions of rows with a text in the files of segments, whether a statement sees them or not.
        func versions(segments: String, with text: String = SystemTests.EraseTests.secret) throws
            -> Int
        {
            try sql.rows("CREATE EXTENSION IF NOT EXISTS pageinspect")
            let tables = try sql.rows(
                "SELECT 'tapline.event_' || segment FROM tapline.segment WHERE \(segments)"
            ).compactMap { $0[0] }
            return try tables.reduce(0) { sum, table in
                let count = try sql.int(
                    """
                    SELECT count(*)
                    FROM generate_series(0, pg_relation_size('\(table)') / 8192 - 1) AS block,
                        heap_page_items(get_raw_page('\(table)', block)) i
                    WHERE position('\(text)'::bytea IN i.t_data) > 0
                    """)
                return sum + count
            }
        }

        /// What reports of many kinds say, but for when they were made.
        func reports(asOf: String) throws -> [JSON] {
            let kinds = [
                [], ["--by", "platform"], ["--by", "campaign,platform"], ["--by", "type"],
                ["--by", "hour"], ["--by-activity", "--from", "1d"], ["--as-of", asOf],
                ["--journeys", "always"], ["--include-test"],
            ]
            return try kinds.map { options in
                let outcome = try Tapline.run(
                    ["report", "--format", "json"] + options + daemon.store)
                guard outcome.isSuccess else { throw Failure("report: \(outcome)") }
                let json = try JSON(parsing: outcome.output.utf8)
                try #require(!json["campaigns"].items.isEmpty)
                return .array([json["totals"], json["campaigns"]])
            }
        }

        func waitUntilBlocked(_ command: String) throws {
            try until("tapline \(command) waits for a lock") {
                try sql.int(
                    """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE application_name = 'tapline \(command)' AND wait_event_type = 'Lock'
                    """) == 1 ? true : nil
            }
        }

        func expectBalanced(removed: Int64) throws {
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["removed"] == .int(removed), "\(books)")
        }
    }
}
