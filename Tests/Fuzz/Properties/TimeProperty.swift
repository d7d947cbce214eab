import Event
import JSONLines

enum TimeProperty {
    static let seeds: [[UInt8]] = [
        "2026-11-30T06:10:00Z", "2026-11-30t24:00:00.000000000z", "2024-02-29 23:59:60.5+05:45",
        "0001-01-01T00:00:00-14:00", "9999-12-31T23:59:59.999999499Z", "1700000000", "-1.5e9",
        "1700000000123.4567", "1700000000123456789", "99999999999999999999", "1e-400", "",
    ].map { Array($0.utf8) }

    static func violation(_ text: [UInt8]) -> String? {
        guard let time = EventTime.parse(text.rawSpan) else { return nil }
        guard time >= EventTime.first, time <= EventTime.last else { return "\(time) is outside" }
        let written = format(time)
        guard EventTime.parse(written.rawSpan) == time else {
            return "\(time) is written \(String(decoding: written, as: UTF8.self))"
        }
        guard EventTime.isAsFormatted(text.rawSpan) == (written == text) else {
            return "isAsFormatted is wrong for \(String(decoding: text, as: UTF8.self))"
        }
        for sent in [nil, time, 0, .max, .min] {
            let decided = EventTime(occurredAt: time, sentAt: sent, receivedAt: time)
            guard decided.microseconds >= EventTime.first, decided.microseconds <= EventTime.last
            else { return "\(time) sent \(String(describing: sent)) is \(decided)" }
        }
        return nil
    }

    static func stored(_ text: [UInt8]) -> (text: String, microseconds: Int64)? {
        guard let time = EventTime.parse(text.rawSpan) else { return nil }
        return (String(decoding: format(time), as: UTF8.self), time)
    }

    private static func format(_ time: Int64) -> [UInt8] {
        var output = ByteBuffer(capacity: 32)
        EventTime.format(time, into: &output)
        return output.array
    }
}
