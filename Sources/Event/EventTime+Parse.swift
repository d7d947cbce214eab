import JSONLines

extension EventTime {
    /// 0001-01-01T00:00:00Z.
    package static let first: Int64 = -62_135_596_800_000_000
    /// 9999-12-31T23:59:59.999999Z.
    package static let last: Int64 = 253_402_300_799_999_999

    /// Reads a time that a client wrote; every byte string is answered and none traps.
    ///
    /// RFC 3339 with up to nine digits of fraction, rounded to microseconds; `t`, `z` and a space for
    /// `T` are taken, and offsets as `±hh:mm`, `±hhmm` or `±hh`. `24:00:00` and second 60 belong to the
    /// next day and minute. Else a decimal number, an epoch whose unit is told by its magnitude:
    /// below 10^11 seconds, below 10^14 milliseconds, below 10^17 microseconds, below 10^20 nanoseconds.
    ///
    /// - Returns: Microseconds since 1970 UTC in the years 1 to 9999, or nil: a time without a zone,
    ///   a word such as `now` and a day that is not in the calendar are no times.
    package static func parse(_ text: RawSpan) -> Int64? {
        let isDate = text.byteCount >= 20 && text.byte(at: 4) == 0x2D
        guard let time = isDate ? parseDate(text) : parseEpoch(text) else { return nil }
        return time >= first && time <= last ? time : nil
    }

    private static func parseDate(_ text: RawSpan) -> Int64? {
        var isDigits = true
        let year = pair(text, 0, &isDigits) * 100 + pair(text, 2, &isDigits)
        let month = pair(text, 5, &isDigits)
        let day = pair(text, 8, &isDigits)
        let hour = pair(text, 11, &isDigits)
        let minute = pair(text, 14, &isDigits)
        let second = pair(text, 17, &isDigits)
        let separator = text.byte(at: 10)
        guard isDigits, text.byte(at: 7) == 0x2D, text.byte(at: 13) == 0x3A,
            text.byte(at: 16) == 0x3A,
            separator == 0x54 || separator == 0x74 || separator == 0x20,
            year >= 1, month >= 1, month <= 12, day >= 1,
            day <= 28 || day <= Calendar.days(in: month, of: year), minute <= 59, second <= 60
        else { return nil }
        var index = 19
        guard let fraction = fraction(text, &index), let offset = offset(text, index) else {
            return nil
        }
        if hour > 23, !(hour == 24 && minute == 0 && second == 0 && fraction == 0) { return nil }
        let days = Calendar.daysSince1970(year: year, month: month, day: day)
        // No product can overflow: the year has four digits.
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
        return seconds * 1_000_000 + fraction
    }

    /// The number in the two digits at `index`.
    @inline(__always)
    private static func pair(_ text: RawSpan, _ index: Int, _ isDigits: inout Bool) -> Int64 {
        let tens = text.byte(at: index) &- 0x30
        let ones = text.byte(at: index &+ 1) &- 0x30
        if tens > 9 || ones > 9 { isDigits = false }
        return Int64(tens) &* 10 &+ Int64(ones)
    }

    /// Microseconds of a fraction, which may be absent.
    private static func fraction(_ text: RawSpan, _ index: inout Int) -> Int64? {
        guard index < text.byteCount, text.byte(at: index) == 0x2E else { return 0 }
        index += 1
        var nanoseconds: Int64 = 0
        var count = 0
        while index < text.byteCount, Ascii.isDigit(text.byte(at: index)) {
            guard count < 9 else { return nil }
            nanoseconds = nanoseconds &* 10 &+ Int64(text.byte(at: index) &- 0x30)
            count &+= 1
            index &+= 1
        }
        guard count > 0 else { return nil }
        if count == 3 { return nanoseconds &* 1000 }
        for _ in count..<9 { nanoseconds *= 10 }
        return (nanoseconds + 500) / 1000
    }

    /// Seconds east of UTC of the zone that ends the text.
    private static func offset(_ text: RawSpan, _ index: Int) -> Int64? {
        guard index < text.byteCount else { return nil }
        let sign = text.byte(at: index)
        if sign | 0x20 == 0x7A { return index + 1 == text.byteCount ? 0 : nil }
        guard sign == 0x2B || sign == 0x2D, text.byteCount >= index + 3 else { return nil }
        var isDigits = true
        let hours = pair(text, index + 1, &isDigits)
        var minutes: Int64 = 0
        var end = index + 3
        if end < text.byteCount {
            if text.byte(at: end) == 0x3A { end += 1 }
            guard text.byteCount == end + 2 else { return nil }
            minutes = pair(text, end, &isDigits)
        }
        guard isDigits, hours <= 23, minutes <= 59 else { return nil }
        let seconds = hours * 3600 + minutes * 60
        return sign == 0x2D ? -seconds : seconds
    }

    /// An epoch in JSON's grammar of numbers.
    private static func parseEpoch(_ text: RawSpan) -> Int64? {
        var index = 0
        let isNegative = text.byteCount > 0 && text.byte(at: 0) == 0x2D
        if isNegative { index = 1 }
        var number = Decimal()
        guard number.read(text, &index), index == text.byteCount,
            let magnitude = number.microseconds()
        else { return nil }
        return isNegative ? -magnitude : magnitude
    }
}

/// Digits and an exponent: `significand` × 10^`exponent`.
private struct Decimal {
    private var significand: Int64 = 0
    private var digits = 0
    private var exponent = 0

    /// Reads an unsigned number; false if there is none or it has over 18 digits before the point
    /// that are not 0.
    mutating func read(_ text: RawSpan, _ index: inout Int) -> Bool {
        var count = 0
        var isFraction = false
        while index < text.byteCount {
            let byte = text.byte(at: index)
            if byte == 0x2E, !isFraction, count > 0 {
                isFraction = true
                count = 0
            } else if Ascii.isDigit(byte) {
                count += 1
                add(byte - 0x30, isFraction)
            } else {
                break
            }
            index += 1
        }
        guard count > 0 else { return false }
        if index < text.byteCount, text.byte(at: index) | 0x20 == 0x65 {
            index += 1
            guard let power = Self.readPower(text, &index) else { return false }
            exponent += power
        }
        return true
    }

    private mutating func add(_ digit: UInt8, _ isFraction: Bool) {
        if digits < 18 {
            significand = significand * 10 + Int64(digit)
            if significand > 0 { digits += 1 }
            if isFraction { exponent -= 1 }
        } else if !isFraction {
            exponent = min(exponent + 1, 1000)  // The digit is less than a microsecond can tell.
        }
    }

    private static func readPower(_ text: RawSpan, _ index: inout Int) -> Int? {
        var isNegative = false
        if index < text.byteCount, [0x2B, 0x2D].contains(text.byte(at: index)) {
            isNegative = text.byte(at: index) == 0x2D
            index += 1
        }
        let start = index
        var value = 0
        while index < text.byteCount, Ascii.isDigit(text.byte(at: index)) {
            value = min(value * 10 + Int(text.byte(at: index) - 0x30), 10_000)
            index += 1
        }
        guard index > start else { return nil }
        return isNegative ? -value : value
    }

    /// Microseconds, rounded, with the unit told by the magnitude; nil from 10^20 on.
    func microseconds() -> Int64? {
        guard significand > 0 else { return 0 }
        let scale: Int
        switch digits + exponent {  // The number is below ten to this power.
        case ...11: scale = 6
        case ...14: scale = 3
        case ...17: scale = 0
        case ...20: scale = -3
        default: return nil
        }
        var value = significand
        var power = exponent + scale
        while power > 0 {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            if overflow { return nil }
            value = product
            power -= 1
        }
        while power < -1 {
            value /= 10
            power += 1
            if value == 0 { return 0 }
        }
        return power == 0 ? value : (value + 5) / 10
    }
}

/// The proleptic Gregorian calendar.
enum Calendar {
    static func isLeap(_ year: Int64) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    static func days(in month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970-01-01, by eras of 400 years that begin in March.
    static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }

    /// The inverse of ``daysSince1970(year:month:day:)``.
    static func date(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}

extension EventTime {
    /// Whether ``format(_:into:)`` of a time that was parsed from `text` gives `text` again.
    package static func isAsFormatted(_ text: RawSpan) -> Bool {
        let count = text.byteCount
        guard count == 20 || count == 24 || count == 27, text.byte(at: 10) == 0x54,
            text.byte(at: count - 1) == 0x5A, text.matches("24", at: 11) == false,
            text.byte(at: 17) != 0x36
        else { return false }
        // A fraction must need its last three digits.
        return count == 20 || !text.matches("000Z", at: count - 4)
    }

    /// Appends RFC 3339 in UTC, with no, three or six digits of fraction as the time needs.
    ///
    /// A time outside the years 1 to 9999 is written as the nearest inside.
    package static func format(_ time: Int64, into output: inout ByteBuffer) {
        let microseconds = min(max(time, first), last)
        let fraction = ((microseconds % 1_000_000) + 1_000_000) % 1_000_000
        let seconds = (microseconds - fraction) / 1_000_000
        let second = ((seconds % 86_400) + 86_400) % 86_400
        let date = Calendar.date(daysSince1970: (seconds - second) / 86_400)
        func append(_ value: Int64, _ count: Int, _ before: UInt8?) {
            if let before { output.append(before) }
            var divisor: Int64 = 1
            for _ in 1..<count { divisor *= 10 }
            while divisor > 0 {
                output.append(0x30 + UInt8(truncatingIfNeeded: value / divisor % 10))
                divisor /= 10
            }
        }
        append(date.year, 4, nil)
        append(date.month, 2, 0x2D)
        append(date.day, 2, 0x2D)
        append(second / 3600, 2, 0x54)
        append(second / 60 % 60, 2, 0x3A)
        append(second % 60, 2, 0x3A)
        if fraction % 1000 != 0 {
            append(fraction, 6, 0x2E)
        } else if fraction != 0 {
            append(fraction / 1000, 3, 0x2E)
        }
        output.append(0x5A)
    }
}
