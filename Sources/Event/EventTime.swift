/// What made the time of an event; the codes are those of `tapline.event.time_rule`.
package enum TimeRule: Int16, Sendable { case device = 0, corrected, server }

/// When an event happened, in microseconds since 1970 UTC, and how that was decided.
package struct EventTime: Equatable, Sendable {
    package let microseconds: Int64
    package let rule: TimeRule

    /// Less skew than this is not corrected.
    package static let skewMicrosecondsMin: Int64 = 2_000_000
    /// A time earlier than this before receipt is not believed: ten years of 365.25 days.
    package static let pastMicrosecondsMax: Int64 = 315_576_000_000_000
    /// A time later than this after receipt is not believed: five minutes.
    package static let futureMicrosecondsMax: Int64 = 300_000_000

    /// Decides by product rule: `corrected`, else `device`, else `server`. Never traps.
    ///
    /// - Parameters:
    ///   - occurredAt: The device's own time.
    ///   - sentAt: When the client sent the line, by the device's clock.
    ///   - receivedAt: When the request came, by our clock.
    package init(occurredAt: Int64?, sentAt: Int64?, receivedAt: Int64) {
        guard let occurredAt else {
            self.init(microseconds: receivedAt, rule: .server)
            return
        }
        if let sentAt, sentAt >= occurredAt,
            let skew = Self.difference(receivedAt, sentAt), skew.magnitude > 2_000_000,
            let age = Self.difference(sentAt, occurredAt),
            let corrected = Self.difference(receivedAt, age),
            Self.isPlausible(corrected, receivedAt)
        {
            self.init(microseconds: corrected, rule: .corrected)
        } else if Self.isPlausible(occurredAt, receivedAt) {
            self.init(microseconds: occurredAt, rule: .device)
        } else {
            self.init(microseconds: receivedAt, rule: .server)
        }
    }

    private init(microseconds: Int64, rule: TimeRule) {
        self.microseconds = microseconds
        self.rule = rule
    }

    private static func difference(_ left: Int64, _ right: Int64) -> Int64? {
        let (value, overflow) = left.subtractingReportingOverflow(right)
        return overflow ? nil : value
    }

    private static func isPlausible(_ time: Int64, _ receivedAt: Int64) -> Bool {
        guard let age = difference(receivedAt, time) else { return false }
        return age <= pastMicrosecondsMax && age >= -futureMicrosecondsMax
    }
}
