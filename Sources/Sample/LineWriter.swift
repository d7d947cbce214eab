/// Writes JSON objects one after another into one buffer, a line each, without newlines.
struct LineWriter {
    private(set) var bytes: [UInt8] = []
    private var isFirst = true

    mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func raw(_ more: [UInt8]) { bytes.append(contentsOf: more) }

    mutating func open() {
        bytes.append(UInt8(ascii: "{"))
        isFirst = true
    }

    mutating func close() {
        bytes.append(UInt8(ascii: "}"))
        isFirst = false
    }

    mutating func name(_ name: String) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        raw(name)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// A member whose text needs no escape.
    mutating func text(_ name: String, _ value: String) {
        self.name(name)
        bytes.append(UInt8(ascii: "\""))
        raw(value)
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func number(_ name: String, _ value: Int64) {
        self.name(name)
        decimal(value)
    }

    /// A member whose value is JSON already.
    mutating func json(_ name: String, _ value: String) {
        self.name(name)
        raw(value)
    }

    mutating func identifier(_ name: String, _ id: UniqueID, upperCase: Bool) {
        self.name(name)
        bytes.append(UInt8(ascii: "\""))
        let letter = UInt8(ascii: upperCase ? "A" : "a") - 10
        for (word, groups) in [(id.high, [8, 4, 4]), (id.low, [4, 12])] {
            var shift: UInt64 = 64
            for (index, count) in groups.enumerated() {
                if index > 0 || word == id.low { bytes.append(UInt8(ascii: "-")) }
                for _ in 0..<count {
                    shift -= 4
                    let digit = UInt8(truncatingIfNeeded: word >> shift) & 15
                    bytes.append(digit + (digit < 10 ? UInt8(ascii: "0") : letter))
                }
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func decimal(_ value: Int64, width: Int = 1) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = value.magnitude
        var divisor: UInt64 = 1
        var digits = 1
        while rest / divisor >= 10 || digits < width {
            divisor *= 10
            digits += 1
        }
        while divisor > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(rest / divisor))
            rest %= divisor
            divisor /= 10
        }
    }
}

/// The ways clients write a time.
enum TimeStyle: Int, CaseIterable {
    case zulu, zuluMilliseconds, offset, epochSeconds, epochMilliseconds, epochMicroseconds
    case digits
}

extension LineWriter {
    /// A member with a time in milliseconds since 1970.
    mutating func time(_ name: String, _ milliseconds: Int64, _ style: TimeStyle) {
        self.name(name)
        switch style {
        case .epochSeconds: decimal(milliseconds / 1000)
        case .epochMilliseconds: decimal(milliseconds)
        case .epochMicroseconds:
            decimal(milliseconds)
            raw("000")
        case .digits:
            raw("\"")
            decimal(milliseconds)
            raw("\"")
        case .zulu:
            raw("\"")
            civil(milliseconds)
            raw("Z\"")
        case .zuluMilliseconds:
            raw("\"")
            civil(milliseconds)
            raw(".")
            decimal(milliseconds % 1000, width: 3)
            raw("Z\"")
        case .offset:
            // Two hours east: the same instant, another wall clock.
            raw("\"")
            civil(milliseconds + 7_200_000)
            raw(".")
            decimal(milliseconds % 1000, width: 3)
            raw("+02:00\"")
        }
    }

    /// `YYYY-MM-DDTHH:MM:SS` of a time since 1970; Hinnant, "chrono-compatible algorithms".
    private mutating func civil(_ milliseconds: Int64) {
        let seconds = milliseconds / 1000
        let shifted = seconds / 86_400 + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        decimal(year, width: 4)
        raw("-")
        decimal(month < 10 ? month + 3 : month - 9, width: 2)
        raw("-")
        decimal(dayOfYear - (153 * month + 2) / 5 + 1, width: 2)
        raw("T")
        decimal(seconds % 86_400 / 3600, width: 2)
        raw(":")
        decimal(seconds % 3600 / 60, width: 2)
        raw(":")
        decimal(seconds % 60, width: 2)
    }
}
