/// How to make the sample.
package struct SampleOptions: Equatable, Sendable {
    /// The time the sample ends, in seconds since 1970: no event is later by a right clock.
    package var anchorSeconds: Int64
    /// Size, in percent.
    package var percent = 100
    /// Leaves out what the order of arrival decides (docs/events.md): repeats with another time,
    /// conflicts, times by the rules `server` and `corrected`. Then any order, and any repeats,
    /// give the same report.
    package var isOrderFree = false
    /// Where the random numbers begin.
    package var seed: UInt64 = 20_261_130

    /// Makes options for the whole sample.
    package init(anchorSeconds: Int64) { self.anchorSeconds = anchorSeconds }
}

/// The kinds of lines that are wrong, each for a reason of its own.
package enum BadLine: String, CaseIterable, Sendable {
    case cutOff, notAnObject, trailingText, noType, emptyType, wrongType, typeIsNumber
    case noMessage, messageTooLong, nulInIdentifier, surrogateInIdentifier, notUTF8
    case campaignIsFraction, noIdentity, tooDeep, tooLong

    /// How many each app has.
    var count: Int { self == .tooLong ? 1 : 7 }
}

/// The sample of one app, and what it must come to.
package struct SampleOutput: Equatable, Sendable {
    /// NDJSON in order of arrival.
    package var bytes: [UInt8] = []
    /// Lines that are not blank.
    package var lines = 0
    /// Lines that are events, repeats included.
    package var good = 0
    /// Wrong lines by kind.
    package var bad: [BadLine: Int] = [:]
    /// Good lines that repeat the identity of another and agree with it.
    package var duplicates = 0
    /// Good lines that repeat the identity of another and differ.
    package var conflicts = 0
    /// First sights by canonical type; custom events by their word.
    package var types: [String: Int] = [:]

    /// Wrong lines of all kinds.
    package var rejected: Int { bad.values.reduce(0, +) }
    /// Events once each.
    package var distinct: Int { good - duplicates - conflicts }
}

/// The demo's events: the same bytes for the same options, on every machine.
package enum Sample {
    /// Makes the events of one app.
    package static func lines(app: SampleApp, options: SampleOptions) -> SampleOutput {
        var generator = Generator(app: app, options: options)
        generator.makeCampaigns()
        generator.makeActivity()
        generator.makeBadLines()
        return generator.output()
    }
}
