import Foundation
import Testing

extension SystemTests {
    /// Law 3: a row that PostgreSQL refuses costs its neighbours nothing, and is not lost.
    @Suite struct PoisonTests {
        @Test func aRefusedRowBecomesADeadLetterAndItsNeighboursAreStored() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            try app.store([App.click("first")])
            let sql = try daemon.sql()
            try sql.rows(
                "ALTER TABLE tapline.event_1 ADD CONSTRAINT poison CHECK (campaign_id <> 'poison')")
            var lines = (0..<1000).map { App.click("m\($0)") }
            for index in [0, 500, 999] {
                lines[index] = App.click("p\(index)", #","campaign_id":"poison""#)
            }
            let json = try app.store(lines)
            #expect(json["accepted"] == .int(997) && json["dead_lettered"] == .int(3), "\(json)")
            #expect(try app.count() == 998)
            let letters = try sql.rows(
                "SELECT sqlstate, reason, body::jsonb->>'message_uid' FROM tapline.dead_letter "
                    + "WHERE app = '\(app.name)' ORDER BY id")
            #expect(letters.map { $0[2] } == ["p0", "p500", "p999"])
            #expect(letters.allSatisfy { $0[0] == "23514" && $0[1]?.contains("poison") == true })
            let (exit, books) = try daemon.check()
            #expect(exit == .code(0) && books["dead_lettered"] == .int(3))
            #expect(try daemon.metric("tapline_events_dead_lettered_total") == 3)
        }

        @Test func whenEveryRowIsRefusedTheDatabaseIsToBlameAndAllWaits() throws {
            let cluster = try Cluster()
            let daemon = try Daemon(database: cluster.conninfo()).start()
            let app = try App(daemon)
            #expect(try daemon.stop() == .code(0))
            let sql = try daemon.sql()
            try sql.rows("ALTER TABLE tapline.event_1 ADD CONSTRAINT wall CHECK (false) NOT VALID")
            try daemon.start()
            for index in 0..<20 {
                #expect(try app.post(App.click("m\(index)")).status == 200)
            }
            try until("the daemon complains") { daemon.log.contains("ERROR") ? true : nil }
            #expect(try daemon.metric("tapline_events_spooled") == 20)
            #expect(try sql.int("SELECT count(*) FROM tapline.dead_letter") == 0)
            #expect(daemon.log.split(separator: "\n").count < 100, "the log is flooded")
            try sql.rows("ALTER TABLE tapline.event_1 DROP CONSTRAINT wall")
            #expect(try app.storedCount() == 20)
            #expect(try sql.int("SELECT count(*) FROM tapline.dead_letter") == 0)
            #expect(try daemon.check().exit == .code(0))
        }
    }
}
