import Foundation
import Testing

extension SystemTests {
    /// `tapline retention`: what is old loses its content and its space, and nothing else.
    @Suite struct RetentionTests {
        static func retention(_ daemon: Daemon, keep: Int) throws -> JSON {
            let outcome = try Tapline.run(
                ["retention", "--keep", "\(keep)", "--format", "json"] + daemon.store)
            guard outcome.isSuccess else { throw Failure("retention: \(outcome)", isFinal: true) }
            return try JSON(parsing: outcome.output.utf8)
        }

        @Test func whatIsOldLosesItsContentAndReportsAndDedupeStay() throws {
            let rig = try EraseTests.Rig()
            try rig.fill()
            let asOf = try rig.middle()
            // By activity and as of a time before the horizon they are exact, too.
            let before = try rig.reports(asOf: asOf)
            let early = try Self.retention(rig.daemon, keep: 1)
            #expect(early["events"] == .int(0) && early["conflicts"] == .int(0), "\(early)")
            let done = try Self.retention(rig.daemon, keep: 0)
            #expect(
                done["events"] == .int(241) && done["conflicts"] == .int(1)
                    && done["dead_letters"] == .int(1) && done["busy"] == .array([]), "\(done)")
            #expect(done["compacted"].int ?? 0 >= 2 && done["bytes"].int ?? 0 > 0, "\(done)")
            #expect(try rig.rows() == [])
            #expect(try rig.versions(segments: "state <> 'open'") == 0)
            #expect(try rig.rows(with: "person") == [] && rig.rows(with: "sent-1") == [])
            #expect(try rig.reports(asOf: asOf) == before)
            try rig.expectBalanced(removed: 2)
            let again = try rig.app.store(EraseTests.lines(0..<80))
            #expect(again["duplicates"] == .int(240), "\(again)")
            #expect(try rig.reports(asOf: asOf) == before)
            let nothing = try Self.retention(rig.daemon, keep: 0)
            #expect(nothing["events"] == .int(0) && nothing["compacted"] == .int(0), "\(nothing)")
        }

        /// Bodies that come, segments that are closed, and retention of all of it all the time.
        @Test func underLoadEveryEventStaysStoredOnce() throws {
            let rig = try EraseTests.Rig()
            let rounds = 30
            var retentions = 0
            for round in 0..<rounds {
                let lines = EraseTests.lines(round * 10..<round * 10 + 10)
                #expect(try rig.app.post(lines.joined(separator: "\n")).status == 200)
                if round % 3 == 0 {
                    _ = try Self.retention(rig.daemon, keep: 0)
                    retentions += 1
                }
            }
            try rig.daemon.waitUntilLoaded()
            #expect(retentions == 10)
            let again = try rig.app.store(EraseTests.lines(0..<rounds * 10))
            #expect(again["duplicates"] == .int(Int64(rounds * 30)), "\(again)")
            #expect(
                try rig.sql.rows("SELECT count(*), count(DISTINCT key) FROM tapline.event")
                    == [["\(rounds * 30 + 1)", "\(rounds * 30 + 1)"]])
            try rig.expectBalanced(removed: 0)
            #expect(!rig.daemon.log.contains("ERROR"), "\(rig.daemon.log)")
        }

        @Test(arguments: [[], ["--keep", "x"], ["--keep", "-1"]]) func whatIsWrongIsSaid(
            arguments: [String]
        ) throws {
            let outcome = try Tapline.run(["retention"] + arguments)
            #expect(outcome.exit == .code(2) && outcome.error.contains("--keep"), "\(outcome)")
        }
    }
}
