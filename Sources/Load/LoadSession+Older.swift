import Event
import Postgres

/// What older segments hold of the events of a batch.
extension LoadSession {
    /// What older segments hold of the units and keys of a batch that the open one does not know.
    mutating func older(
        than open: borrowing OpenSegment, _ batch: borrowing LoadBatch
    ) throws(LoadError) -> OlderUnits {
        guard picture.filters.count > 0 else { return OlderUnits() }
        var older = OlderUnits()
        var requests = try self.requests(open, batch.events[...], &older)
        if !requests.isEmpty {
            // Most of what older segments hold under the units of a batch are repeats: their keys are
            // all that is needed. Of units that have something new the events are read, too.
            var asked = AskedMessages(requests)
            try readKeys(of: requests, into: &older, &asked)
            for event in batch.events {
                if asked.isFound(event.unit.message), older.content(of: event.key) == nil,
                    open.units.slot(of: event.unit) == nil
                {
                    asked.setWanted(event.unit.message)
                }
                if event.unit.device == 0, let inbox = event.inbox {
                    asked.setWanted(inbox.message)
                }
            }
            requests.filter { asked.isWanted($0.first.message) }
            try read(&requests, into: &older)
        }
        try readKeysOutsideUnits(of: batch, open, into: &older)
        return older
    }

    /// What older segments hold of the units of some events that the open one does not know.
    mutating func older(
        than open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>
    ) throws(LoadError) -> OlderUnits {
        var older = OlderUnits()
        guard picture.filters.count > 0 else { return older }
        var requests = try self.requests(open, events, &older)
        try read(&requests, into: &older)
        return older
    }

    // MARK: Filters

    /// A unit whose message some segments of a slice of the filters may hold.
    struct Suspect: BitwiseCopyable {
        let unit: Unit
        let slice: Int
        let holding: UInt64
    }

    /// What is to be asked of older segments about the units of some events that the open one does not
    /// know; the marks of their messages that filters tell are noted.
    private func requests(
        _ open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>, _ older: inout OlderUnits
    ) throws(LoadError) -> Requests {
        let suspects = self.suspects(open, events)
        var requests = Requests()
        var unsure: [(segment: Int, unit: Unit)] = []
        let slices = picture.filters.slices
        for index in suspects.indices {
            if index + Decision.lookAhead < suspects.count {
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
                if picture.several.contains(.init(segment: segment, message: unit.message)) {
                    request(unit, in: segment, &requests, &older)
                } else {
                    unsure.append((segment, unit))
                }
            }
        }
        if !unsure.isEmpty {
            try findSeveral(unsure, &requests)
            for (segment, unit) in unsure
            where picture.several.contains(.init(segment: segment, message: unit.message)) {
                request(unit, in: segment, &requests, &older)
            }
        }
        requests.settle()
        return requests
    }

    /// The units of some events that older segments may hold and the open one does not know.
    private func suspects(
        _ open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>
    ) -> [Suspect] {
        var suspects: [Suspect] = []
        let slices = picture.filters.slices
        func ask(_ unit: Unit) {
            for index in slices.indices {
                let holding = slices[index].mask(of: .message(unit.message))
                if holding != 0 {
                    suspects.append(Suspect(unit: unit, slice: index, holding: holding))
                }
            }
        }
        for index in events.indices {
            let ahead = index &+ 2 &* Decision.lookAhead
            if ahead < events.endIndex {
                open.units.prefetch(events[ahead].unit)
                for slice in slices { slice.prefetch(.message(events[ahead].unit.message)) }
            }
            let event = events[index]
            guard event.unit.message != 0 else { continue }
            if open.units.slot(of: event.unit) == nil { ask(event.unit) }
            if event.unit.device == 0, let inbox = event.inbox,
                open.messages.slot(of: HashKey(hash: inbox.message)) == nil
            {
                ask(inbox)
            }
        }
        return suspects
    }

    /// Asks for a unit in a segment that holds several of its message, if it may hold this one.
    private func request(
        _ unit: Unit, in segment: Int, _ requests: inout Requests, _ older: inout OlderUnits
    ) {
        func mayHold(_ entry: FilterEntry) -> Bool {
            picture.filters.segments(holding: entry).contains(segment)
        }
        if mayHold(.unit(unit)) { requests.insert(.only(unit), in: segment) }
        if mayHold(.sender(unit.message)) { older.mark(unit.message, MessageState.sender) }
        if mayHold(.orphan(unit.message)) { older.mark(unit.message, MessageState.orphan) }
    }

    /// Finds out which messages have several units in a segment; asks for the others as a whole.
    private func findSeveral(
        _ unsure: [(segment: Int, unit: Unit)], _ requests: inout Requests
    ) throws(LoadError) {
        // Bounded, as it only saves asking again.
        if picture.several.count > 100_000 { picture.several = [] }
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
            for row in 0..<answer.rows {
                if answer.bool(row, 0) == true {
                    picture.several.insert(.init(segment: segment, message: messages[row]))
                } else {
                    requests.insert(.all(of: messages[row]), in: segment)
                }
            }
        }
    }

    /// The closed segments that may hold events of a unit; never short of one that does.
    func candidates(of unit: Unit) -> [Int] {
        let holding = picture.filters.segments(holding: .message(unit.message))
        if holding.isEmpty { return [] }
        let exact = Set(picture.filters.segments(holding: .unit(unit)))
        return holding.filter {
            exact.contains($0)
                || !picture.several.contains(.init(segment: $0, message: unit.message))
        }
    }

    // MARK: Reading by index

    /// What is read of one closed segment by its index.
    private enum Question: String {
        /// The keys in ranges of units, without those of some units.
        case keys
        /// The same, but the events.
        case events
        /// The keys of single events.
        case singles

        func sql(_ segment: Int) -> String {
            let ranges = """
                FROM unnest($1::uuid[], $2::uuid[]) AS a (first, last)
                JOIN tapline.event_\(segment) e ON e.unit >= a.first AND e.unit <= a.last
                WHERE e.unit <> ALL ($3::uuid[])
                """
            let keys = "e.unit, e.key, e.properties_hash, e.campaign_id"
            return switch self {
            case .keys: "SELECT \(keys) \(ranges)"
            case .events: "SELECT \(UnitEvent.selection) \(ranges)"
            case .singles:
                """
                SELECT \(keys) FROM unnest($1::uuid[], $2::uuid[]) AS a (unit, key)
                JOIN tapline.event_\(segment) e USING (unit, key)
                """
            }
        }
    }

    /// Asks segments, all of them at once.
    ///
    /// The statement of each segment is planned once a session: with many segments the plans would
    /// take longer than the answers.
    private mutating func ask(
        _ question: Question, _ calls: [(segment: Int, parameters: [PostgresValue])],
        _ receive: (Int, borrowing PostgresResult) -> Void
    ) throws(LoadError) {
        do throws(PostgresError) {
            for (segment, parameters) in calls {
                let name = "\(question.rawValue)_\(segment)"
                if prepared.contains(name) { continue }
                try connection.prepare(name, question.sql(segment), like: parameters)
                prepared.insert(name)
            }
            try connection.queryPrepared(calls: calls.count) { call in
                ("\(question.rawValue)_\(calls[call].segment)", calls[call].parameters)
            } receive: { call, answer in
                receive(calls[call].segment, answer)
            }
        } catch {
            throw .postgres(error)
        }
    }

    /// Reads the keys of ranges of units.
    private mutating func readKeys(
        of requests: borrowing Requests, into older: inout OlderUnits, _ asked: inout AskedMessages
    ) throws(LoadError) {
        let heavy = try heavyUnits(of: requests)
        for unit in heavy.values.joined() { asked.setFound(unit.message) }
        try ask(.keys, Self.calls(requests, without: heavy)) { _, answer in
            for row in 0..<answer.rows {
                older.addKey(answer, row)
                asked.setFound(Unit(uuid: answer.bytes(row, 0)).message)
            }
        }
    }

    /// For each segment the first and the last units of its ranges as two arrays, and as a third one, if
    /// there is one, those of its units that are left out.
    static func calls(
        _ requests: borrowing Requests, without heavy: [Int: [Unit]]? = nil
    ) -> [(segment: Int, parameters: [PostgresValue])] {
        var calls: [(segment: Int, parameters: [PostgresValue])] = []
        requests.forEachSegment { segment, list in
            let ranges = arrays(list)
            calls.append((segment, [ranges.first, ranges.last]))
            if let heavy {
                let units = heavy[segment]?.flatMap { $0.bytes } ?? []
                calls[calls.count - 1].parameters.append(.uuidArray(units))
            }
        }
        return calls
    }

    private static func arrays(
        _ list: ArraySlice<Requests.Request>
    ) -> (first: PostgresValue, last: PostgresValue) {
        var first: [UInt8] = []
        var last: [UInt8] = []
        first.reserveCapacity(list.count * 16)
        last.reserveCapacity(list.count * 16)
        for request in list {
            first.append(request.range.first)
            last.append(request.range.last)
        }
        return (.uuidArray(first), .uuidArray(last))
    }

    /// Reads the events of ranges of units, and notes which of the units are special.
    ///
    /// Of a heavy unit nothing is read but that it is one.
    mutating func read(
        _ requests: inout Requests, into older: inout OlderUnits
    ) throws(LoadError) {
        guard !requests.isEmpty else { return }
        requests.settle()
        let heavy = try heavyUnits(of: requests)
        try ask(.events, Self.calls(requests, without: heavy)) { segment, answer in
            for row in 0..<answer.rows { older.add(answer, row, segment: segment) }
        }
        for unit in Set(heavy.values.joined()) {
            older.addHeavy(unit)
            if picture.filters.mayHold(.sender(unit.message)) {
                older.mark(unit.message, MessageState.sender)
            }
            if picture.filters.mayHold(.orphan(unit.message)) {
                older.mark(unit.message, MessageState.orphan)
            }
        }
        try markSpecial(&older)
    }

    /// The heavy units of some ranges, by segment.
    private func heavyUnits(
        of requests: borrowing Requests
    ) throws(LoadError) -> [Int: [Unit]] {
        // As a rule there is none at all, and thousands of ranges need not be looked up.
        let any = try connection.statement(
            "SELECT FROM tapline.special_unit WHERE is_heavy LIMIT 1")
        guard any.rows > 0 else { return [:] }
        let ranges = Self.arrays(requests.list[...])
        let answer = try connection.statement(
            """
            SELECT DISTINCT s.unit, s.segment FROM unnest($1::uuid[], $2::uuid[]) AS a (first, last)
            JOIN tapline.special_unit s ON s.unit >= a.first AND s.unit <= a.last
            WHERE s.is_heavy
            """, [ranges.first, ranges.last], format: .binary)
        var heavy: [Int: [Unit]] = [:]
        for row in 0..<answer.rows {
            heavy[Int(answer.int64(row, 1) ?? 0), default: []].append(
                Unit(uuid: answer.bytes(row, 0)))
        }
        return heavy
    }

    /// Asks the database which of the units are special.
    func markSpecial(_ older: inout OlderUnits) throws(LoadError) {
        guard !older.units.isEmpty else { return }
        let answer = try connection.statement(
            """
            SELECT DISTINCT s.unit FROM unnest($1::uuid[]) AS a (unit)
            JOIN tapline.special_unit s ON s.unit = a.unit
            """, [.uuidArray(older.units.keys.flatMap { $0.bytes })], format: .binary)
        for row in 0..<answer.rows { older.setSpecial(Unit(uuid: answer.bytes(row, 0))) }
    }

    /// Asks for the keys of the events that are in no unit, or in one that is not read.
    private mutating func readKeysOutsideUnits(
        of batch: borrowing LoadBatch, _ open: borrowing OpenSegment, into older: inout OlderUnits
    ) throws(LoadError) {
        var rows: [Int: [Int]] = [:]
        for row in batch.events.indices {
            let unit = batch.events[row].unit
            guard unit.message == 0 || older.isHeavy(unit) || open.hasHeavy && open.isHeavy(unit)
            else { continue }
            let key = batch.events[row].key
            guard open.keys.content(of: key) == nil else { continue }
            for slice in picture.filters.slices {
                slice.forEach(in: slice.mask(of: .key(key))) { segment in
                    rows[segment, default: []].append(row)
                }
            }
        }
        guard !rows.isEmpty else { return }
        var calls: [(segment: Int, parameters: [PostgresValue])] = []
        for (segment, rows) in rows.sorted(by: { $0.key < $1.key }) {
            var units: [UInt8] = []
            var keys: [UInt8] = []
            for event in rows.map({ batch.events[$0] }).sorted(by: { $0.key < $1.key }) {
                units.append(event.unit)
                keys.append(Unit(message: event.key.high, device: event.key.low))
            }
            calls.append((segment, [.uuidArray(units), .uuidArray(keys)]))
        }
        try ask(.singles, calls) { _, answer in
            for row in 0..<answer.rows { older.addKey(answer, row) }
        }
    }
}
