import Event

/// A day or an hour of a report, as its place on a line of time.
struct ReportSlot: Hashable {
    /// The key of the row: `2026-11-30`, or `2026-11-30T07:00+01:00`.
    let key: String
    /// Days or hours since 1970.
    let index: Int

    /// - Returns: nil for what is no key of a day or an hour.
    init?(_ key: String) {
        let isDay = key.count == 10
        let text = isDay ? key + "T00:00:00Z" : key.prefix(16) + ":00" + key.dropFirst(16)
        guard isDay || key.count == 22, case .instant(let time) = ReportTime(text) else {
            return nil
        }
        let seconds = Int((Double(time) / 1_000_000).rounded(.down))
        self.key = key
        index = Int((Double(seconds) / (isDay ? 86_400 : 3600)).rounded(.down))
    }

    private init(key: String, index: Int) {
        self.key = key
        self.index = index
    }

    var isDay: Bool { key.count == 10 }

    /// The day of an hour.
    var day: ReportSlot? { isDay ? self : ReportSlot(String(key.prefix(10))) }

    /// 0 for midnight to 23.
    var hour: Int { Int(key.dropFirst(11).prefix(2)) ?? 0 }

    /// 0 for Monday to 6.
    var weekday: Int {
        // 1970 began on a Thursday.
        let days = (day?.index ?? 0) + 3
        return (days % 7 + 7) % 7
    }

    /// `30 Nov`, and of an hour `07:00`.
    var short: String { isDay ? Self.words(key) : String(key.dropFirst(11).prefix(5)) }

    /// `Nov 2026`.
    var month: String { Self.words(key).suffix(3) + " " + key.prefix(4) }

    private static func words(_ key: String) -> String {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let month = (Int(key.dropFirst(5).prefix(2)) ?? 1) - 1
        let day = Int(key.dropFirst(8).prefix(2)) ?? 1
        return "\(day) \(months[min(max(month, 0), 11)])"
    }

    static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
}
