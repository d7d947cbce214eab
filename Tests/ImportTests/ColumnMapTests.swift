import Client
import Import
import Testing

@Suite struct ColumnMapTests {
    /// What a table becomes by a map.
    struct Made {
        var lines: [String] = []
        var numbers: [Int] = []
        var tally = RowSource.Tally()
    }

    static func make(
        _ map: String, _ table: String, only: [(String, String)] = [], linesMax: Int = 3
    ) throws -> Made {
        var columns = try ColumnMap(map)
        columns.only = only.map { (column: $0.0, value: $0.1) }
        let source = try RowSource(
            .memory(name: "t", Array(table.utf8)), map: columns, rejects: nil, linesMax: linesMax,
            bytesMax: 1 << 20)
        var made = Made()
        while case .body(let body) = try source.next() {
            made.lines += String(decoding: body.bytes, as: UTF8.self).split(separator: "\n").map(
                String.init)
            made.numbers += body.lineNumbers
            source.settle(body, [])
        }
        made.tally = source.tally
        return made
    }

    static let small = """
        type = "clicked"
        message_uid = id
        occurred_at = at?
        """

    @Test func fieldsAreMadeOfColumnsAndTexts() throws {
        let map = """
            separator = semicolon
            # the first value that there is
            type = "failed" if status is "bad" "refused"
            type = "sent"
            message_uid = id
            campaign_id = kind ":" [campaign no]
            campaign_id = "none"
            is_test = test?
            nulls = "NULL" "-"
            drop = secret
            properties.source = "file"
            """
        let made = try Self.make(
            map,
            #"""
            id;kind;campaign no;status;secret;note
            m1;B;7;ok;x;"a ""b"""
            m2;NULL;7;REFUSED;x;-

            """#)
        #expect(
            made.lines == [
                #"{"type":"sent","message_uid":"m1","campaign_id":"B:7","properties":{"source":"file","note":"a \"b\""}}"#,
                #"{"type":"failed","message_uid":"m2","campaign_id":"none","properties":{"source":"file"}}"#,
            ])
        #expect(made.numbers == [2, 3] && made.tally.events == ["sent": 1, "failed": 1])
    }

    @Test func aRowMakesAnEventForEachThatHolds() throws {
        let map = """
            message_uid = id
            keep = note
            event
            type = "sent"
            event if clicked is not "" "0"
            type = "clicked"
            occurred_at = clicked
            """
        let made = try Self.make(map, "id,clicked,note,x\na,,n,y\nb,1796018700,,\n", linesMax: 1)
        #expect(
            made.lines == [
                #"{"type":"sent","message_uid":"a","properties":{"note":"n"}}"#,
                #"{"type":"sent","message_uid":"b"}"#,
                #"{"type":"clicked","message_uid":"b","occurred_at":"1796018700"}"#,
            ])
        #expect(made.numbers == [2, 3, 3] && made.tally.rows == 2)
    }

    @Test(arguments: [
        ("2026-11-30 06:10:00 -0600", "2026-11-30 06:10:00-0600"),
        ("2026-11-30T06:10:00Z", "2026-11-30T06:10:00Z"),
        ("2026-11-30 06:10:00.25 +05:45", "2026-11-30 06:10:00.25+05:45"),
        ("2026-11-30 06:10:00", "2026-11-30 06:10:00+01:00"),
        ("1796018700", "1796018700"),
    ]) func timesGetTheirOffset(time: String, sent: String) throws {
        let made = try Self.make("zone = +01:00\n" + Self.small, "id,at\nm,\(time)\n")
        #expect(
            made.lines
                == [#"{"type":"clicked","message_uid":"m","occurred_at":"\#(sent)"}"#])
    }

    @Test(arguments: [
        (
            "m,2026-11-30 06:10:00",
            "occurred_at is \"2026-11-30 06:10:00\", a time without an offset"
        ),
        ("m,30.11.2026", "occurred_at is \"30.11.2026\", not a time"),
        (",1796018700", "missing_message_uid: "),
        ("m", "has 1 columns, expected 2"),
        (String(repeating: "m", count: 129) + ",", "field_too_long: "),
    ]) func aBadRowIsNamedAndTheOthersAreSent(row: String, reason: String) throws {
        let made = try Self.make(Self.small, "id,at\na,\n\(row)\nb,\n")
        #expect(made.lines.count == 2 && made.tally.rejected == 1)
        let problem = try #require(made.tally.problems.first)
        #expect(problem.line == 3 && problem.message.hasPrefix(reason), "\(problem)")
    }

    @Test func whatIdentifiesARowIsItsContent() throws {
        let map = "type = \"visit\"\ndevice_id = d\ndrop = exported"
        let one = try Self.make(map, "d,page,exported\nx,1,mon\nx,2,mon\n").lines
        let other = try Self.make(map, "page,more,exported,d\n2,,tue,x\n1,,tue,x\n").lines
        #expect(Set(one).count == 2 && Set(one) == Set(other))
        #expect(one.allSatisfy { $0.contains("\"event_uid\":\"row-") })
        // An id or a time of its own is enough.
        let timed = try Self.make(map + "\noccurred_at = t", "d,t\nx,1796018700\n").lines
        #expect(!timed[0].contains("event_uid"), "\(timed)")
        let status = try Self.make(Self.small + "\nevent_uid = @row", "id,at\nm,\n").lines
        #expect(status[0].contains("\"event_uid\":\"row-"))
    }

    @Test func aFileIsOfOneApp() throws {
        let map = "app = app_id\n" + Self.small
        let table = "id,app_id\na,A\nb,B\nc,A\n"
        let made = try Self.make(map, table)
        #expect(made.lines.count == 2 && made.tally.rejected == 1)
        #expect(made.tally.problems[0].message.contains("--only app_id=A"))
        let chosen = try Self.make(map, table, only: [("app_id", "B")])
        #expect(chosen.lines.count == 1 && chosen.tally.skipped == 2 && chosen.tally.rejected == 0)
    }

    @Test(arguments: [
        ("type = \"sent\"\ncolour = x", 2, "there is no field \"colour\""),
        ("type \"sent\"", 1, "\"type\" without ="),
        ("type = \"sent", 1, "\" without \""),
        ("type = a if b", 1, "expected if COLUMN is"),
        ("type = a if b is c", 1, "expected texts"),
        ("type =", 1, "nothing after ="),
        ("\nseparator = blank", 2, "separator is \"blank\""),
        ("zone = Berlin", 1, "zone is \"Berlin\""),
        ("message_uid = id", nil, "event 1 has no \"type\""),
    ]) func aMapThatMeansNothingIsRefused(text: String, line: Int?, reason: String) throws {
        let error = try #require(throws: MapError.self) { try ColumnMap(text) }
        #expect(error.line == line && error.reason.hasPrefix(reason), "\(error)")
    }

    @Test func aColumnThatIsMissingIsNamedBeforeAnythingIsSent() throws {
        let error = try #require(throws: ClientError.self) {
            try Self.make(Self.small, "uid,at\nm,\n")
        }
        #expect(error.message.contains("no column \"id\"") && error.message.contains("\"uid\""))
    }

    @Test func theReadyMapsAreMaps() throws {
        for map in ReadyMap.all { _ = try ColumnMap(map.text) }
    }
}
