import Event
import Ingest
import JSONLines

/// Decodes single lines, and remembers nothing between them but what a decoder keeps.
struct DecoderHarness: ~Copyable {
    /// 2026-11-30T06:00:00Z.
    static let received: Int64 = 1_796_018_400_000_000

    var decoder = EventDecoder()
    var app = "shop"
    var receivedAt = DecoderHarness.received
    var sentAtHeader: Int64?

    /// The row of a line, or its rejection.
    mutating func decode(_ line: String) -> Result<EventRow, Rejection> {
        decode(Array(line.utf8))
    }

    mutating func decode(_ line: [UInt8]) -> Result<EventRow, Rejection> {
        let appBytes = Array(app.utf8)
        var builder = BodyRecord.Builder(app: appBytes, receivedAt: receivedAt)
        let verdict = decoder.decode(
            line: line.rawSpan, receivedAt: receivedAt, sentAtHeader: sentAtHeader, app: appBytes,
            into: &builder)
        let rejected = builder.rejected
        // A record that cannot be read, or counts that do not add up, are a fault of ours.
        guard let record = try? BodyRecord(payload: builder.finish()), record.received == 1,
            let rows = try? record.rows()
        else {
            fatalError("unreadable record of \(String(decoding: line, as: UTF8.self))")
        }
        switch verdict {
        case .accepted:
            precondition(rejected == 0 && rows.count == 1)
            return .success(rows[0])
        case .rejected(let rejection):
            precondition(rejected == 1 && rows.isEmpty)
            return .failure(rejection)
        }
    }

    /// The row of a line that must be taken.
    static func row(_ line: String) throws -> EventRow {
        var harness = DecoderHarness()
        return try harness.decode(line).get()
    }

    /// The code and the field of a line that must be rejected, as `code field`; nil if it is taken.
    static func rejection(_ line: String) -> String? {
        var harness = DecoderHarness()
        guard case .failure(let rejection) = harness.decode(line) else { return nil }
        return [rejection.code.rawValue, rejection.fieldName].compactMap(\.self).joined(
            separator: " ")
    }
}
