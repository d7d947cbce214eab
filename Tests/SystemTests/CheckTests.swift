import Foundation
import Testing

extension SystemTests {
    /// `tapline check` can fail.
    @Suite struct CheckTests {
        static let terms = [
            "stored", "duplicate", "conflict", "rejected", "dead_lettered", "spooled",
        ]

        @Test func theBooksBalanceUntilAnEventIsTakenAway() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            let click = App.click("m0", #","event_uid":"U","campaign_id":"one""#)
            try app.store([
                click, click, App.click("m0", #","event_uid":"U","campaign_id":"two""#), "{}",
                App.click("m1"),
            ])
            try cluster.stop(.fast)
            #expect(try app.post(App.click("m2")).status == 200)
            try cluster.start()
            for _ in 0..<2 {
                try daemon.waitUntilLoaded()
                let (exit, books) = try daemon.check()
                #expect(exit == .code(0) && books["balanced"] == .bool(true), "\(books)")
                #expect(books["received"] == .int(6))
                #expect(Self.terms.map { books[$0].int } == [3, 1, 1, 1, 0, 0], "\(books)")
                // Without the daemon the same.
                #expect(try daemon.stop() == .code(0))
                #expect(try daemon.check().exit == .code(0))
                try daemon.start()
            }
            for table in ["event", "conflict"] {
                let sql = try daemon.sql()
                try sql.rows(
                    "CREATE TABLE kept AS SELECT * FROM tapline.\(table) WHERE app = '\(app.name)'")
                try sql.rows("DELETE FROM tapline.\(table) WHERE app = '\(app.name)'")
                let (exit, books) = try daemon.check()
                #expect(exit == .code(1) && books["balanced"] == .bool(false), "\(books)")
                try sql.rows("INSERT INTO tapline.\(table) SELECT * FROM kept; DROP TABLE kept")
                #expect(try daemon.check().exit == .code(0))
            }
            let table = try Tapline.run(["check"] + daemon.store)
            #expect(
                table.isSuccess
                    && Self.terms.allSatisfy { term in
                        table.output.contains(term)
                            || table.output.contains(term.replacing("_", with: " "))
                    }, "\(table)")
        }

        @Test func reportsFromSumsAreProvedAndMadeAnew() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            let clicks = (0..<40).map {
                App.click("m\($0)", #","campaign_id":"c\#($0 % 3)","platform":"ios""#)
            }
            try app.store(clicks)
            func proof() throws -> (exit: Exit, said: JSON) {
                let outcome = try Tapline.run(
                    ["check", "--reports", "--format", "json"] + daemon.store)
                return (outcome.exit, try JSON(parsing: outcome.output.utf8)["reports"])
            }
            let right = try proof()
            #expect(right.exit == .code(0) && right.said["differing"] == .int(0), "\(right)")
            // 14 dimensions, campaign and day, by activity, with journeys, and three campaigns.
            #expect(right.said["compared"] == .int(20) && right.said["rows"].int ?? 0 >= 26)
            #expect(right.said["not_compared"] == .array([]))
            // Until a mark is applied, sums are not what a report is made of.
            try daemon.stop()
            try daemon.sql().rows("INSERT INTO tapline.test_device VALUES ('\(app.name)', 'd')")
            let marked = try proof()
            #expect(marked.exit == .code(0) && marked.said["compared"] == .int(0), "\(marked)")
            try daemon.sql().rows("DELETE FROM tapline.test_device")
            try daemon.start()
            // An event whose campaign somebody changes by hand.
            let sql = try daemon.sql()
            try sql.rows(
                "UPDATE tapline.event SET campaign_id = 'mine' WHERE message_uid = 'm0'")
            let wrong = try proof()
            #expect(wrong.exit == .code(1) && wrong.said["differing"].int ?? 0 > 0, "\(wrong)")
            let table = try Tapline.run(["check", "--reports"] + daemon.store)
            #expect(
                table.exit == .code(1) && table.output.contains("the books balance")
                    && table.output.contains("by campaign: \(app.name), mine: ")
                    && table.output.contains("REPORTS DIFFER"), "\(table)")
            // Beside the daemon, which goes on from what is made anew.
            let rebuilt = try Tapline.run(["rebuild"] + daemon.store)
            #expect(rebuilt.isSuccess && rebuilt.output.contains("anew from 40 events"))
            #expect(try proof().exit == .code(0))
            try app.store((40..<60).map { App.click("m\($0)", #","campaign_id":"mine""#) })
            let after = try proof()
            #expect(after.exit == .code(0) && after.said["differing"] == .int(0), "\(after)")
        }

        @Test func aSpoolRecordThatCannotBeReadIsCountedAndFailsTheCheck() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            #expect(try app.post("").status == 200)
            try cluster.stop(.fast)
            for index in 0..<3 {
                let (text, _) = SpoolFaultTests.bulk("q\(index)")
                #expect(try app.post(text).status == 200)
            }
            try daemon.kill()
            // Half of the middle record is overwritten.
            let files = try Tapline.tool(["find", daemon.directory + "/spool", "-size", "+32k"])
            let file = try #require(files.split(separator: "\n").first.map(String.init))
            let handle = try #require(FileHandle(forUpdatingAtPath: file))
            let used = try #require(try handle.readToEnd()?.lastIndex { $0 != 0 })
            try handle.seek(toOffset: UInt64(used / 2))
            try handle.write(contentsOf: Data(repeating: 0x2A, count: 64))
            try handle.close()
            try cluster.start()
            try daemon.start()
            try app.store([App.click("after")])
            #expect(try app.count() == 101, "the other two and the new one")
            let (exit, books) = try daemon.check()
            #expect(exit == .code(1) && books["balanced"] == .bool(false), "\(books)")
            #expect(books["quarantined"].int ?? 0 > 0, "\(books)")
        }
    }
}
