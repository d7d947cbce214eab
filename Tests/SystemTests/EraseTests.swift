import Foundation
import Testing

extension SystemTests {
    /// `tapline erase`: nothing of a device or person is left, whatever is sent again; every count stays.
    @Suite struct EraseTests {
        /// What all ids of the device and the person begin with.
        static let secret = "gone-"

        /// Events of several devices, over several messages; those of `gone-d` also name a person.
        static func lines(_ range: Range<Int>) -> [String] {
            range.flatMap { number -> [String] in
                let device = number % 4 == 0 ? "gone-d" : "d\(number % 4)"
                let person = number % 4 == 0 ? "gone-p" : "p"
                let platform = number % 2 == 0 ? "ios" : "android"
                return ["sent", "received", "clicked"].map { type in
                    """
                    {"type":"\(type)","message_uid":"\(device)-m\(number)","device_id":"\(device)",\
                    "person_id":"\(person)","campaign_id":"c\(number % 3)",\
                    "event_uid":"\(device)-\(type)-\(number)","platform":"\(platform)",\
                    "properties":{"who":"\(person)"}}
                    """
                }
            }
        }

        /// An event of the device whose id is known with another campaign.
        static let conflict =
            #"{"type":"sent","message_uid":"gone-d-m0","device_id":"gone-d","#
            + #""event_uid":"gone-d-sent-0","campaign_id":"other","person_id":"gone-p"}"#
        /// An event of the device that the database refuses.
        static let poison =
            #"{"type":"clicked","message_uid":"gone-d-m0","device_id":"gone-d","#
            + #""event_uid":"gone-poison","campaign_id":"poison"}"#

        @Test func whatIsErasedIsNowhereAndStaysSoWhateverIsSentAgain() throws {
            let rig = try Rig()
            try rig.fill()
            let asOf = try rig.middle()
            let before = try rig.reports(asOf: asOf)
            #expect(!(try rig.rows().isEmpty))
            let done = try rig.erase()
            #expect(
                done["events"] == .int(60) && done["conflicts"] == .int(1)
                    && done["dead_letters"] == .int(1), "\(done)")
            #expect(try rig.rows() == [])
            #expect(try rig.reports(asOf: asOf) == before)
            try rig.expectBalanced(removed: 2)
            let nothing = try rig.erase()
            #expect(nothing["events"] == .int(0), "\(nothing)")
            let told = try Tapline.run(["explain", "gone-d-m0"] + rig.daemon.store)
            #expect(told.isSuccess && told.output.contains("was removed, by erase"), "\(told)")

            // All of it once more: in bodies of other sizes, and over a restart.
            let again = try rig.app.store(Self.lines(0..<40) + [Self.conflict])
            #expect(again["duplicates"] == .int(120) && again["conflicts"] == .int(1), "\(again)")
            #expect(try rig.daemon.stop() == .code(0))
            try rig.daemon.start()
            let more = try rig.app.store(Self.lines(40..<80))
            #expect(more["duplicates"] == .int(120), "\(more)")
            #expect(try rig.rows() == [])
            #expect(try rig.reports(asOf: asOf) == before)
            try rig.expectBalanced(removed: 3)

            // What comes now with new ids is new, and of the others nothing is gone.
            try rig.app.store([App.click("gone-new", device: "gone-d")])
            #expect(try rig.count("device_id = 'gone-d'") == 1)
            #expect(try rig.count("person_id = 'p' AND message_uid <> ''") == 180)
        }

        @Test func noOldVersionOfARowIsLeftInClosedSegments() throws {
            let rig = try Rig()
            try rig.fill()
            try rig.app.store(Self.lines(80..<85))
            let closed = "state <> 'open'"
            #expect(try rig.versions(segments: closed) > 0)
            let open = try rig.sql.int("SELECT segment FROM tapline.turn")
            #expect(try rig.erase()["events"] == .int(66))
            #expect(try rig.versions(segments: closed) == 0)
            // Those of the open one go when it is closed.
            #expect(try rig.versions(segments: "segment = \(open)") > 0)
            try rig.app.store((0..<100).map { App.click("m\($0)", device: "d") })
            try until("the open segment is sealed") {
                try rig.sql.value("SELECT state FROM tapline.segment WHERE segment = \(open)")
                    == "sealed" ? true : nil
            }
            #expect(try rig.versions(segments: "segment = \(open)") == 0)
        }

        /// What an old transaction sees cannot go: the command says so, and the next one does it.
        @Test func whatAnOlderTransactionSeesGoesWithTheNextErase() throws {
            let rig = try Rig()
            try rig.fill()
            let reader = try rig.daemon.sql()
            try reader.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM tapline.turn")
            let held = try Tapline.run(
                ["erase", "--device", "gone-d", "--person", "gone-p"] + rig.daemon.store)
            #expect(held.isSuccess && held.error.contains("has not ended"), "\(held)")
            #expect(try rig.versions(segments: "state <> 'open'") > 0)
            try reader.rows("COMMIT")
            try until("the next erase has done it", interval: 0.5) {
                #expect(try rig.erase()["events"] == .int(0))
                return try rig.versions(segments: "state <> 'open'") == 0 ? true : nil
            }
        }

        @Test func ofAPersonOrAnAppOnlyThatIsErased() throws {
            let rig = try Rig()
            let other = try App(rig.daemon)
            let line = App.click("m", #","person_id":"gone-p""#)
            try rig.app.store([line, App.click("m2", device: "d")])
            try other.store([line])
            let here = try rig.erase(["--person", "gone-p", "--app", rig.app.name])
            #expect(here["events"] == .int(1))
            #expect(try other.stored("person_id") == [["gone-p"]])
            #expect(try rig.erase(["--person", "gone-p"])["events"] == .int(1))
            #expect(try rig.rows() == [])
            #expect(try rig.count("device_id = 'd'") == 1)
        }

        @Test func whatWaitsInASpoolIsErasedWhenItIsLoaded() throws {
            let rig = try Rig()
            try rig.app.store(Self.lines(0..<20))
            #expect(try rig.daemon.metric("tapline_database_up") == 1)
            try rig.cluster.stop(.fast)
            let bodies = [Self.lines(20..<60), [Self.conflict, Self.poison], Self.lines(60..<80)]
            for body in bodies {
                #expect(try rig.app.post(body.joined(separator: "\n")).status == 200)
            }
            try rig.daemon.kill()
            try rig.cluster.start()
            let sql = try rig.daemon.sql()
            let outcome = try Tapline.run(
                ["erase", "--device", "gone-d", "--person", "gone-p"] + rig.daemon.store)
            #expect(outcome.output.hasPrefix("15 events made anonymous, 0 conflicts"), "\(outcome)")
            try rig.daemon.start()
            try rig.app.store([App.click("gone-new", device: "gone-d")])
            try rig.daemon.waitUntilLoaded()
            let (exit, books) = try rig.daemon.check()
            #expect(exit == .code(0) && books["removed"] == .int(2), "\(books)")
            #expect(
                try sql.rows("SELECT message_uid FROM tapline.event WHERE device_id LIKE 'gone-%'")
                    == [["gone-new"]])
            #expect(try sql.int("SELECT count(*) FROM tapline.event WHERE message_uid = ''") == 60)
            for table in ["conflict", "dead_letter"] {
                #expect(try sql.int("SELECT count(*) FROM tapline.\(table)") == 0)
            }
        }

        @Test func whatIsBeingLoadedMeanwhileIsFoundWhenItIsThere() throws {
            let rig = try Rig()
            let blocker = try rig.daemon.sql()
            // The load has stored its rows, and cannot end.
            try blocker.rows("BEGIN; LOCK TABLE tapline.batch IN SHARE MODE")
            #expect(try rig.app.post(App.click("gone-m", device: "gone-d")).status == 200)
            try rig.waitUntilBlocked("load")
            let process = try Tapline.start(["erase", "--device", "gone-d"] + rig.daemon.store)
            try rig.waitUntilBlocked("erase")
            try blocker.rows("ROLLBACK")
            #expect(try process.wait(seconds: 60) == .code(0))
            try rig.daemon.waitUntilLoaded()
            #expect(try rig.count("message_uid = ''") == 1)
            #expect(try rig.rows() == [])
        }

        /// `kill -9` while it waits in the middle of each of its steps.
        @Test(arguments: [
            "SELECT FROM tapline.turn FOR UPDATE", "LOCK TABLE tapline.event_2 IN SHARE MODE",
            "LOCK TABLE tapline.conflict IN SHARE MODE", "SELECT FROM tapline.removed FOR UPDATE",
        ]) func anEraseThatIsKilledIsCompletedByTheNext(lock: String) throws {
            let rig = try Rig()
            try rig.fill()
            let asOf = try rig.middle()
            let before = try rig.reports(asOf: asOf)
            let blocker = try rig.daemon.sql()
            try blocker.rows("BEGIN; \(lock)")
            let process = try Tapline.start(["erase", "--device", "gone-d"] + rig.daemon.store)
            try rig.waitUntilBlocked("erase")
            process.signal(SIGKILL)
            _ = try process.wait(seconds: 10)
            try blocker.rows("ROLLBACK")
            let (exit, books) = try rig.daemon.check()
            #expect(exit == .code(0), "\(books)")
            // Its session ends by itself; until then another is refused, and does nothing.
            try until("an erase is let in", interval: 0.1) { try rig.erase() }
            #expect(try rig.rows() == [])
            #expect(try rig.reports(asOf: asOf) == before)
            try rig.expectBalanced(removed: 2)
        }

        @Test func erasingUnderLoadHarmsNobody() throws {
            let rig = try Rig()
            let oracle = Oracle(rig.daemon, key: rig.app.key, seed: 77)
            oracle.start(connections: 4)
            defer { oracle.abandon() }
            for round in 0..<12 {
                let device = "gone-\(round)"
                for number in 0..<3 {
                    let line = App.click(
                        "gone-\(round)-\(number)", #","event_uid":"gone-\#(round)-\#(number)""#,
                        device: device)
                    #expect(try rig.app.post(line).status == 200)
                }
                try oracle.waitForMore(200)
                _ = try rig.erase(["--device", device])
            }
            try oracle.stop()
            try rig.daemon.waitUntilLoaded()
            #expect(try rig.rows() == [])
            try rig.expectBalanced(removed: 0)
            #expect(try rig.count("message_uid = ''") == 36)
            try rig.sql.rows("DELETE FROM tapline.event WHERE message_uid IN ('', 'first')")
            try oracle.verify(rig.sql, app: rig.app.name)
            #expect(!rig.daemon.log.contains("ERROR"), "\(rig.daemon.log)")
        }

        @Test func whatIsWrongIsSaid() throws {
            let long = String(repeating: "x", count: 129)
            for (arguments, text) in [
                ([], "--device or --person"), (["--device", ""], "1 to 128 bytes"),
                (["--person", long], "1 to 128 bytes"),
            ] {
                let outcome = try Tapline.run(["erase"] + arguments)
                #expect(outcome.exit == .code(2) && outcome.error.contains(text), "\(outcome)")
            }
        }
    }
}
