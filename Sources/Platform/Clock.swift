import Glibc

/// A time in microseconds since 1970 UTC, or a duration in microseconds.
package typealias Microseconds = Int64

/// The two clocks of the machine, in microseconds.
package enum Clock {
    /// The wall clock: microseconds since 1970 UTC. It may step backwards.
    package static func now() -> Microseconds { read(CLOCK_REALTIME) }

    /// A clock that never steps back; its zero means nothing. For deadlines and durations.
    package static func monotonic() -> Microseconds { read(CLOCK_MONOTONIC) }

    /// A deadline on the monotonic clock.
    ///
    /// - Parameter milliseconds: How far ahead it lies; a negative value is now.
    /// - Returns: A value for ``Sync/Monitor/wait(until:for:)``.
    package static func deadline(inMilliseconds milliseconds: Int) -> Microseconds {
        monotonic() &+ Int64(max(0, min(milliseconds, 1 << 40))) &* 1000
    }

    private static func read(_ clock: clockid_t) -> Microseconds {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec) / 1000
    }

    /// The text of a time, as RFC 3339 in UTC with milliseconds: `2026-11-30T06:10:00.123Z`.
    ///
    /// Years outside 0…9999 are printed with as many digits as they need.
    ///
    /// - Parameters:
    ///   - time: Microseconds since 1970 UTC.
    ///   - fractionDigits: 0 to 6 digits of the second's fraction, cut, not rounded.
    package static func rfc3339(_ time: Microseconds, fractionDigits: Int = 3) -> String {
        precondition((0...6).contains(fractionDigits), "\(fractionDigits) fraction digits")
        let (seconds, fraction) = floorDivide(time, 1_000_000)
        let (days, secondOfDay) = floorDivide(seconds, 86_400)
        let (year, month, day) = civil(daysSince1970: days)
        var text = pad(year, 4) + "-" + pad(month, 2) + "-" + pad(day, 2) + "T"
        text += pad(secondOfDay / 3600, 2) + ":" + pad(secondOfDay / 60 % 60, 2)
        text += ":" + pad(secondOfDay % 60, 2)
        if fractionDigits > 0 { text += "." + String(pad(fraction, 6).prefix(fractionDigits)) }
        return text + "Z"
    }

    /// The civil date of a day number, after Howard Hinnant's `civil_from_days`.
    private static func civil(daysSince1970 days: Int64) -> (Int64, Int64, Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, 146_097)
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: by)
        return remainder < 0 ? (quotient - 1, remainder + by) : (quotient, remainder)
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let digits = String(value.magnitude)
        let zeros = String(repeating: "0", count: max(0, width - digits.count))
        return (value < 0 ? "-" : "") + zeros + digits
    }
}
