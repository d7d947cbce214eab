import Event
import Postgres

/// What is read of one closed segment by its index.
enum SegmentQuestion: String {
    /// The keys in ranges of units, without those of some units.
    case keys
    /// The same, but the events.
    case events
    /// The keys of single events.
    case singles

    private func sql(_ segment: Int) -> String {
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

    /// Asks segments, all of them at once.
    ///
    /// The statement of each segment is planned once a session: with many segments the plans would
    /// take longer than the answers.
    ///
    /// - Parameter prepared: The names of the statements that are planned on the connection.
    func ask(
        _ calls: [(segment: Int, parameters: [PostgresValue])],
        over connection: borrowing PostgresConnection, _ prepared: inout Set<String>,
        _ receive: (Int, borrowing PostgresResult) -> Void
    ) throws(LoadError) {
        do throws(PostgresError) {
            for (segment, parameters) in calls {
                let name = "\(rawValue)_\(segment)"
                if prepared.contains(name) { continue }
                try connection.prepare(name, sql(segment), like: parameters)
                prepared.insert(name)
            }
            try connection.queryPrepared(calls: calls.count) { call in
                ("\(rawValue)_\(calls[call].segment)", calls[call].parameters)
            } receive: { call, answer in
                receive(calls[call].segment, answer)
            }
        } catch {
            throw .postgres(error)
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

    /// The heavy units of some ranges, by segment.
    static func heavyUnits(
        of requests: borrowing Requests, over connection: borrowing PostgresConnection
    ) throws(LoadError) -> [Int: [Unit]] {
        // As a rule there is none at all, and thousands of ranges need not be looked up.
        let any = try connection.statement(
            "SELECT FROM tapline.special_unit WHERE is_heavy LIMIT 1")
        guard any.rows > 0 else { return [:] }
        let ranges = arrays(requests.list[...])
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
}
