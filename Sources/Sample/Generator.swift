/// Makes the lines of one app and sorts them by arrival.
struct Generator {
    let app: SampleApp
    let options: SampleOptions
    var random: SplitMix64
    private(set) var devices: [Device] = []
    private var writer = LineWriter()
    private var lines: [Line] = []
    private var result = SampleOutput()

    private struct Line {
        let arrival: Int64
        let start: Int
        let end: Int
        let isCRLF: Bool
    }

    /// The end of the sample in milliseconds.
    var anchor: Int64 { options.anchorSeconds * 1000 }

    init(app: SampleApp, options: SampleOptions) {
        self.app = app
        self.options = options
        random = SplitMix64(seed: options.seed &+ app.salt &* 0x1_0000_0001)
        for _ in 0..<max(9000 * options.percent / 100, 40) {
            devices.append(Device(app: app, orderFree: options.isOrderFree, &random))
        }
    }

    /// A new event, with a random id if this app's SDK gives its events one.
    mutating func draft(_ type: String, at: Int64, device: Device?, hasUID: Bool? = nil) -> Draft {
        var draft = Draft(type: type, at: at, device: device, detail: random.next())
        if hasUID ?? (app.hasEventUIDs && device != nil) { draft.eventUID = UniqueID(&random) }
        return draft
    }

    /// Adds an event, with the repeats and the delays that happen to events.
    ///
    /// An event after the anchor has not happened yet and is left out.
    mutating func add(_ draft: Draft) {
        guard draft.at <= anchor else { return }
        var draft = draft
        // Some events have no time but what the server gives them; those need an id.
        if !options.isOrderFree, draft.eventUID != nil, random.chance(3) { draft.hasTime = false }
        result.types[draft.type, default: 0] += 1
        var arrival = draft.at + random.delay(upTo: 90_000) + 200
        // A phone that was off for days sends what it kept.
        if random.chance(20) { arrival += random.delay(upTo: 10 * 86_400_000) }
        write(draft, arrival: arrival)
        guard random.chance(60) else { return }
        // The answer got lost, so the client sends the line again.
        let again = arrival + random.delay(upTo: 3_600_000) + 1000
        let restamps = random.chance(250)
        let differs = random.chance(20)
        guard !options.isOrderFree, draft.eventUID != nil else {
            result.duplicates += 1
            return write(draft, arrival: again, sentAt: arrival)
        }
        if differs, draft.campaign != nil {
            result.conflicts += 1
            draft.campaign = app == .games ? "EVENT:other" : "999"
            return write(draft, arrival: again)
        }
        if restamps { draft.at += 30_000 }
        result.duplicates += 1
        write(draft, arrival: again)
    }

    private mutating func write(_ draft: Draft, arrival: Int64, sentAt: Int64? = nil) {
        let start = writer.bytes.count
        draft.write(to: &writer, app: app, sentAt: sentAt ?? arrival)
        result.good += 1
        finishLine(from: start, arrival: arrival)
    }

    /// Adds a line that must be rejected.
    mutating func addBad(_ kind: BadLine, _ bytes: [UInt8]) {
        let start = writer.bytes.count
        writer.raw(bytes)
        result.bad[kind, default: 0] += 1
        finishLine(from: start, arrival: anchor - Int64(random.below(12 * 86_400_000)))
    }

    private mutating func finishLine(from start: Int, arrival: Int64) {
        lines.append(
            Line(
                arrival: arrival, start: start, end: writer.bytes.count,
                isCRLF: app == .games && random.chance(20)))
    }

    /// Everything, in order of arrival, with a few blank lines between.
    mutating func output() -> SampleOutput {
        // The position breaks ties, so that the order is the same everywhere.
        lines.sort { ($0.arrival, $0.start) < ($1.arrival, $1.start) }
        let made = writer.bytes
        result.bytes.reserveCapacity(made.count + lines.count * 2)
        for line in lines {
            result.bytes.append(contentsOf: made[line.start..<line.end])
            if line.isCRLF { result.bytes.append(0x0D) }
            result.bytes.append(0x0A)
            if random.chance(1) { result.bytes.append(0x0A) }
        }
        result.lines = lines.count
        return result
    }
}
