import Event
import Postgres
import Spool

/// Law 4: `received = stored + duplicate + conflict + rejected + dead_lettered + spooled`.
package struct Books: Equatable, Sendable {
    package var received: Int64 = 0
    package var stored: Int64 = 0
    package var duplicate: Int64 = 0
    package var conflict: Int64 = 0
    package var rejected: Int64 = 0
    package var deadLettered: Int64 = 0
    package var spooled: Int64 = 0
    /// Of the terms, what is not in a table any more as it was removed on purpose.
    package var removed: Int64 = 0
    /// Spool records that cannot be read; their events stay in ``spooled``.
    package var quarantined: Int64 = 0

    /// Empty books.
    package init() {}

    /// The terms by their names in JSON, ``received`` first, then those that add up to it.
    package var terms: [(name: String, value: Int64)] {
        [
            ("received", received), ("stored", stored), ("duplicate", duplicate),
            ("conflict", conflict), ("rejected", rejected), ("dead_lettered", deadLettered),
            ("spooled", spooled),
        ]
    }

    /// Whether the two sides are equal and every record can be read.
    package var isBalanced: Bool { difference == 0 && quarantined == 0 }

    /// Received less the sum of what became of it.
    package var difference: Int64 {
        received - stored - duplicate - conflict - rejected - deadLettered - spooled
    }
}

extension Books {
    /// What another daemon last published of its spool.
    package struct OtherSpool: Equatable, Sendable {
        package let id: String
        package let spooled: Int64
        /// How long ago; nil if it never did.
        package let ageSeconds: Int64?
    }

    /// What ``recount(_:ownSpool:)`` found.
    package struct Recount: Equatable, Sendable {
        package var books = Books()
        package var checkpoint: SpoolMark?
        package var spools: [OtherSpool] = []
        /// Segments whose partition is detached, so that their events are not in ``books``.
        package var detached: [Int] = []
    }

    /// What the tables hold, counted again row by row in one snapshot, and what the database
    /// remembers of the rest: a duplicate leaves no row, so only its count is kept.
    ///
    /// - Parameter ownSpool: The spool that is read itself and so not taken from what its daemon
    ///   last published.
    /// - Returns: The other daemons' spools, as they last published them, and the books without the own spool's part, and the own checkpoint, nil when the
    ///   database has none.
    package static func recount(
        _ connection: borrowing PostgresConnection, ownSpool: SpoolID?
    ) throws(LoadError) -> Recount {
        let own = ownSpool.map { PostgresValue.uuid($0.bytes) } ?? .null
        let row = try connection.statement(
            """
            SELECT s.received + s.published_received, s.duplicate,
                s.rejected + s.published_rejected, s.published_spooled, s.published_quarantined,
                (SELECT count(*) FROM tapline.event) + removed.stored,
                (SELECT coalesce(sum(times), 0)::bigint FROM tapline.conflict)
                    + removed.conflict,
                (SELECT count(*) FROM tapline.dead_letter) + removed.dead_lettered,
                own.segment, own."offset", own.chain, removed.events
            FROM (
                SELECT coalesce(sum(received), 0)::bigint AS received,
                    coalesce(sum(duplicate), 0)::bigint AS duplicate,
                    coalesce(sum(rejected), 0)::bigint AS rejected,
                    coalesce(sum(published_received) FILTER (WHERE other), 0)::bigint
                        AS published_received,
                    coalesce(sum(published_rejected) FILTER (WHERE other), 0)::bigint
                        AS published_rejected,
                    coalesce(sum(published_spooled) FILTER (WHERE other), 0)::bigint
                        AS published_spooled,
                    coalesce(sum(published_quarantined) FILTER (WHERE other), 0)::bigint
                        AS published_quarantined
                FROM (SELECT *, id IS DISTINCT FROM $1::uuid AS other FROM tapline.spool) each
            ) s CROSS JOIN (
                SELECT coalesce(sum(events), 0)::bigint AS events,
                    coalesce(sum(events) FILTER (WHERE term = 'stored'), 0)::bigint AS stored,
                    coalesce(sum(events) FILTER (WHERE term = 'conflict'), 0)::bigint AS conflict,
                    coalesce(sum(events) FILTER (WHERE term = 'dead_lettered'), 0)::bigint
                        AS dead_lettered
                FROM tapline.removed
            ) removed LEFT JOIN tapline.spool own ON own.id = $1::uuid
            """, [own])
        var recount = Recount()
        recount.books.received = row.int64(0, 0) ?? 0
        recount.books.duplicate = row.int64(0, 1) ?? 0
        recount.books.rejected = row.int64(0, 2) ?? 0
        recount.books.spooled = row.int64(0, 3) ?? 0
        recount.books.quarantined = row.int64(0, 4) ?? 0
        recount.books.stored = row.int64(0, 5) ?? 0
        recount.books.conflict = row.int64(0, 6) ?? 0
        recount.books.deadLettered = row.int64(0, 7) ?? 0
        recount.checkpoint = SpoolMark(row, 8)
        recount.books.removed = row.int64(0, 11) ?? 0
        recount.spools = try recountSpools(connection, ownSpool: ownSpool)
        recount.detached = try Segments.detached(connection)
        return recount
    }

    /// What the daemons of other spools last said that they have spooled.
    package static func recountSpools(
        _ connection: borrowing PostgresConnection, ownSpool: SpoolID?
    ) throws(LoadError) -> [OtherSpool] {
        let own = ownSpool.map { PostgresValue.uuid($0.bytes) } ?? .null
        let others = try connection.statement(
            """
            SELECT id, published_spooled,
                extract(epoch FROM clock_timestamp() - published_at)::bigint
            FROM tapline.spool WHERE id IS DISTINCT FROM $1::uuid AND published_spooled > 0
            ORDER BY id
            """, [own])
        return (0..<others.rows).map { row in
            OtherSpool(
                id: others.string(row, 0) ?? "", spooled: others.int64(row, 1) ?? 0,
                ageSeconds: others.int64(row, 2))
        }
    }

    /// The checkpoint of a spool; nil when nothing of it is loaded.
    package static func checkpoint(
        _ connection: borrowing PostgresConnection, of id: SpoolID
    ) throws(LoadError) -> SpoolMark? {
        let row = try connection.statement(
            "SELECT segment, \"offset\", chain FROM tapline.spool WHERE id = $1",
            [.uuid(id.bytes)])
        return row.rows == 1 ? SpoolMark(row, 0) : nil
    }

    /// How many rows are counted as stored, and are neither there nor were removed on purpose.
    package static func lostRows(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> Int64 {
        let row = try connection.statement(
            """
            SELECT (SELECT coalesce(sum(stored), 0)::bigint FROM tapline.spool)
                - (SELECT count(*) FROM tapline.event)
                - (SELECT events FROM tapline.removed WHERE term = 'stored')
            """)
        return max(0, row.int64(0, 0) ?? 0)
    }

    /// The oldest time of receipt that other daemons have said to be spooled, in microseconds since
    /// 1970 UTC, and the checkpoint of one's own spool.
    package static func oldestSpooled(
        _ connection: borrowing PostgresConnection, except own: SpoolID?
    ) throws(LoadError) -> (published: Int64?, checkpoint: SpoolMark?) {
        let row = try connection.statement(
            """
            SELECT min(published_oldest) FILTER (WHERE id IS DISTINCT FROM $1::uuid),
                min(segment) FILTER (WHERE id = $1), min("offset") FILTER (WHERE id = $1),
                min(chain) FILTER (WHERE id = $1)
            FROM tapline.spool
            """, [own.map { .uuid($0.bytes) } ?? .null], format: .binary)
        return (row.timestamp(0, 0), SpoolMark(row, 1))
    }

    /// How many other daemons have last published their spool in a span of time: what they hold since
    /// then is not known.
    package static func spools(
        _ connection: borrowing PostgresConnection, except own: SpoolID?,
        lastPublishedIn span: Range<Int64>
    ) throws(LoadError) -> Int {
        let row = try connection.statement(
            """
            SELECT count(*) FROM tapline.spool WHERE id IS DISTINCT FROM $1::uuid
                AND published_at >= $2 AND published_at < $3
            """,
            [
                own.map { .uuid($0.bytes) } ?? .null, .timestamp(span.lowerBound),
                .timestamp(span.upperBound),
            ])
        return Int(row.int64(0, 0) ?? 0)
    }
}
