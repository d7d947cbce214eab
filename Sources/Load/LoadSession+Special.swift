import Event
import Postgres

/// Units that a report has to compute from their events, since what they count as hangs on more than
/// their own (docs/storage.md, "Special units").
extension LoadSession {
    /// Finds the units that a batch makes special besides its own, takes them out of the counts, and
    /// writes down all of them.
    mutating func writeSpecials(
        _ fold: inout Fold, _ open: inout OpenSegment, _ turn: Turn
    ) throws(LoadError) {
        var reach = Reach()
        try followLinks(fold, open, &reach)
        reach.orphans.formUnion(fold.orphanMessages)
        try expel(reach, &fold, &open, turn)
        var rows = SpecialRows()
        for unit in fold.specials where open.list(unit) {
            let segments = picture.closed.candidates(of: unit) + [open.number]
            rows.append(unit, in: segments, open.campaigns(of: unit))
        }
        try insert(rows, turn)
        try rename(fold.renamed, open)
    }

    /// Writes down of what campaigns special units of the open segment are now.
    private func rename(_ units: [Unit], _ open: borrowing OpenSegment) throws(LoadError) {
        var rows = SpecialRows()
        for unit in units {
            rows.append(unit, in: CollectionOfOne(open.number), open.campaigns(of: unit))
        }
        guard !rows.units.isEmpty else { return }
        _ = try connection.statement(
            """
            UPDATE tapline.special_unit s SET campaigns = n.campaigns
            FROM \(SpecialRows.table) n
            WHERE s.unit = n.unit AND s.segment = n.segment
                AND s.campaigns IS DISTINCT FROM n.campaigns
            """, rows.parameters)
    }

    /// Whom a batch makes special.
    struct Reach {
        var units: Set<Unit> = []
        /// Messages all of whose units are.
        var messages: Set<UInt64> = []
        /// Messages whose units without a campaign are.
        var orphans: Set<UInt64> = []
    }

    // MARK: Inbox links

    /// An inbox event counts with a unit that names its own: where both exist, or two name one, who
    /// is counted is computed from the events.
    private mutating func followLinks(
        _ fold: borrowing Fold, _ open: borrowing OpenSegment, _ reach: inout Reach
    ) throws(LoadError) {
        var askedNamers: Set<Unit> = []
        var askedMessages: Set<UInt64> = []
        for message in fold.looseMessages {
            reach.messages.insert(message)
            askedMessages.insert(message)
            for (unit, namers) in open.namers where unit.message == message {
                reach.units.formUnion(namers)
            }
        }
        for link in fold.links { askedNamers.insert(link.inbox) }
        for unit in fold.inboxUnits { askedNamers.insert(unit) }
        let older = try olderNamers(of: askedNamers, messages: askedMessages)
        for message in askedMessages {
            for (unit, namers) in older where unit.message == message {
                reach.units.formUnion(namers)
            }
        }
        for link in fold.links {
            let others = Set(open.namers[link.inbox] ?? []).union(older[link.inbox] ?? [])
                .subtracting([link.namer])
            if !others.isEmpty {
                reach.units.formUnion(others)
                reach.units.formUnion([link.inbox, link.namer])
            }
        }
        for unit in fold.inboxUnits {
            let namers = Set(open.namers[unit] ?? []).union(older[unit] ?? []).subtracting([unit])
            if !namers.isEmpty { reach.units.formUnion(namers.union([unit])) }
        }
        try followNamed(fold.links, open, &reach)
    }

    /// Whether what is newly named has inbox events of its own, or is of a message that is loose.
    private mutating func followNamed(
        _ links: [Fold.Link], _ open: borrowing OpenSegment, _ reach: inout Reach
    ) throws(LoadError) {
        var requests = Requests()
        for link in links {
            let named = link.inbox
            if open.isLoose(named.message) || isLoose(named.message) {
                reach.units.insert(link.namer)
            }
            // All the same, for a filter may have made up that it is loose.
            if let slot = open.units.slot(of: named) {
                let state = open.units[slot]
                if named != link.namer,
                    state.states & UnitEvent.inboxStates != 0 || state.isHeavy
                {
                    reach.units.formUnion([named, link.namer])
                }
            } else if named != link.namer {
                for segment in picture.closed.candidates(of: named) {
                    requests.insert(.only(named), in: segment)
                }
            }
        }
        guard !requests.isEmpty else { return }
        var older = OlderUnits()
        try read(&requests, into: &older)
        for link in links {
            guard let known = older.units[link.inbox] else { continue }
            if known.isHeavy
                || known.events.contains(where: { $0.type.isInboxStatus || $0.unit.device == 0 })
            {
                reach.units.formUnion([link.inbox, link.namer])
            }
        }
    }

    private func isLoose(_ message: UInt64) -> Bool {
        let holding = picture.closed.segments(holding: .message(message))
        return picture.closed.segments(holding: .loose(message)).contains(where: holding.contains)
    }

    /// Who names some units, or any unit of some messages, in closed segments.
    private func olderNamers(
        of units: Set<Unit>, messages: Set<UInt64>
    ) throws(LoadError) -> [Unit: Set<Unit>] {
        guard picture.closed.count > 0 else { return [:] }
        var requests = Requests()
        for unit in units {
            for segment in picture.closed.segments(holding: .named(unit)) {
                requests.insert(.only(unit), in: segment)
            }
        }
        // Few messages ever: no filter knows of them.
        if !messages.isEmpty {
            for segment in picture.closed.all {
                for message in messages { requests.insert(.all(of: message), in: segment) }
            }
        }
        guard !requests.isEmpty else { return [:] }
        // Without the index a question would be a scan.
        let withInbox = try Segments.withInbox(connection)
        var found: [Unit: Set<Unit>] = [:]
        requests.settle()
        for (segment, parameters) in SegmentQuestion.calls(requests)
        where withInbox.contains(Int64(segment)) {
            let answer = try connection.statement(
                """
                SELECT e.inbox_unit, e.unit
                FROM unnest($1::uuid[], $2::uuid[]) AS a (first, last)
                JOIN tapline.event_\(segment) e
                    ON e.inbox_unit >= a.first AND e.inbox_unit <= a.last
                WHERE e.message_uid IS NOT NULL
                """, parameters, format: .binary)
            for row in 0..<answer.rows {
                found[Unit(uuid: answer.bytes(row, 0)), default: []].insert(
                    Unit(uuid: answer.bytes(row, 1)))
            }
        }
        return found
    }

    // MARK: Taking out of the counts

    /// Makes units special, in the open segment and in the closed ones.
    private mutating func expel(
        _ reach: Reach, _ fold: inout Fold, _ open: inout OpenSegment, _ turn: Turn
    ) throws(LoadError) {
        let messages = reach.messages.union(reach.orphans).union(reach.units.lazy.map(\.message))
        try self.fold(open.unfolded.take(messages), into: &open)
        if !reach.messages.isEmpty {
            for unit in open.units(of: reach.messages) { open.setSpecial(unit, &fold) }
        }
        if !reach.orphans.isEmpty {
            for unit in open.units(of: reach.orphans, withoutCampaign: true) {
                open.setSpecial(unit, &fold)
            }
        }
        var requests = Requests()
        for unit in reach.units where !open.setSpecial(unit, &fold) {
            for segment in picture.closed.candidates(of: unit) {
                requests.insert(.only(unit), in: segment)
            }
        }
        for message in reach.messages.union(reach.orphans) {
            for segment in picture.closed.segments(holding: .message(message)) {
                requests.insert(.all(of: message), in: segment)
            }
        }
        guard !requests.isEmpty else { return }
        var older = OlderUnits()
        try read(&requests, into: &older)
        try expel(older, reach, &fold, &open, turn)
    }

    /// Makes units of closed segments special that the open one does not hold.
    func expel(
        _ older: borrowing OlderUnits, _ reach: Reach?, _ fold: inout Fold,
        _ open: inout OpenSegment, _ turn: Turn
    ) throws(LoadError) {
        var rows = SpecialRows()
        for (unit, known) in older.units where open.units.slot(of: unit) == nil && !known.isSpecial
        {
            let state = open.state(of: known)
            if let reach {
                guard
                    reach.units.contains(unit) || reach.messages.contains(unit.message)
                        || CampaignLabel.isNone(state.campaign)
                else { continue }
            }
            fold.count(state, -1)
            rows.append(unit, in: known.segments, open.campaigns(of: state))
        }
        try insert(rows, turn)
    }

    private func insert(_ rows: SpecialRows, _ turn: Turn) throws(LoadError) {
        guard !rows.segments.isEmpty else { return }
        _ = try connection.statement(
            """
            INSERT INTO tapline.special_unit (unit, segment, campaigns, batch)
            SELECT unit, segment, campaigns, $5 FROM \(SpecialRows.table) n ORDER BY unit, segment
            ON CONFLICT DO NOTHING
            """, rows.parameters + [.int64(turn.batch)])
    }

    // MARK: Test devices

    /// Makes the units of devices special that have been marked as test devices since.
    mutating func applyMarks() throws(LoadError) {
        let marks = try connection.statement(
            """
            SELECT app, device_id, tapline.hash64(app, device_id) FROM tapline.test_device
            WHERE NOT applied
            """, [], format: .binary)
        guard marks.rows > 0 else { return }
        do throws(LoadError) {
            try apply(marks)
            try connection.limitStatements(milliseconds: statementMilliseconds)
        } catch {
            rollback()
            throw error
        }
    }

    private mutating func apply(_ marks: borrowing PostgresResult) throws(LoadError) {
        let turn = try takeTurn()
        try catchUp(with: turn)
        guard let box = picture.takeOpen() else { throw .schema("no segment is open") }
        var fold = Fold(isWriting: true)
        try connection.limitStatements(milliseconds: 0, isLocal: true)
        _ = try connection.statement("SET LOCAL enable_seqscan = on")
        for mark in 0..<marks.rows {
            let (app, device) = (marks.array(mark, 0) ?? [], marks.array(mark, 1) ?? [])
            let answer = try connection.statement(
                """
                SELECT \(UnitEvent.selection), e.segment FROM tapline.event e
                WHERE e.app = $1 AND tapline.unit_device(e.unit) = $2
                    AND e.message_uid IS NOT NULL
                """, [.utf8(app), .bytes(marks.array(mark, 2) ?? [])], format: .binary)
            var older = OlderUnits()
            for row in 0..<answer.rows {
                older.add(
                    answer, row, segment: Int(answer.int64(row, UnitEvent.columns) ?? 0))
            }
            let messages = older.units.keys.lazy.map(\.message)
            try self.fold(box.segment.unfolded.take(messages), into: &box.segment)
            for unit in older.units.keys { box.segment.setSpecial(unit, &fold) }
            try markSpecial(&older)
            try expel(older, nil, &fold, &box.segment, turn)
            _ = try connection.statement(
                "UPDATE tapline.test_device SET applied = true WHERE app = $1 AND device_id = $2",
                [.utf8(app), .utf8(device)])
            picture.testDevices.insert(deviceHalf(marks.bytes(mark, 2)))
        }
        try write(&fold, &box.segment, turn)
        // The other daemons read everything anew, the test devices too.
        _ = try connection.statement(
            """
            WITH moved AS (
                UPDATE tapline.turn SET batch = \(turn.batch), generation = generation + 1,
                    stored_at = to_timestamp(\(turn.storedAt) / 1000000.0))
            INSERT INTO tapline.batch (batch, stored_at, spool, rows, segment, first_block)
            SELECT \(turn.batch), to_timestamp(\(turn.storedAt) / 1000000.0), '\(spoolID)', 0,
                \(turn.segment), 0;
            COMMIT
            """)
        // This one too, as its generation is now an old one: it is seldom, and simpler than to be clever.
        picture.batch = turn.batch
        picture.storedAt = turn.storedAt
    }
}

/// Rows of `tapline.special_unit`.
private struct SpecialRows {
    private(set) var units: [UInt8] = []
    private(set) var segments: [Int32] = []
    /// The only campaign, and whether it is known that there is no other.
    private(set) var campaigns: [String?] = []
    private(set) var areKnown: [Int32] = []

    /// SQL for the rows: a table with unit, segment and campaigns, of ``parameters``.
    static let table = """
        (SELECT unit, segment,
            CASE WHEN is_known <> 0 THEN array_remove(ARRAY[campaign], NULL) END AS campaigns
        FROM unnest($1::uuid[], $2::int[], $3::text[], $4::int[])
            AS given (unit, segment, campaign, is_known))
        """

    var parameters: [PostgresValue] {
        [.uuidArray(units), .int32Array(segments), .textArray(campaigns), .int32Array(areKnown)]
    }

    /// - Parameter campaigns: What ``OpenSegment/campaigns(of:)`` says.
    mutating func append(_ unit: Unit, in numbers: some Sequence<Int>, _ campaigns: [String]?) {
        for number in numbers {
            units.append(unit)
            segments.append(Int32(number))
            self.campaigns.append(campaigns?.first)
            areKnown.append(campaigns == nil ? 0 : 1)
        }
    }
}
