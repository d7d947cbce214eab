import Event
import Postgres

/// What older segments hold of the events of a batch.
extension LoadSession {
    /// What older segments hold of the units and keys of a batch that the open one does not know.
    ///
    /// - Parameter early: What they were asked before the turn.
    mutating func older(
        than open: borrowing OpenSegment, _ batch: borrowing LoadBatch,
        _ early: consuming Inquiry?
    ) throws(LoadError) -> OlderUnits {
        guard closed.count > 0 else { return OlderUnits() }
        var inquiry = Inquiry()
        if let early, try isOfThisHistory(early) { inquiry = early }
        try inquiry.ask(
            closed, open, batch.events, batch.contents, over: connection, &prepared)
        if !inquiry.requests.isEmpty {
            // Of units that have something new the events are read, too.
            for event in batch.events {
                if inquiry.messages.isFound(event.unit.message),
                    inquiry.older.content(of: event.key) == nil,
                    open.units.slot(of: event.unit) == nil
                {
                    inquiry.messages.setWanted(event.unit.message)
                }
                if event.unit.device == 0, let inbox = event.inbox {
                    inquiry.messages.setWanted(inbox.message)
                }
            }
            inquiry.requests.filter { inquiry.messages.isWanted($0.first.message) }
            try read(&inquiry.requests, into: &inquiry.older)
        }
        try readKeysOutsideUnits(of: batch, open, into: &inquiry.older)
        return inquiry.older
    }

    /// What older segments hold of the units of some events that the open one does not know.
    mutating func older(
        than open: borrowing OpenSegment, _ events: ArraySlice<UnitEvent>
    ) throws(LoadError) -> OlderUnits {
        guard closed.count > 0 else { return OlderUnits() }
        var inquiry = Inquiry()
        var requests = try closed.requests(open, events, nil, &inquiry, over: connection)
        try read(&requests, into: &inquiry.older)
        return inquiry.older
    }

    private var closed: ClosedSegments { picture.closed }

    /// Whether all that was asked before the turn is stored in the database that this session loads into: the
    /// two connections may have been made to different servers, or before and after one was restored.
    private func isOfThisHistory(_ early: borrowing Inquiry) throws(LoadError) -> Bool {
        guard early.history == closed.history else { return false }
        return try connection.statement(
            """
            SELECT FROM tapline.batch
            WHERE batch = $1 AND (extract(epoch FROM stored_at) * 1000000)::bigint = $2
            """, [.int64(early.batch), .int64(early.storedAt)]
        ).rows == 1
    }

    // MARK: Reading by index

    /// Reads the events of ranges of units, and notes which of the units are special.
    ///
    /// Of a heavy unit nothing is read but that it is one.
    mutating func read(
        _ requests: inout Requests, into older: inout OlderUnits
    ) throws(LoadError) {
        guard !requests.isEmpty else { return }
        requests.settle()
        let heavy = try SegmentQuestion.heavyUnits(of: requests, over: connection)
        let calls = SegmentQuestion.calls(requests, without: heavy)
        try SegmentQuestion.events.ask(calls, over: connection, &prepared) { segment, answer in
            for row in 0..<answer.rows { older.add(answer, row, segment: segment) }
        }
        for unit in Set(heavy.values.joined()) {
            older.addHeavy(unit)
            if closed.mayHold(.sender(unit.message)) {
                older.mark(unit.message, MessageState.sender)
            }
            if closed.mayHold(.orphan(unit.message)) {
                older.mark(unit.message, MessageState.orphan)
            }
        }
        try markSpecial(&older)
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
        let rows = closed.rows(batch.events) { event in
            (event.unit.message == 0 || older.isHeavy(event.unit)
                || open.hasHeavy && open.isHeavy(event.unit))
                && open.keys.content(of: event.key) == nil
                && older.content(of: event.key) == nil
        }
        guard !rows.isEmpty else { return }
        var calls: [(segment: Int, parameters: [PostgresValue])] = []
        for (segment, rows) in rows {
            var units: [UInt8] = []
            var keys: [UInt8] = []
            for event in rows.map({ batch.events[$0] }).sorted(by: { $0.key < $1.key }) {
                units.append(event.unit)
                keys.append(Unit(message: event.key.high, device: event.key.low))
            }
            calls.append((segment, [.uuidArray(units), .uuidArray(keys)]))
        }
        try SegmentQuestion.singles.ask(calls, over: connection, &prepared) { _, answer in
            for row in 0..<answer.rows { older.addKey(answer, row) }
        }
    }
}
