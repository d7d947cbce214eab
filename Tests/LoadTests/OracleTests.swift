import Event
import Foundation
import Ingest
import Metrics
import Platform
import Postgres
import PostgresTesting
import PythonTesting
import Report
import Spool
import Testing

@testable import Load

/// Every number of every row is the one that `Tests/Oracle` computes by itself, from the lines as
/// they were sent. `make test-oracle` does the same with more events.
@Suite struct OracleTests {
    static let environment = ProcessInfo.processInfo.environment
    static func setting(_ name: String, or other: Int) -> Int {
        environment[name].flatMap { Int($0) } ?? other
    }
    static let events = setting("ORACLE_EVENTS", or: 1_500)
    static let reports = setting("ORACLE_REPORTS", or: 40)
    static let seeds = environment["ORACLE_SEED"].flatMap { Int($0) }.map { [$0] } ?? [1, 2, 3]

    /// A line as it was posted, and when; the rest of its envelope is in `oracle/lines.py`.
    struct Envelope {
        private struct Head: Decodable {
            let app: String
            let receivedAt: String
            let xSentAt: String?
            let storedAt: String

            enum CodingKeys: String, CodingKey {
                case app
                case receivedAt = "received_at"
                case xSentAt = "x_sent_at"
                case storedAt = "stored_at"
            }
        }

        let app: [UInt8]
        let receivedAt: Microseconds
        let sentAt: Microseconds?
        let storedAt: String
        let line: [UInt8]

        /// What a device said of itself.
        init(app: [UInt8], line: [UInt8]) {
            self.app = app
            self.line = line
            receivedAt = 1_748_736_000_000_000
            sentAt = nil
            storedAt = "long ago"
        }

        init(_ text: Substring) throws {
            // The event is the last member, and has to stay as it is.
            let cut = try #require(text.range(of: ", \"event\": "))
            let head = try JSONDecoder().decode(
                Head.self, from: Data((text[..<cut.lowerBound] + "}").utf8))
            app = Array(head.app.utf8)
            receivedAt = try #require(Self.time(head.receivedAt))
            sentAt = head.xSentAt.flatMap(Self.time)
            storedAt = head.storedAt
            line = Array(text[cut.upperBound...].dropLast().utf8)
        }

        private static func time(_ text: String) -> Microseconds? {
            let bytes = Array(text.utf8)
            return unsafe EventTime.parse(bytes.span.bytes)
        }
    }

    /// A database, the daemons that load into it, and what was sent.
    final class World {
        let fixture: Fixture
        let connection: PostgresConnection
        let directory: String
        /// When the batches were stored, by when the generator says that they were.
        private(set) var storedAt: [String: Microseconds] = [:]
        private var decoder = EventDecoder()
        private var mark: UInt64 = 0

        init(seed: Int, isFreeOfArrival: Bool) throws {
            fixture = try Fixture()
            connection = try PostgresConnection(conninfo: fixture.conninfo)
            directory = try TestDirectory.make()
            let (status, said) = try PythonScript.run(
                [
                    "generate.py", "--directory", directory, "--events", "\(OracleTests.events)",
                    "--seed", "\(seed)", "--reports", "\(OracleTests.reports)",
                ] + (isFreeOfArrival ? ["--free-of-arrival"] : []), in: "Oracle", seconds: 3600)
            #expect(status == 0, "\(said)")
        }

        deinit { TestDirectory.remove(directory) }

        func lines(_ name: String) throws -> [Substring] {
            try String(contentsOfFile: "\(directory)/\(name).ndjson", encoding: .utf8)
                .split(separator: "\n")
        }

        func envelopes() throws -> [Envelope] { try lines("events").map(Envelope.init) }

        /// Loads what came, each line a body, as one batch.
        func load(_ envelopes: ArraySlice<Envelope>, by session: inout LoadSession) throws {
            var batch = LoadBatch()
            var count = 0
            for envelope in envelopes {
                var builder = BodyRecord.Builder(
                    app: envelope.app, receivedAt: envelope.receivedAt)
                _ = decoder.decode(
                    line: unsafe envelope.line.span.bytes, receivedAt: envelope.receivedAt,
                    sentAtHeader: envelope.sentAt, app: envelope.app, into: &builder)
                let rows = builder.rows
                guard rows > 0 else { continue }
                count += rows
                mark += 1
                try batch.append(
                    SpoolRecord(
                        payload: builder.finish(), events: rows,
                        mark: SpoolMark(segment: 1, offset: mark, chain: 0)))
            }
            if count > 0 {
                _ = try session.load(&batch)
                _ = try session.closeSegmentIfFull()
            }
            let answer = try connection.query("SELECT stored_at FROM tapline.turn")
            storedAt[envelopes.first!.storedAt] = answer.timestamp(0, 0)
        }

        /// Loads what devices said of themselves, before their events and long ago; but for topics, which
        /// the report of a message does not have from its device.
        func registerDevices(by session: inout LoadSession) throws {
            var envelopes: [Envelope] = []
            for (number, line) in try lines("devices").enumerated() {
                var said = try #require(
                    try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                let app = try #require(said.removeValue(forKey: "app") as? String)
                said["topics"] = nil
                said["type"] = "device_update"
                said["event_uid"] = "registration-\(number)"
                said["occurred_at"] = "2025-06-01T00:00:00Z"
                envelopes.append(
                    Envelope(
                        app: Array(app.utf8),
                        line: Array(try JSONSerialization.data(withJSONObject: said))))
            }
            try load(envelopes[...], by: &session)
        }

        /// Says which buttons open the app.
        ///
        /// - Returns: Whether stored events were counted anew.
        func putCategories() throws -> Bool {
            struct Line: Decodable {
                let app, category, action: String
                let opensApp: Bool

                enum CodingKeys: String, CodingKey {
                    case app
                    case category = "category_id"
                    case action = "action_id"
                    case opensApp = "opens_app"
                }
            }
            let buttons = try lines("categories").map {
                try JSONDecoder().decode(Line.self, from: Data($0.utf8))
            }
            var isRecounted = false
            for (app, ofApp) in Dictionary(grouping: buttons, by: \.app) {
                let categories = Dictionary(grouping: ofApp, by: \.category).map { id, buttons in
                    Categories.Category(
                        id: id, label: nil,
                        buttons: buttons.map {
                            Categories.Button(
                                id: $0.action, label: nil, type: nil, opensApp: $0.opensApp)
                        })
                }
                if try Categories.put(connection, categories, app: app, replacesAll: false) {
                    isRecounted = true
                }
            }
            return isRecounted
        }

        /// Marks the test devices of the set.
        func markTestDevices() throws {
            for line in try lines("test_devices") {
                try connection.query(
                    "INSERT INTO tapline.test_device SELECT r.app, r.device_id FROM "
                        + "json_populate_record(NULL::tapline.test_device, $1::json) r",
                    [.untyped(String(line))])
            }
        }

        /// Makes the reports asked for, and lets the oracle compare them.
        func compare() throws {
            try fixture.run("ANALYZE")
            var reports: [UInt8] = []
            for line in try lines("asked") {
                let asked = try JSONDecoder().decode(
                    [String: String].self, from: Data(line.utf8))
                var options = ReportOptions()
                for (name, value) in asked where name != "as-of" { try options.set(name, value) }
                if let asOf = asked["as-of"] {
                    options.asOf = .instant(try #require(storedAt[asOf]))
                }
                let report = try CampaignReport.load(options, on: connection)
                reports += report.render(.json).filter { $0 != UInt8(ascii: "\n") }
                reports.append(UInt8(ascii: "\n"))
            }
            try Data(reports).write(to: URL(filePath: "\(directory)/reports.ndjson"))
            let (status, said) = try PythonScript.run(
                ["agree.py", directory], in: "Oracle", seconds: 3600)
            #expect(status == 0, "\(said)")
            print(said, terminator: "")
        }
    }

    static func settings(_ segmentRowsMax: Int) -> LoadSettings {
        var settings = LoadSettings()
        settings.segmentRowsMax = segmentRowsMax
        return settings
    }

    @Test(arguments: seeds) func aReportIsThatOfTheLines(seed: Int) throws {
        let world = try World(seed: seed, isFreeOfArrival: false)
        var session = try CellTests.session(world.fixture, Self.settings(Self.events / 4))
        try world.registerDevices(by: &session)
        let isOfNone = try world.putCategories()
        #expect(!isOfNone, "there is no event yet")
        let envelopes = try world.envelopes()
        var start = 0
        while start < envelopes.count {
            let end = envelopes[start...].firstIndex {
                $0.storedAt != envelopes[start].storedAt
            }
            try world.load(envelopes[start..<(end ?? envelopes.count)], by: &session)
            start = end ?? envelopes.count
        }
        try Segments.sealClosing(world.connection)
        try world.markTestDevices()
        try session.applyMarks()
        try world.compare()
    }

    @Test(arguments: seeds) func orderRepeatsAndDaemonsMakeNoDifference(seed: Int) throws {
        let world = try World(seed: seed, isFreeOfArrival: true)
        let settings = Self.settings(Self.events / 4)
        var first = try CellTests.session(world.fixture, settings)
        var second = try CellTests.session(world.fixture, settings)
        try world.registerDevices(by: &first)
        var dice = CellTests.Dice(source: KeySource(state: UInt64(seed)))
        var envelopes = try world.envelopes()
        envelopes += envelopes.filter { _ in dice.chance(0.2) }
        envelopes.shuffle(using: &dice)
        var start = 0
        while start < envelopes.count {
            let length = Int.random(in: 1...max(2, envelopes.count / 20), using: &dice)
            let end = min(start + length, envelopes.count)
            if dice.chance(0.5) {
                try world.load(envelopes[start..<end], by: &first)
            } else {
                try world.load(envelopes[start..<end], by: &second)
            }
            if dice.chance(0.3) { try Segments.sealClosing(world.connection) }
            if start <= envelopes.count / 2, envelopes.count / 2 < end {
                try world.markTestDevices()
                try first.applyMarks()
                let isRecounted = try world.putCategories()
                #expect(isRecounted)
            }
            start = end
        }
        try world.compare()
    }
}
