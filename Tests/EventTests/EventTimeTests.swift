import JSONLines
import Testing

@testable import Event

private func parse(_ text: String) -> Int64? { EventTime.parse(Array(text.utf8).rawSpan) }

private func format(_ time: Int64) -> String {
    var output = ByteBuffer(capacity: 1)
    EventTime.format(time, into: &output)
    return String(decoding: output.array, as: UTF8.self)
}

struct EventTimeParseTests {
    /// Golden: what a client may write, and the same instant as we write it; nil is no time.
    static let table: [(String, String?)] = [
        ("2026-11-30T06:10:00Z", "2026-11-30T06:10:00Z"),
        ("2026-11-30t06:10:00z", "2026-11-30T06:10:00Z"),
        ("2026-11-30 06:10:00Z", "2026-11-30T06:10:00Z"),
        ("2026-11-30T06:10:00.5Z", "2026-11-30T06:10:00.500Z"),
        ("2026-11-30T06:10:00.123456Z", "2026-11-30T06:10:00.123456Z"),
        ("2026-11-30T06:10:00.123456499Z", "2026-11-30T06:10:00.123456Z"),
        ("2026-11-30T06:10:00.123456500Z", "2026-11-30T06:10:00.123457Z"),
        ("2026-12-31T23:59:59.999999999Z", "2027-01-01T00:00:00Z"),
        ("2026-11-30T06:10:00.000000000Z", "2026-11-30T06:10:00Z"),
        ("2026-11-30T06:10:00.1234567890Z", nil),
        ("2026-11-30T06:10:00.123456789012Z", nil),
        ("2026-11-30T06:10:00.Z", nil),
        ("2026-11-30T06:10:00,5Z", nil),
        ("2026-11-30T06:10:00", nil),
        ("2026-11-30T06:10:00.5", nil),
        ("2026-11-30T06:10Z", nil),
        ("2026-11-30", nil),
        ("2026-11-30T06:10:00+02:00", "2026-11-30T04:10:00Z"),
        ("2026-11-30T06:10:00-08:00", "2026-11-30T14:10:00Z"),
        ("2026-11-30T06:10:00+05:45", "2026-11-30T00:25:00Z"),
        ("2026-11-30T06:10:00+0530", "2026-11-30T00:40:00Z"),
        ("2026-11-30T06:10:00+02", "2026-11-30T04:10:00Z"),
        ("2026-11-30T06:10:00+14:00", "2026-11-29T16:10:00Z"),
        ("2026-11-30T06:10:00-14:00", "2026-11-30T20:10:00Z"),
        ("2026-11-30T06:10:00+16:00", "2026-11-29T14:10:00Z"),
        ("2026-11-30T06:10:00+23:59", "2026-11-29T06:11:00Z"),
        ("2026-11-30T06:10:00+24:00", nil),
        ("2026-11-30T06:10:00+02:60", nil),
        ("2026-11-30T06:10:00+2:00", nil),
        ("2026-11-30T06:10:00-00:00", "2026-11-30T06:10:00Z"),
        ("2026-11-30T06:10:00+02:00x", nil),
        ("2026-11-30T06:10:00Z ", nil),
        (" 2026-11-30T06:10:00Z", nil),
        ("2026-11-30T06:10:00 Z", nil),
        ("2026-11-30T23:59:60Z", "2026-12-01T00:00:00Z"),
        ("2026-11-30T06:10:61Z", nil),
        ("2026-11-30T24:00:00Z", "2026-12-01T00:00:00Z"),
        ("2026-11-30T24:00:01Z", nil),
        ("2026-11-30T24:00:00.1Z", nil),
        ("2026-11-30T25:00:00Z", nil),
        ("2026-11-30T06:60:00Z", nil),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2023-02-29T00:00:00Z", nil),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
        ("1900-02-29T00:00:00Z", nil),
        ("2024-02-30T00:00:00Z", nil),
        ("2026-04-31T00:00:00Z", nil),
        ("2026-13-01T00:00:00Z", nil),
        ("2026-00-01T00:00:00Z", nil),
        ("2026-01-00T00:00:00Z", nil),
        ("0000-01-01T00:00:00Z", nil),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+10:00", nil),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ("9999-12-31T23:59:59-01:00", nil),
        ("9999-12-31T23:59:59.9999999Z", nil),
        ("10000-01-01T00:00:00Z", nil),
        ("10013-12-10T01:09:46Z", nil),
        ("294277-01-01T00:00:00Z", nil),
        ("-0025-01-01T23:01:01Z", nil),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("0", "1970-01-01T00:00:00Z"),
        ("-0", "1970-01-01T00:00:00Z"),
        ("1", "1970-01-01T00:00:01Z"),
        ("-1", "1969-12-31T23:59:59Z"),
        ("-2147483648", "1901-12-13T20:45:52Z"),
        ("1700000000", "2023-11-14T22:13:20Z"),
        ("1700000000.5", "2023-11-14T22:13:20.500Z"),
        ("1700000000.1234567", "2023-11-14T22:13:20.123457Z"),
        ("1700000000123", "2023-11-14T22:13:20.123Z"),
        ("1700000000123.4", "2023-11-14T22:13:20.123400Z"),
        ("1700000000123456", "2023-11-14T22:13:20.123456Z"),
        ("1700000000123456789", "2023-11-14T22:13:20.123457Z"),
        ("1.7e9", "2023-11-14T22:13:20Z"),
        ("17E+8", "2023-11-14T22:13:20Z"),
        ("1.7e12", "2023-11-14T22:13:20Z"),
        ("0001700000000", "2023-11-14T22:13:20Z"),
        ("99999999999", "5138-11-16T09:46:39Z"),
        ("100000000000", "1973-03-03T09:46:40Z"),
        ("-1700000000000", "1916-02-18T01:46:40Z"),
        ("1e18", "2001-09-09T01:46:40Z"),
        ("99999999999999999999", "5138-11-16T09:46:40Z"),
        ("100000000000000000000", nil),
        ("9223372036854775807", "2262-04-11T23:47:16.854776Z"),
        ("-9223372036854775808", "1677-09-21T00:12:43.145224Z"),
        ("18446744073709551616", "2554-07-21T23:34:33.709552Z"),
        ("1e-400", "1970-01-01T00:00:00Z"),
        ("1e400", nil),
        ("1e999999999999999999999", nil),
        ("0e999999999999999999999", "1970-01-01T00:00:00Z"),
        ("1" + String(repeating: "0", count: 999), nil),
        ("0." + String(repeating: "0", count: 998) + "1", "1970-01-01T00:00:00Z"),
        ("+1700000000", nil), ("1.7e", nil), (".5", nil), ("5.", nil), ("0x10", nil), ("1 ", nil),
        ("", nil), ("-", nil), ("now", nil), ("infinity", nil), ("-infinity", nil), ("epoch", nil),
        ("tomorrow", nil), ("NaN", nil), ("null", nil), ("----------------------", nil),
        ("Mon, 30 Nov 2026 06:10:00 GMT", nil), ("２０２６-11-30T06:10:00Z", nil),
    ]

    @Test(arguments: table)
    func aTimeIsReadAsTheTableSays(text: String, expected: String?) {
        #expect(parse(text).map(format) == expected)
    }

    @Test func whatIsFormattedIsParsedBackAndKnownAsSuch() {
        for (text, expected) in Self.table {
            guard let expected, let time = parse(text) else { continue }
            #expect(parse(expected) == time)
            let bytes = Array(text.utf8)
            if EventTime.isAsFormatted(bytes.rawSpan) {
                #expect(expected == text)
            } else if text.utf8.count >= 20 {
                #expect(expected != text)
            }
        }
    }

    @Test func everyPrefixAndByteIsAnsweredWithoutATrap() {
        for (text, _) in Self.table {
            let bytes = Array(text.utf8.prefix(64))
            for count in 0...bytes.count {
                _ = EventTime.parse(Array(bytes.prefix(count)).rawSpan)
            }
            for index in bytes.indices {
                for byte in [0x00, 0x2D, 0x2E, 0x39, 0x3A, 0x65, 0x7F, 0xFF] as [UInt8] {
                    var changed = bytes
                    changed[index] = byte
                    _ = EventTime.parse(changed.rawSpan)
                }
            }
        }
    }

    @Test func everyDayOfFourCenturiesGoesThereAndBack() {
        for day in stride(from: Int64(-719_162), through: 2_932_896, by: 1) {
            let date = Calendar.date(daysSince1970: day)
            guard
                Calendar.daysSince1970(year: date.year, month: date.month, day: date.day) == day,
                date.day >= 1, date.day <= Calendar.days(in: date.month, of: date.year)
            else {
                Issue.record("day \(day) is \(date)")
                return
            }
        }
    }
}

struct EventTimeRuleTests {
    private static let received: Int64 = 1_796_018_400_000_000  // 2026-11-30T06:00:00Z
    private static let second: Int64 = 1_000_000
    private static let day: Int64 = 86_400 * second
    private static let years10: Int64 = 315_576_000 * second

    private func decide(_ occurred: Int64?, _ sent: Int64?) -> (Int64, TimeRule) {
        let time = EventTime(
            occurredAt: occurred.map { Self.received + $0 },
            sentAt: sent.map { Self.received + $0 },
            receivedAt: Self.received)
        return (time.microseconds - Self.received, time.rule)
    }

    /// All times are relative to the time of receipt.
    @Test(
        arguments: [
            (nil, nil, 0, .server), (nil, -9 * second, 0, .server),
            (-10 * second, nil, -10 * second, .device),
            // The clock is right within two seconds: nothing to correct.
            (-10 * second, -2 * second, -10 * second, .device),
            (-10 * second, 2 * second, -10 * second, .device),
            (-10 * second, -2 * second - 1, -8 * second + 1, .corrected),
            // A clock one day fast, and one 40 years slow and fast.
            (day, day + 5 * second, -5 * second, .corrected),
            (-4 * years10, -4 * years10 + 60 * second, -60 * second, .corrected),
            (4 * years10, 4 * years10 + 60 * second, -60 * second, .corrected),
            (4 * years10, nil, 0, .server), (-4 * years10, nil, 0, .server),
            // Sent before it occurred is no evidence.
            (-10 * second, -20 * second, -10 * second, .device),
            // The limits of what is believed.
            (300 * second, nil, 300 * second, .device), (300 * second + 1, nil, 0, .server),
            (-years10, nil, -years10, .device), (-years10 - 1, nil, 0, .server),
            // A correction that is not to be believed leaves the device's time, if that is.
            (-years10, 10 * second, -years10, .device),
        ] as [(Int64?, Int64?, Int64, TimeRule)])
    func theRuleIs(occurred: Int64?, sent: Int64?, expected: Int64, rule: TimeRule) {
        let (time, used) = decide(occurred, sent)
        #expect(time == expected)
        #expect(used == rule)
    }

    @Test func extremeTimesDoNotTrap() {
        let extremes: [Int64] = [
            .min, .min + 1, -1, 0, 1, .max - 1, .max, EventTime.first, EventTime.last,
        ]
        for occurred in extremes {
            for sent in extremes {
                for received in extremes {
                    let time = EventTime(occurredAt: occurred, sentAt: sent, receivedAt: received)
                    if time.rule == .server { #expect(time.microseconds == received) }
                }
            }
        }
    }
}
