import Event
import Ingest
import Platform
import Spool
import Testing

@testable import Load

/// A body of the app "shop", as it is spooled.
func payload(_ lines: [String]) -> [UInt8] {
    var decoder = EventDecoder()
    let app = Array("shop".utf8)
    var builder = BodyRecord.Builder(app: app, receivedAt: Clock.now())
    for line in lines {
        let bytes = Array(line.utf8)
        _ = decoder.decode(
            line: unsafe bytes.span.bytes, receivedAt: Clock.now(), sentAtHeader: nil, app: app,
            into: &builder)
    }
    return builder.finish()
}

@Suite struct LoadBatchTests {
    /// Events some of which come again, in one body or in two, and share their texts.
    private static func line(_ number: UInt64) -> String {
        let campaign = number % 3 == 0 ? "" : "\"campaign_id\":\"c\(number % 7)\","
        let platform = number % 5 == 0 ? "" : "\"platform\":\"p\(number % 4)\","
        let country = number % 2 == 0 ? "" : "\"country\":\"DE\","
        return "{\"type\":\"clicked\",\(campaign)\(platform)\(country)"
            + "\"event_uid\":\"e\(number % 60)\",\"message_uid\":\"m\",\"device_id\":\"d\"}"
    }

    private static func append(
        _ payload: [UInt8], _ offset: UInt64, to batch: inout LoadBatch
    ) throws {
        try batch.append(
            SpoolRecord(
                payload: payload, events: 0,
                mark: SpoolMark(segment: 1, offset: offset, chain: 0)))
    }

    @Test func knowsOfEachRowItsFirstAndItsTextsAlsoWhenItIsUsedAgain() throws {
        var source = KeySource(state: 5)
        var batch = LoadBatch()
        for round in 0..<4 {
            for body in 0..<5 {
                let lines = (0..<20).map { _ in Self.line(source.next() % 1000) }
                try Self.append(payload(lines), UInt64(body + 1), to: &batch)
            }
            let (count, counts) = (batch.count, batch.labelCounts)
            #expect(count == 100, "round \(round)")
            #expect(counts.campaigns <= 8 && counts.profiles <= 9)
            var firstRows: [Identity: Int] = [:]
            for row in 0..<count {
                let (event, label) = (batch.events[row], batch.labels[row])
                let first = firstRows[event.key] ?? row
                firstRows[event.key] = first
                let (found, stored) = (batch.firstRow(withKeyOf: row), batch.row(row))
                #expect(found == first)
                let text = Array(stored.payload[stored.range])
                let campaign = batch.campaignFields(label.campaign)
                #expect(campaign == Array(text[event.app] + text[event.campaign]))
                #expect(CampaignLabel.isNone(label.campaign) == !event.hasCampaign)
                #expect(ProfileLabel.pattern(label.profile) == event.pattern)
                if event.pattern != 0 {
                    let profile = batch.profileFields(label.profile)
                    #expect(profile == Array(text[event.device] + text[event.place]))
                }
            }
            batch.removeAll()
            let isEmpty = batch.isEmpty
            #expect(isEmpty)
        }
    }

    @Test func aBodyThatCannotBeReadAddsNothing() throws {
        var batch = LoadBatch()
        try Self.append(payload((0..<10).map { Self.line($0) }), 1, to: &batch)
        var cut = payload((5..<30).map { Self.line($0) })
        cut.removeLast()
        #expect(throws: BodyRecord.Failure.self) { try Self.append(cut, 2, to: &batch) }
        try Self.append(payload((8..<12).map { Self.line($0) }), 3, to: &batch)
        var rows: [Int] = []
        for row in 0..<batch.count { rows.append(batch.firstRow(withKeyOf: row)) }
        #expect(rows == Array(0..<10) + [8, 9, 12, 13])
        let (labels, contents) = (batch.labels.count, batch.contents.count)
        #expect(labels == 14 && contents == 14)
    }
}
