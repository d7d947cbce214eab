import JSONLines
import Testing

@testable import Event

struct BodyRecordTests {
    private static let app = Array("shop".utf8)
    private static let received: Int64 = 1_796_018_400_000_000

    private static func payload(rows: Int, rejected: Int = 0) -> [UInt8] {
        var builder = BodyRecord.Builder(app: app, receivedAt: received, capacity: 1)
        var encoder = EventEncoder()
        let scratch = ByteBuffer()
        let plain = PlainMembers()
        let line = Array("message-1device-1{\"a\":1}".utf8)
        for index in 0..<rows {
            var event = EventFields()
            event.type = index % 2 == 0 ? .clicked : .custom
            event.texts[.messageUID] = .line(0..<9)
            event.texts[.deviceID] = .line(9..<17)
            event.texts[.eventUID] = .line(0..<1 + index % 9)
            event.texts[.properties] = .line(17..<24)
            event.occurredAt = received - 5_000_000
            event.sentAt = received - 3_000_000
            event.isTest = index % 3 == 0 ? true : nil
            encoder.append(
                event, line: line.rawSpan, scratch: scratch, plain: plain, app: app.rawSpan,
                receivedAt: received, to: &builder)
        }
        for _ in 0..<rejected { builder.countRejected() }
        return builder.finish()
    }

    @Test(arguments: [(0, 0), (0, 3), (1, 0), (100, 7)])
    func whatIsBuiltIsReadBack(rows: Int, rejected: Int) throws {
        let record = try BodyRecord(payload: Self.payload(rows: rows, rejected: rejected))
        #expect(record.app == Self.app)
        #expect(record.receivedAt == Self.received)
        #expect(record.received == rows + rejected)
        #expect(record.rejected == rejected)
        #expect(try record.rows().count == rows)
    }

    @Test func fieldsAreWhereTheLoaderLooks() throws {
        let payload = Self.payload(rows: 1)
        let row = try #require(BodyRecord(payload: payload).rows().first)
        #expect(row.range.lowerBound == 24 + 4 + 4)
        let bytes = Array(payload[row.range])
        #expect(bytes.prefix(6) == [0, 35, 0, 0, 0, 16])
        #expect(bytes[42..<46] == [0, 0, 0, 8])
        #expect(bytes[66..<72] == [0, 0, 0, 2, 0, 7])
        #expect(bytes[78..<82] == [0, 0, 0, 8])
        #expect(row.type == .clicked)
        #expect(row.timeRule == .corrected)
        #expect(row.eventTime == Self.received - 2_000_000)
        #expect(row.receivedAt == Self.received)
        #expect(row.propertiesHash != nil)
        #expect(row.text(.app) == "shop")
        #expect(row.text(.messageUID) == "message-1")
        #expect(row.text(.deviceID) == "device-1")
        #expect(row.text(.eventUID) == "m")
        #expect(row.text(.campaignID) == nil)
        #expect(row.text(.properties) == "{\"a\":1}")
        #expect(row.time(.occurredAt) == Self.received - 5_000_000)
        #expect(row.time(.sentAt) == Self.received - 3_000_000)
        #expect(row.flag(.isTest) == true)
        #expect(row.flag(.silent) == nil)
        #expect(row.unit.message != 0 && row.unit.device != 0)
    }

    @Test func identityAndUnitAreTheHashesOfTheRule() throws {
        let row = try #require(BodyRecord(payload: Self.payload(rows: 1)).rows().first)
        var input: [UInt8] = [1]
        for field in ["shop", "device-1", "clicked", "message-1", "m"] {
            input += [0, 0, 0, UInt8(field.utf8.count)] + Array(field.utf8)
        }
        let digest = Digest(input.rawSpan)
        #expect(row.key == Identity(high: digest.high, low: digest.low))
        let message = [0, 0, 0, 4] + Array("shop".utf8) + [0, 0, 0, 9] + Array("message-1".utf8)
        #expect(row.unit.message == Digest(message.rawSpan).high)
    }

    @Test func everyTruncationIsRefused() {
        let payload = Self.payload(rows: 3, rejected: 1)
        for count in 0..<payload.count {
            #expect(throws: BodyRecord.Failure.self) {
                try BodyRecord(payload: Array(payload.prefix(count))).rows()
            }
        }
        #expect(throws: BodyRecord.Failure.self) { try BodyRecord(payload: payload + [0]).rows() }
    }

    @Test func aChangedByteIsRefusedOrReadWithoutATrap() {
        let payload = Self.payload(rows: 2)
        for index in payload.indices {
            for byte in [0x00, 0x01, 0x7F, 0x80, 0xFF] as [UInt8] {
                var changed = payload
                changed[index] = byte
                guard let rows = try? BodyRecord(payload: changed).rows() else { continue }
                for row in rows { _ = row.json() }
            }
        }
    }

    @Test func anotherVersionIsNamed() {
        var payload = Self.payload(rows: 0)
        payload[0] = 9
        #expect(throws: BodyRecord.Failure.version(9)) { try BodyRecord(payload: payload) }
    }
}
