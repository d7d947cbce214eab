import Event
import Platform
import Postgres

/// What a daemon knows of the closed segments without asking the database, and how it asks them.
///
/// The loader shares it with ``LookAhead``, which asks for the next batch on a thread of its own. Rows
/// neither come to a closed segment nor leave it, so it does not matter when one is asked, of a server that
/// knows that it is closed.
final class ClosedSegments: Sendable {
    private struct State: ~Copyable {
        var filters = FilterStack()
        /// Messages that are known to have several units in a closed segment.
        var several: Set<SegmentMessage> = []
        /// The closing of each segment that has one; nil until they are known.
        var closings: [Int: ClosingID]?
        var files: [Int: IdentityFile] = [:]
        /// Counts the times that what was answered before holds no longer.
        var history = 0
    }

    private struct SegmentMessage: Hashable {
        let segment: Int
        let message: UInt64
    }

    private let state = Sync.Monitor(State())
    private let identities: IdentityFiles?
    /// Writes the file of a segment that another daemon has closed.
    private let writer = Sync.Monitor<Thread?>(nil)

    /// - Parameter identities: Where files of identities are; without, the database is asked for each repeat.
    init(identities: IdentityFiles? = nil) { self.identities = identities }

    // MARK: Filters

    /// How many segments there are filters of.
    var count: Int { state.withLock { $0.filters.count } }

    /// The numbers of the segments.
    var all: [Int] { state.withLock { $0.filters.all } }

    /// See ``Inquiry/history``.
    var history: Int { state.withLock { $0.history } }

    func contains(segment: Int) -> Bool {
        state.withLock { $0.filters.contains(segment: segment) }
    }

    /// See ``FilterStack/add(_:ahead:)``.
    func add(_ filters: [(segment: Int, filter: SegmentFilter)], ahead: Int = 0) {
        state.withLock { $0.filters.add(filters, ahead: ahead) }
    }

    /// Forgets everything: the database has another history.
    func removeAll() {
        settle()
        state.withLock { state in
            state.filters = FilterStack()
            state.several = []
            state.closings = nil
            state.files = [:]
            state.history += 1
        }
    }

    /// Forgets what was answered: rows may be gone that were there.
    func forgetAnswers() { state.withLock { $0.history += 1 } }

    /// The numbers of the segments that may hold `entry`; never short of one that does.
    func segments(holding entry: FilterEntry) -> [Int] {
        state.withLock { $0.filters.segments(holding: entry) }
    }

    /// Whether any segment may hold `entry`.
    func mayHold(_ entry: FilterEntry) -> Bool { state.withLock { $0.filters.mayHold(entry) } }

    /// The segments that may hold events of a unit; never short of one that does.
    func candidates(of unit: Unit) -> [Int] {
        state.withLock { state in
            let holding = state.filters.segments(holding: .message(unit.message))
            if holding.isEmpty { return [] }
            let exact = Set(state.filters.segments(holding: .unit(unit)))
            return holding.filter {
                exact.contains($0)
                    || !state.several.contains(.init(segment: $0, message: unit.message))
            }
        }
    }

    // MARK: Files of identities

    /// Whether these closings of the database are of another history than what is known here: a segment was
    /// closed another time, or is not closed after all.
    func isOtherHistory(_ closings: [Int: ClosingID?]) -> Bool {
        state.withLock { state in
            state.filters.all.contains { closings[$0] == nil }
                || state.closings?.contains { segment, closing in
                    (closings[segment] ?? nil).map { $0 != closing } ?? false
                } ?? false
        }
    }

    /// Takes the files that are of these closings, and lets go of all others.
    func setClosings(_ closings: [Int: ClosingID]) {
        guard state.withLock({ $0.closings != closings }) else { return }
        settle()
        let (known, kept) = state.withLock { ($0.closings, $0.files) }
        var files = kept.filter { known?[$0.key] == closings[$0.key] }
        for (segment, file) in kept where files[segment] == nil { identities?.remove(file) }
        let fresh = closings.filter { known?[$0.key] != $0.value }
        if let identities {
            files.merge(identities.open(fresh, isFirst: known == nil)) { $1 }
            identities.makeRoom(&files)
        }
        state.withLock { state in
            // Who asks at this moment may have been told by a file that is not true any more.
            if kept.contains(where: { files[$0.key] !== $0.value }) { state.history += 1 }
            state.closings = closings
            state.files = files
        }
    }

    /// Takes a segment whose closing is committed, and writes its file.
    func add(_ content: IdentityFile.Content?, of closing: ClosingID, _ segment: Int) {
        let file = content.flatMap { identities?.write($0, segment, closing) }
        state.withLock { state in
            state.closings?[segment] = closing
            state.files[segment] = file
            identities?.makeRoom(&state.files)
        }
    }

    /// Writes the file of a segment that another daemon has closed, on a thread of its own: others wait for the turn.
    ///
    /// - Parameters:
    ///   - content: Not sorted yet.
    ///   - closing: As ``setClosings(_:)`` was told of it.
    func addLater(_ content: consuming IdentityFile.Content, of closing: ClosingID, _ segment: Int)
    {
        settle()
        let thread = Thread.start(name: "identities", niceness: Thread.behindAnswers) {
            [content] in
            var content = content
            content.sort()
            guard let file = self.identities?.write(content, segment, closing) else { return }
            self.state.withLock { state in
                state.files[segment] = file
                self.identities?.makeRoom(&state.files)
            }
        }
        writer.withLock { $0 = thread }
    }

    /// Waits for the file that ``addLater(_:of:_:)`` writes, if it does.
    ///
    /// Called by the loader before what is known of closings changes, so what is written is of one that holds.
    func settle() { writer.withLock { $0.take() }?.join() }

    /// Whether segments that are closed are to have files.
    var hasFiles: Bool { identities?.keepsAny ?? false }

    /// Which of some events are repeats, by the files; their identities are noted.
    ///
    /// - Parameter suspects: Of these events.
    private func findRepeats(
        _ suspects: [Suspect], _ events: ArraySlice<UnitEvent>, _ contents: [EventContent],
        _ inquiry: inout Inquiry
    ) {
        let (slices, files, history) = state.withLock { state in
            (state.filters.slices, state.files, state.history)
        }
        guard !files.isEmpty, history == inquiry.history else { return }
        var wanted: [Int: [IdentityFile.Wanted]] = [:]
        for suspect in suspects where suspect.row >= 0 {
            slices[suspect.slice].forEach(in: suspect.holding) { segment in
                guard files[segment] != nil else { return }
                let row = suspect.row
                wanted[segment, default: []].append(
                    .init(key: events[row].key, content: contents[row], number: row))
            }
        }
        for (segment, wanted) in wanted {
            guard let file = files[segment] else { continue }
            do throws(IdentityFile.Damage) {
                try file.find(wanted) { inquiry.older.keys.insert($0.key, $0.content) }
            } catch {
                if error.isPassing { continue }
                // One that had to make room is gone.
                let isOurs = state.withLock { state in
                    guard state.files[segment] === file else { return false }
                    state.files[segment] = nil
                    return true
                }
                if isOurs { identities?.drop(file.path, error) }
            }
        }
    }

    // MARK: What is to be asked

    /// An event whose message, or itself if it is of none, some segments of a slice of the filters may hold;
    /// or the unit of its inbox message.
    private struct Suspect: BitwiseCopyable {
        let unit: Unit
        let slice: Int
        let holding: UInt64
        /// The event; -1 for an inbox message, which is no event.
        let row: Int
    }

    /// Events whose filters are asked while the lock is held once.
    private static let eventsAtOnce = 4096

    /// What is to be asked about the units of some events that the open segment does not know; the marks
    /// of their messages that filters tell are noted.
    ///
    /// - Parameters:
    ///   - contents: Of each event, if repeats need not be asked for but are noted, as far as files tell them.
    ///   - inquiry: The segments that it has asked before are left out, and those asked now noted.
    func requests(
        _ open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>,
        _ contents: [EventContent]? = nil, _ inquiry: inout Inquiry,
        over connection: borrowing PostgresConnection
    ) throws(LoadError) -> Requests {
        // Segments that are closed meanwhile are left to the next one who asks.
        let slices = state.withLock { state in
            if inquiry.history != state.history {
                inquiry.history = state.history
                inquiry.segments = []
            }
            return state.filters.slices.enumerated().map { index, slice in
                Self.bits(slice.segments.count)
                    & ~Self.bits(index < inquiry.segments.count ? inquiry.segments[index] : 0)
            }
        }
        var requests = Requests()
        var unsure: [(segment: Int, unit: Unit)] = []
        guard slices.contains(where: { $0 != 0 }) else { return requests }
        var suspects: [Suspect] = []
        for start in stride(from: events.startIndex, to: events.endIndex, by: Self.eventsAtOnce) {
            let part = events[start..<min(start + Self.eventsAtOnce, events.endIndex)]
            state.withLock { state in
                guard state.history == inquiry.history else { return }
                Self.addSuspects(open, part, state.filters, slices, &suspects)
            }
        }
        if let contents {
            findRepeats(suspects, events, contents, &inquiry)
            suspects.removeAll {
                $0.row >= 0 && inquiry.older.content(of: events[$0.row].key) != nil
            }
        }
        for start in stride(from: 0, to: suspects.count, by: Self.eventsAtOnce) {
            let part = suspects[start..<min(start + Self.eventsAtOnce, suspects.count)]
            state.withLock { state in
                guard state.history == inquiry.history else { return }
                Self.ask(part, state, &inquiry.older, &requests, &unsure)
            }
        }
        if !unsure.isEmpty {
            let messages = try several(unsure, over: connection)
            state.withLock { state in
                guard state.history == inquiry.history else { return }
                // Bounded, as it only saves asking again.
                if state.several.count > 100_000 { state.several = [] }
                for (segment, message) in messages {
                    state.several.insert(.init(segment: segment, message: message))
                }
                for (segment, unit) in unsure {
                    if state.several.contains(.init(segment: segment, message: unit.message)) {
                        Self.ask(unit, in: segment, state.filters, &inquiry.older, &requests)
                    } else {
                        requests.insert(.all(of: unit.message), in: segment)
                    }
                }
            }
        }
        requests.settle()
        inquiry.segments = slices.indices.map {
            max(
                $0 < inquiry.segments.count ? inquiry.segments[$0] : 0,
                64 - slices[$0].leadingZeroBitCount)
        }
        return requests
    }

    /// The lowest `count` bits.
    private static func bits(_ count: Int) -> UInt64 { (1 << UInt64(count)) &- 1 }

    /// Adds those of some events that segments may hold and the open one does not know.
    ///
    /// - Parameter asked: Of each slice of the filters the bits of the segments.
    private static func addSuspects(
        _ open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>,
        _ filters: borrowing FilterStack, _ asked: [UInt64], _ suspects: inout [Suspect]
    ) {
        let slices = filters.slices
        let wanted = asked.indices.filter { asked[$0] != 0 }
        func ask(_ entry: FilterEntry, _ unit: Unit, _ row: Int) {
            for index in wanted {
                let holding = slices[index].mask(of: entry, among: asked[index])
                if holding != 0 {
                    suspects.append(Suspect(unit: unit, slice: index, holding: holding, row: row))
                }
            }
        }
        for index in events.indices {
            let ahead = index &+ 2 &* Decision.lookAhead
            if ahead < events.endIndex {
                open.units.prefetch(events[ahead].unit)
                for index in wanted {
                    slices[index].prefetch(.message(events[ahead].unit.message))
                }
            }
            let event = events[index]
            guard event.unit.message != 0 else {
                if open.keys.content(of: event.key) == nil {
                    ask(.key(event.key), event.unit, index)
                }
                continue
            }
            if open.units.slot(of: event.unit) == nil {
                ask(.message(event.unit.message), event.unit, index)
            }
            if event.unit.device == 0, let inbox = event.inbox,
                open.messages.slot(of: HashKey(hash: inbox.message)) == nil
            {
                ask(.message(inbox.message), inbox, -1)
            }
        }
    }

    /// Asks for units by their messages; whether a message has several units in a segment may have to be
    /// found out first.
    private static func ask(
        _ suspects: ArraySlice<Suspect>, _ state: borrowing State, _ older: inout OlderUnits,
        _ requests: inout Requests, _ unsure: inout [(segment: Int, unit: Unit)]
    ) {
        let slices = state.filters.slices
        // Single events are asked for later, by their keys.
        for index in suspects.indices where suspects[index].unit.message != 0 {
            if index + Decision.lookAhead < suspects.endIndex {
                let ahead = suspects[index + Decision.lookAhead]
                slices[ahead.slice].prefetch(.several(ahead.unit.message), places: 4)
                slices[ahead.slice].prefetch(.loose(ahead.unit.message), places: 4)
            }
            let (unit, holding) = (suspects[index].unit, suspects[index].holding)
            let slice = slices[suspects[index].slice]
            // A message is in the filter of each segment that says it is loose.
            if slice.mask(of: .loose(unit.message), among: holding) != 0 {
                older.mark(unit.message, MessageState.loose)
            }
            let several = slice.mask(of: .several(unit.message), among: holding)
            slice.forEach(in: holding & ~several) { segment in
                requests.insert(.all(of: unit.message), in: segment)
            }
            slice.forEach(in: several) { segment in
                if state.several.contains(.init(segment: segment, message: unit.message)) {
                    ask(unit, in: segment, state.filters, &older, &requests)
                } else {
                    unsure.append((segment, unit))
                }
            }
        }
    }

    /// Asks for a unit in a segment that holds several of its message, if it may hold this one.
    private static func ask(
        _ unit: Unit, in segment: Int, _ filters: borrowing FilterStack,
        _ older: inout OlderUnits, _ requests: inout Requests
    ) {
        if filters.segments(holding: .unit(unit)).contains(segment) {
            requests.insert(.only(unit), in: segment)
        }
        if filters.segments(holding: .sender(unit.message)).contains(segment) {
            older.mark(unit.message, MessageState.sender)
        }
        if filters.segments(holding: .orphan(unit.message)).contains(segment) {
            older.mark(unit.message, MessageState.orphan)
        }
    }

    /// Those of some messages that have several units in a segment.
    private func several(
        _ unsure: [(segment: Int, unit: Unit)], over connection: borrowing PostgresConnection
    ) throws(LoadError) -> [(segment: Int, message: UInt64)] {
        var found: [(segment: Int, message: UInt64)] = []
        var messages: [Int: Set<UInt64>] = [:]
        for (segment, unit) in unsure { messages[segment, default: []].insert(unit.message) }
        for (segment, set) in messages {
            let messages = Array(set)
            let ranges = messages.map { UnitRange.all(of: $0) }
            func end(_ order: String) -> String {
                "(SELECT e.unit FROM tapline.event_\(segment) e WHERE e.unit >= a.first "
                    + "AND e.unit <= a.last ORDER BY e.unit \(order) LIMIT 1)"
            }
            let answer = try connection.statement(
                """
                SELECT \(end("ASC")) IS DISTINCT FROM \(end("DESC"))
                FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS a (first, last, number)
                ORDER BY number
                """,
                [
                    .uuidArray(ranges.flatMap { $0.first.bytes }),
                    .uuidArray(ranges.flatMap { $0.last.bytes }),
                ])
            for row in 0..<answer.rows where answer.bool(row, 0) == true {
                found.append((segment, messages[row]))
            }
        }
        return found
    }

    /// The rows of a batch whose keys segments may hold, by segment.
    ///
    /// - Parameter isAsked: Whether a row is asked for by its key.
    func rows(
        _ events: [UnitEvent], where isAsked: (UnitEvent) -> Bool
    ) -> [(segment: Int, rows: [Int])] {
        var rows: [Int: [Int]] = [:]
        for row in events.indices where isAsked(events[row]) {
            for segment in segments(holding: .key(events[row].key)) {
                rows[segment, default: []].append(row)
            }
        }
        return rows.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
