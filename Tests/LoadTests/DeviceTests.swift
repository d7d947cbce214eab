import Event
import Postgres
import PostgresTesting
import Report
import Testing

@testable import Load

/// What devices say of themselves, and what the table of buttons says of actions, reach the events and
/// their counts in the same way.
@Suite struct DeviceTests {
    typealias Dice = CellTests.Dice

    /// What a device said at a time; nil where it said nothing.
    struct Said {
        let device: String
        let time: Int
        let locale: String?
        let version: String?
        let group: String?

        init(_ number: Int, _ dice: inout Dice) {
            device = "d\(dice.pick([0, 1]))"
            // No two of one time: which of them is the newer is the order of their identities.
            time = 1_788_220_800 + dice.pick([-10, 0, 3, 40_000, 80_000]) + number % 50 * 60
            locale = dice.pick([nil, "en", "de"])
            version = dice.pick([nil, "1", "2"])
            group = dice.pick([nil, "a", "b"])
        }

        func line(_ number: Int) -> String {
            func member(_ name: String, _ value: String?) -> String {
                "\"\(name)\":\(value.map { "\"\($0)\"" } ?? "null")"
            }
            return """
                {"type":"device_update","event_uid":"s\(number)","device_id":"\(device)","occurred_at":\(time),\
                \(member("locale", locale)),\(member("app_version", version)),\(member("push_group", group))}
                """
        }
    }

    /// The newest value that was said of a device by a time, looked for one by one.
    static func newest(
        _ value: (Said) -> String?, of device: String, at time: Int, _ said: [Said]
    ) -> String? {
        said.filter { $0.device == device && $0.time <= time && value($0) != nil }
            .max { $0.time < $1.time }.flatMap { value($0) }
    }

    @Test(arguments: 0..<4) func aDeviceIsWhatItSaidLastInWhateverOrderItIsLoaded(seed: UInt64)
        throws
    {
        var dice = Dice(source: KeySource(state: seed))
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var session = try CellTests.session(fixture, LoadSettings())
        let said = (0..<30).map { Said($0, &dice) }
        var lines = said.enumerated().map { $1.line($0) }
        // Some come twice.
        lines += lines.prefix(5)
        lines.shuffle(using: &dice)
        for mark in 0..<UInt64(5) {
            _ = try session.load(
                CellTests.batch(Array(lines[Int(mark) * 7..<Int(mark) * 7 + 7]), mark: mark + 1))
        }
        #expect(try fixture.int("SELECT count(*) FROM tapline.device_state") == 30)
        for device in ["d0", "d1"] {
            for time in said.flatMap({ [$0.time - 1, $0.time] }) {
                let row = try connection.query(
                    """
                    SELECT locale, app_version, push_group
                    FROM tapline.device_at('shop', '\(device)', to_timestamp(\(time)))
                    """)
                #expect(
                    (0..<3).map { row.string(0, $0) } == [
                        Self.newest(\.locale, of: device, at: time, said),
                        Self.newest(\.version, of: device, at: time, said),
                        Self.newest(\.group, of: device, at: time, said),
                    ], "seed \(seed): \(device) at \(time)")
            }
        }
    }

    @Test(arguments: 0..<4) func anEventHasWhatIsKnownOfItsDeviceAtItsTime(seed: UInt64) throws {
        var dice = Dice(source: KeySource(state: seed &+ 100))
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = dice.pick([10, 100_000])
        var session = try CellTests.session(fixture, settings)
        var said: [Said] = []
        for step in 0..<UInt64(8) {
            var lines: [String] = []
            for _ in 0..<dice.pick([0, 1, 4]) {
                said.append(Said(said.count, &dice))
                lines.append(said[said.count - 1].line(said.count - 1))
            }
            // Of each event: its device and time, and what it says itself.
            var events: [(device: String, time: Int, locale: String?)] = []
            for number in 0..<6 {
                let event = (
                    device: "d\(dice.pick([0, 1, 2]))",
                    time: 1_788_220_800 + dice.pick([-20, 0, 1000, 40_100, 90_000]),
                    locale: dice.pick([nil, nil, "fr"])
                )
                events.append(event)
                let own = event.locale.map { ",\"locale\":\"\($0)\"" } ?? ""
                lines.append(
                    """
                    {"type":"received","message_uid":"m\(step)-\(number)","device_id":"\(event.device)",\
                    "occurred_at":\(event.time)\(own)}
                    """)
            }
            lines.shuffle(using: &dice)
            _ = try session.load(CellTests.batch(lines, mark: step + 1))
            _ = try session.closeSegmentIfFull()
            for (number, event) in events.enumerated() {
                let row = try connection.query(
                    """
                    SELECT locale, app_version, coalesce(filled, 0) FROM tapline.event
                    WHERE message_uid = 'm\(step)-\(number)'
                    """)
                let fills =
                    (row.string(0, 1) == nil ? 0 : 2)
                    + (event.locale != nil || row.string(0, 0) == nil ? 0 : 8)
                #expect(row.int64(0, 2) == Int64(fills), "seed \(seed): \(event)")
                #expect(
                    [row.string(0, 0), row.string(0, 1)] == [
                        event.locale
                            ?? Self.newest(\.locale, of: event.device, at: event.time, said),
                        Self.newest(\.version, of: event.device, at: event.time, said),
                    ], "seed \(seed): \(event)")
            }
        }
    }

    @Test(arguments: Seeds.few(4)) func reportsOfCellsAreThoseOfEvents(seed: UInt64) throws {
        var dice = Dice(source: KeySource(state: seed &+ 200))
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.segmentRowsMax = dice.pick([6, 20, 100_000])
        settings.alwaysWritesNews = dice.chance(0.6)
        var first = try CellTests.session(fixture, settings)
        var second = try CellTests.session(fixture, settings)
        var world = CellTests.World(&dice)
        var said = 0
        for step in 0..<UInt64(12) {
            var lines = (0..<Int.random(in: 1..<14, using: &dice)).map { _ in
                // Buttons of categories, whose effect the table knows or not.
                let line = world.line(&dice)
                return dice.chance(0.5)
                    ? line
                    : String(line.dropLast())
                        + ",\"category_id\":\"c\(dice.pick([1, 2]))\",\"action_id\":\"a\(dice.pick([1, 2]))\"}"
            }
            while dice.chance(0.4) {
                said += 1
                lines.append(Said(said, &dice).line(said))
            }
            if dice.chance(0.4) {
                let buttons = ["a1", "a2"].filter { _ in dice.chance(0.7) }.map { id in
                    Categories.Button(
                        id: id, label: nil, type: nil, opensApp: dice.pick([true, false, nil]))
                }
                let category = Categories.Category(
                    id: "c\(dice.pick([1, 2]))", label: nil, buttons: buttons)
                _ = try Categories.put(
                    connection, [category], app: dice.pick(["shop", "shop", "other"]),
                    replacesAll: dice.chance(0.3))
            }
            let batch = try CellTests.batch(lines, mark: step + 1)
            if dice.chance(0.7) {
                _ = try first.load(batch)
                try first.closeSegmentIfFull()
            } else {
                _ = try second.load(batch)
                try second.closeSegmentIfFull()
            }
            if dice.chance(0.3) { try Segments.sealClosing(connection) }
            let by = dice.pick(CellTests.everyBy)
            let isSame = try CellTests.areSame(by: by, on: connection)
            #expect(isSame, "seed \(seed), step \(step), by \(by)")
            if !isSame {
                Issue.record("\(try CellTests.differences(connection))")
                return
            }
        }
    }

    @Test(arguments: 0..<3) func theOrderOfLoadingChangesNoReportOnceItIsApplied(seed: UInt64)
        throws
    {
        var dice = Dice(source: KeySource(state: seed &+ 300))
        var lines = (0..<20).map { Said($0, &dice).line($0) }
        for number in 0..<40 {
            let time = 1_788_220_800 + dice.pick([-20, 0, 1000, 40_100, 90_000])
            let own = dice.chance(0.2) ? ",\"locale\":\"fr\"" : ""
            lines.append(
                """
                {"type":"\(dice.pick(["received", "clicked"]))","message_uid":"m\(number % 15)","event_uid":"\(number)",\
                "device_id":"d\(dice.pick([0, 1, 2]))","occurred_at":\(time)\(own)}
                """)
        }
        var reports: [[CampaignReport]] = []
        for order in 0..<2 {
            let fixture = try Fixture()
            let connection = try PostgresConnection(conninfo: fixture.conninfo)
            var settings = LoadSettings()
            settings.segmentRowsMax = dice.pick([12, 100_000])
            var session = try CellTests.session(fixture, settings)
            if order > 0 { lines.shuffle(using: &dice) }
            let size = order == 0 ? lines.count : 12
            for start in stride(from: 0, to: lines.count, by: size) {
                let part = Array(lines[start..<min(lines.count, start + size)])
                _ = try session.load(CellTests.batch(part, mark: UInt64(start + 1)))
                try session.closeSegmentIfFull()
            }
            let applied = try Devices.apply(connection)
            // In one batch all is known at once.
            #expect(order > 0 || applied.events == 0)
            #expect(try Devices.apply(connection).events == 0)
            reports.append(
                try ["locale", "app_version"].flatMap { by in
                    try [false, true].map {
                        try RemovalTests.report(connection, by: by, fromEvents: $0)
                    }
                })
            // The daemon goes on with what it is now.
            _ = try session.load(CellTests.batch([CellTests.World.line(1)], mark: 1000))
            #expect(try CellTests.differences(connection).contains("cell: ") == false)
        }
        for report in reports[1...] {
            for (one, other) in zip(reports[0], report) {
                #expect(one.rows.map(\.dimensions) == other.rows.map(\.dimensions), "seed \(seed)")
                #expect(one.rows.map(\.counts) == other.rows.map(\.counts), "seed \(seed)")
            }
        }
    }

    @Test(arguments: [false, true]) func whatWasWrittenForOtherDaemonsBeforeAnImportIsNotBelieved(
        isOfDevices: Bool
    ) throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var settings = LoadSettings()
        settings.alwaysWritesNews = true
        var session = try CellTests.session(fixture, settings)
        func line(_ type: String) -> String {
            """
            {"type":"\(type)","message_uid":"m","device_id":"d","event_uid":"\(type)","category_id":"c",\
            "action_id":"a","occurred_at":1788220900}
            """
        }
        _ = try session.load(CellTests.batch([line("action")], mark: 1))
        if isOfDevices {
            let update = """
                {"type":"device_update","device_id":"d","event_uid":"u","occurred_at":1788220800,"locale":"de"}
                """
            _ = try session.load(CellTests.batch([update], mark: 2))
            #expect(try Devices.apply(connection).events == 1)
        } else {
            let button = Categories.Button(id: "a", label: nil, type: nil, opensApp: true)
            #expect(
                try Categories.put(
                    connection, [.init(id: "c", label: nil, buttons: [button])], app: "shop",
                    replacesAll: false))
        }
        // What it takes out of the counts has to be what is in them.
        _ = try session.load(CellTests.batch([line("received")], mark: 3))
        #expect(
            try fixture.int(
                """
                SELECT count(*) FROM (SELECT FROM tapline.cell_dimension UNION ALL
                    SELECT FROM tapline.cell_change WHERE units < 0) c
                """) > 0)
        let wrong = try connection.query(
            """
            SELECT count(*)::int8 FROM (
                SELECT states, locale, sum(units) AS units FROM (
                    SELECT states, locale, units FROM tapline.cell_dimension
                    UNION ALL SELECT states, locale, units FROM tapline.cell_change) c
                GROUP BY states, locale) s WHERE units NOT IN (0, 1)
            """)
        #expect(wrong.int64(0, 0) == 0)
        #expect(!(try CellTests.differences(connection)).contains("cell: "))
    }

    @Test func aRefusedLineSaysNothingOfItsDevice() throws {
        let fixture = try Fixture()
        var session = try CellTests.session(fixture, LoadSettings())
        try fixture.run("ALTER TABLE tapline.event ADD CONSTRAINT good CHECK (device_id <> 'bad')")
        func update(_ device: String) -> String {
            #"{"type":"device_update","device_id":"\#(device)","event_uid":"u","locale":"de","occurred_at":1788220700}"#
        }
        let received =
            #"{"type":"received","message_uid":"m","device_id":"good","occurred_at":1788220800}"#
        let verdicts = try session.load(
            CellTests.batch([update("bad"), received, update("good")], mark: 1))
        #expect(verdicts == [.deadLettered, .stored, .stored])
        #expect(try fixture.int("SELECT count(*) FROM tapline.device_state") == 1)
        // Rows that are stored one by one have what their devices said beside them, too.
        #expect(
            try fixture.int("SELECT count(*) FROM tapline.event WHERE locale = 'de' AND filled = 8")
                == 1)
    }

    @Test func whatIsErasedSaysNothingOfItsDevice() throws {
        let fixture = try Fixture()
        let connection = try PostgresConnection(conninfo: fixture.conninfo)
        var session = try CellTests.session(fixture, LoadSettings())
        func line(_ number: Int, _ device: String, person: String = "p") -> String {
            """
            {"type":"device_update","event_uid":"\(number)","device_id":"\(device)","person_id":"\(person)",\
            "locale":"de"}
            """
        }
        _ = try session.load(
            CellTests.batch([line(1, "d1"), line(2, "d2"), line(3, "d3", person: "q")], mark: 1))
        let outcome = try Erasure.run(
            connection, .init(devices: ["d1"], persons: ["q"], app: "shop"))
        #expect(outcome.deviceStates == 2)
        // Lines from before the erasure that are loaded after it.
        _ = try session.load(
            CellTests.batch([line(4, "d1"), line(5, "d2"), line(6, "d4", person: "q")], mark: 2))
        let left = try connection.query(
            "SELECT string_agg(device_id, ' ' ORDER BY at, key) FROM tapline.device_state")
        #expect(left.string(0, 0) == "d2 d2")
    }
}
