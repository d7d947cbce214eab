import Event

/// A time as an option names it; the database turns it into an instant, so that days in a time zone
/// have 23, 24 or 25 hours as they should.
package enum ReportTime: Equatable, Sendable {
    /// Microseconds since 1970 UTC.
    case instant(Int64)
    /// The midnight in the report's time zone that begins a day.
    case date(year: Int, month: Int, day: Int)
    /// The same time of day in the report's time zone, so many days before the quarter of an hour
    /// that has begun.
    case daysAgo(Int)
    /// So many hours before the quarter of an hour that has begun.
    case hoursAgo(Int)

    /// What a text should have been that is none.
    package static let expected = "not a date, an RFC 3339 time, an epoch, or 7d or 24h ago"

    /// Reads `2026-11-30`, RFC 3339, an epoch, or `7d` or `24h`.
    ///
    /// - Returns: nil for anything else; no text reaches the database.
    package init?(_ text: String) {
        let bytes = [UInt8](text.utf8)
        if let ago = Self.ago(bytes) ?? Self.date(bytes) {
            self = ago
        } else if let time = Self.instant(bytes) {
            self = .instant(time)
        } else {
            return nil
        }
    }

    private static let agoMax = 100_000

    private static func ago(_ bytes: [UInt8]) -> ReportTime? {
        guard let unit = bytes.last, let count = number(bytes.dropLast()), count <= agoMax else {
            return nil
        }
        switch unit {
        case UInt8(ascii: "d"): return .daysAgo(count)
        case UInt8(ascii: "h"): return .hoursAgo(count)
        default: return nil
        }
    }

    /// Hours of `24h` or `7d`; nil for anything else.
    static func hours(_ text: String) -> Int? {
        switch ago([UInt8](text.utf8)) {
        case .daysAgo(let days): days * 24
        case .hoursAgo(let hours): hours
        default: nil
        }
    }

    private static func date(_ bytes: [UInt8]) -> ReportTime? {
        guard bytes.count == 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10]), year >= 1,
            // Only days of the calendar pass the parser of whole times.
            instant(bytes + "T00:00:00Z".utf8) != nil
        else { return nil }
        return .date(year: year, month: month, day: day)
    }

    private static func instant(_ bytes: [UInt8]) -> Int64? {
        unsafe EventTime.parse(bytes.span.bytes)
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard !bytes.isEmpty, bytes.count <= 6,
            bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return bytes.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    /// The quarter of an hour that has begun: times in it would have to be counted from the events.
    private static let quarter = "date_bin('15 minutes', now(), timestamptz 'epoch')"

    /// An expression of type timestamptz, of digits alone; for a session in the report's time zone.
    var sql: String {
        switch self {
        case .instant(let time):
            // Exact: the parts are whole numbers far below 2^53.
            "(timestamptz 'epoch' + make_interval(secs => \(time / 1_000_000)) "
                + "+ make_interval(secs => \(time % 1_000_000)::float8 / 1000000))"
        case .date(let year, let month, let day):
            "make_timestamptz(\(year), \(month), \(day), 0, 0, 0)"
        case .daysAgo(let days): "(\(Self.quarter) - make_interval(days => \(days)))"
        case .hoursAgo(let hours): "(\(Self.quarter) - make_interval(hours => \(hours)))"
        }
    }
}
