import CAllocationCount
import Event
import Ingest
import JSONLines
import Testing

/// Decoding costs a body a few allocations, and an event none.
@Suite(.enabled(if: tapline_allocations_are_counted()))
struct AllocationTests {
    private static let app = Array("shop".utf8)

    private static func body(_ events: Int) -> [UInt8] {
        let lines = (0..<events).map { index in
            """
            {"type":"\(index % 3 == 0 ? "clicked" : "received")","message_uid":\
            "0B4E5F60-7A8B-4C9D-8E0F-\(100_000_000_000 + index)","device_id":"device-\(index)",\
            "event_uid":"e\(index)","occurred_at":"2026-07-01T11:00:00.123Z","platform":"iOS",\
            "screen":"h\\u00e9","properties":{"session":\(index),"b":[1.50,{"z":1,"a":"\\n"}]}}

            """
        }
        return Array(lines.joined().utf8)
    }

    /// The allocations of decoding a body, all of whose lines are good.
    private static func allocations(_ decoder: inout EventDecoder, _ body: [UInt8]) -> UInt {
        let before = tapline_allocation_count()
        var builder = BodyRecord.Builder(
            app: app, receivedAt: 1_782_907_200_000_000, capacity: 2 * body.count)
        var lines = LineSplitter()
        let bytes = body.rawSpan
        var events = 0
        while let line = lines.next(in: bytes) {
            let verdict = decoder.decode(
                line: bytes.extracting(line.range), receivedAt: 1_782_907_200_000_000,
                sentAtHeader: nil, app: app, into: &builder)
            if verdict == .accepted { events += 1 }
        }
        let record = builder.finish()
        let after = tapline_allocation_count()
        #expect(events == builder.rows && record.count > body.count)
        return after - before
    }

    @Test func theCountSeesAnArray() {
        let before = tapline_allocation_count()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1000)
        #expect(tapline_allocation_count() > before)
        withExtendedLifetime(bytes) {}
    }

    @Test func anEventCostsNoAllocation() {
        var decoder = EventDecoder()
        // The first body makes the decoder's buffers.
        _ = Self.allocations(&decoder, Self.body(10))
        let few = Self.allocations(&decoder, Self.body(10))
        let many = Self.allocations(&decoder, Self.body(2000))
        #expect(many == few, "1990 more events cost \(Int(many) - Int(few)) more allocations")
    }
}
