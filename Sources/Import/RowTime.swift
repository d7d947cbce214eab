import Event
import JSONLines

/// Times as tables have them.
enum RowTime {
    /// Whether a text is an offset from UTC.
    static func isOffset(_ text: String) -> Bool {
        isTime("2000-01-01T00:00:00" + text)
    }

    /// RFC 3339 or an epoch of a time as tables have it: a space for the `T` or before the offset, an
    /// offset without colon, or none.
    ///
    /// - Parameter zone: The offset of a time that has none.
    /// - Returns: nil for what is no time, or has no offset where there is no zone.
    static func normalised(_ text: String, zone: String?) -> String? {
        if isTime(text) { return text }
        // Only a space before the offset is left out; one for the `T` is understood.
        let parts = text.split(separator: " ")
        var time = text
        if let last = parts.last, parts.count >= 2, isOffset(String(last)) {
            time = parts.dropLast().joined(separator: " ") + last
            if isTime(time) { return time }
        }
        guard let zone else { return nil }
        time = text + zone
        return isTime(time) ? time : nil
    }

    private static func isTime(_ text: String) -> Bool { microseconds(text) != nil }

    /// Microseconds since 1970 UTC.
    static func microseconds(_ text: String) -> Int64? {
        EventTime.parse(Array(text.utf8).rawSpan)
    }
}
