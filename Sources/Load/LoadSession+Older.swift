import Event
import Postgres

/// What older segments hold of the events of a batch.
extension LoadSession {
    /// A range of units, both ends included, to be read from one segment.
    struct UnitRange: Hashable {
        let first: Unit
        let last: Unit

        static func only(_ unit: Unit) -> UnitRange { UnitRange(first: unit, last: unit) }

        /// All units of a message.
        static func all(of message: UInt64) -> UnitRange {
            UnitRange(
                first: Unit(message: message, device: 0), last: Unit(message: message, device: .max)
            )
        }
    }

    /// Ranges of units by segment.
    typealias Requests = [Int: Set<UnitRange>]

    /// What older segments hold of the units and keys of a batch that the open one does not know.
    mutating func older(
        than open: borrowing OpenSegment, _ batch: borrowing LoadBatch
    ) throws(LoadError) -> OlderUnits {
        guard picture.filters.count > 0 else { return OlderUnits() }
        var older = OlderUnits()
        var requests = try self.requests(open, batch.events[...], &older)
        // Most of what older segments hold under the units of a batch are repeats: their keys are all
        // that is needed. Of units that have something new the events are read, too.
        try readKeys(of: requests, into: &older)
        var messages: Set<UInt64> = []
        if !requests.isEmpty {
            for event in batch.events where event.unit.message != 0 {
                if older.content(of: event.key) == nil, open.units.slot(of: event.unit) == nil {
                    messages.insert(event.unit.message)
                }
                if event.unit.device == 0, let inbox = event.inbox {
                    messages.insert(inbox.message)
                }
            }
        }
        for (segment, ranges) in requests {
            let wanted = ranges.filter { messages.contains($0.first.message) }
            requests[segment] = wanted.isEmpty ? nil : wanted
        }
        try read(requests, into: &older)
        var keys: [Int: [Int]] = [:]
        for row in batch.events.indices {
            let unit = batch.events[row].unit
            guard unit.message == 0 || older.isHeavy(unit) || open.hasHeavy && open.isHeavy(unit)
            else { continue }
            let key = batch.events[row].key
            guard open.keys.content(of: key) == nil else { continue }
            for segment in picture.filters.segments(holding: .key(key)) {
                keys[segment, default: []].append(row)
            }
        }
        for (segment, rows) in keys.sorted(by: { $0.key < $1.key }) {
            try readKeys(of: batch, rows, in: segment, into: &older)
        }
        return older
    }

    /// What older segments hold of the units of some events that the open one does not know.
    func older(
        than open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>
    ) throws(LoadError) -> OlderUnits {
        var older = OlderUnits()
        guard picture.filters.count > 0 else { return older }
        try read(requests(open, events, &older), into: &older)
        return older
    }

    /// What is to be asked of older segments about the units of some events that the open one does not
    /// know; the marks of their messages that filters tell are noted.
    private func requests(
        _ open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>, _ older: inout OlderUnits
    ) throws(LoadError) -> Requests {
        var requests: Requests = [:]
        var unsure: [Int: Set<UInt64>] = [:]
        // Twice where a filter has left it open whether a message has several units: then it is known.
        for attempt in 0..<2 {
            for index in events.indices {
                let ahead = index &+ 2 &* Decision.lookAhead
                if ahead < events.endIndex {
                    open.units.prefetch(events[ahead].unit)
                    picture.filters.prefetch(.message(events[ahead].unit.message))
                }
                let event = events[index]
                guard event.unit.message != 0 else { continue }
                if open.units.slot(of: event.unit) == nil {
                    request(event.unit, &requests, &unsure, &older)
                }
                if event.unit.device == 0, let inbox = event.inbox,
                    open.messages.slot(of: HashKey(hash: inbox.message)) == nil
                {
                    request(inbox, &requests, &unsure, &older)
                }
            }
            if unsure.isEmpty { break }
            precondition(attempt == 0)
            try findSeveral(unsure, &requests)
            unsure = [:]
        }
        return requests
    }

    /// Reads the keys of ranges of units.
    ///
    /// The statement of each segment is planned once a session: with many segments the plans would
    /// take longer than the answers.
    private mutating func readKeys(
        of requests: Requests, into older: inout OlderUnits
    ) throws(LoadError) {
        guard !requests.isEmpty else { return }
        let heavy = try heavyUnits(of: requests)
        for (segment, ranges) in requests.sorted(by: { $0.key < $1.key }) {
            let parameters = Self.parameters(ranges, without: heavy[segment] ?? [])
            do throws(PostgresError) {
                let name = "keys_\(segment)"
                if preparedKeys.insert(segment).inserted {
                    try connection.prepare(
                        name,
                        """
                        SELECT e.key, e.properties_hash, e.campaign_id
                        FROM unnest($1::uuid[], $2::uuid[]) AS a (first, last)
                        JOIN tapline.event_\(segment) e ON e.unit >= a.first AND e.unit <= a.last
                        WHERE e.unit <> ALL ($3::uuid[])
                        """, like: parameters)
                }
                let answer = try connection.queryPrepared(name, parameters)
                for row in 0..<answer.rows { older.addKey(answer, row) }
            } catch {
                throw .postgres(error)
            }
        }
    }

    /// The ends of ranges as two arrays, and the units that are left out.
    private static func parameters(
        _ ranges: Set<UnitRange>, without units: [Unit]? = nil
    ) -> [PostgresValue] {
        var first: [UInt8] = []
        var last: [UInt8] = []
        first.reserveCapacity(ranges.count * 16)
        last.reserveCapacity(ranges.count * 16)
        for range in ranges {
            first.append(range.first)
            last.append(range.last)
        }
        var parameters: [PostgresValue] = [.uuidArray(first), .uuidArray(last)]
        if let units { parameters.append(.uuidArray(units.flatMap { $0.bytes })) }
        return parameters
    }

    /// Asks for a unit in the segments that may hold it or its message.
    ///
    /// - Parameter unsure: Takes the messages of which it has to be known first whether they have
    ///   several units in a segment: of those only the filter is asked.
    private func request(
        _ unit: Unit, _ requests: inout Requests, _ unsure: inout [Int: Set<UInt64>],
        _ older: inout OlderUnits
    ) {
        let message = unit.message
        let holding = picture.filters.segments(holding: .message(message))
        if holding.isEmpty { return }
        let several = Set(picture.filters.segments(holding: .several(message)))
        // A message is in the filter of each segment that says it is loose.
        if picture.filters.segments(holding: .loose(message)).contains(where: holding.contains) {
            older.mark(message, MessageState.loose)
        }
        for segment in holding {
            guard several.contains(segment) else {
                requests[segment, default: []].insert(.all(of: message))
                continue
            }
            guard picture.several.contains(.init(segment: segment, message: message)) else {
                // A segment that was asked for all of them holds one unit of the message only.
                if requests[segment]?.contains(.all(of: message)) != true {
                    unsure[segment, default: []].insert(message)
                }
                continue
            }
            if picture.filters.segments(holding: .unit(unit)).contains(segment) {
                requests[segment, default: []].insert(.only(unit))
            }
            if picture.filters.segments(holding: .sender(message)).contains(segment) {
                older.mark(message, MessageState.sender)
            }
            if picture.filters.segments(holding: .orphan(message)).contains(segment) {
                older.mark(message, MessageState.orphan)
            }
        }
    }

    /// Finds out which messages have several units in a segment; asks for the others as a whole.
    private func findSeveral(
        _ unsure: [Int: Set<UInt64>], _ requests: inout Requests
    ) throws(LoadError) {
        // Bounded, as it only saves asking again.
        if picture.several.count > 100_000 { picture.several = [] }
        for (segment, set) in unsure {
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
                    requests[segment, default: []].insert(.all(of: messages[row]))
                }
            }
        }
    }

    /// Reads the events of ranges of units, and notes which of the units are special.
    ///
    /// Of a heavy unit nothing is read but that it is one.
    func read(
        _ requests: Requests, into older: inout OlderUnits
    ) throws(LoadError) {
        guard !requests.isEmpty else { return }
        let heavy = try heavyUnits(of: requests)
        for (segment, ranges) in requests.sorted(by: { $0.key < $1.key }) {
            let answer = try connection.statement(
                """
                SELECT \(UnitEvent.selection)
                FROM unnest($1::uuid[], $2::uuid[]) AS a (first, last)
                JOIN tapline.event_\(segment) e ON e.unit >= a.first AND e.unit <= a.last
                WHERE e.unit <> ALL ($3::uuid[])
                """,
                Self.parameters(ranges, without: heavy[segment] ?? []), format: .binary)
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
    private func heavyUnits(of requests: Requests) throws(LoadError) -> [Int: [Unit]] {
        let ranges = Set(requests.values.joined())
        let answer = try connection.statement(
            """
            SELECT DISTINCT s.unit, s.segment FROM unnest($1::uuid[], $2::uuid[]) AS a (first, last)
            JOIN tapline.special_unit s ON s.unit >= a.first AND s.unit <= a.last
            WHERE s.is_heavy
            """, Self.parameters(ranges), format: .binary)
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

    /// Asks one closed segment, by its index, for the keys of some rows that are in no unit.
    private func readKeys(
        of batch: borrowing LoadBatch, _ rows: [Int], in segment: Int,
        into older: inout OlderUnits
    ) throws(LoadError) {
        let answer = try connection.statement(
            """
            SELECT e.key, e.properties_hash, e.campaign_id
            FROM unnest($1::uuid[], $2::uuid[]) AS asked (unit, key)
            JOIN tapline.event_\(segment) e USING (unit, key)
            """,
            [
                .uuidArray(rows.flatMap { batch.events[$0].unit.bytes }),
                .uuidArray(rows.flatMap { batch.events[$0].key.bytes }),
            ], format: .binary)
        for row in 0..<answer.rows { older.addKey(answer, row) }
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
}
