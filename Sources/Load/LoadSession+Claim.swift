import Glibc
import Platform
import Postgres
import Spool

extension LoadSession {
    /// Connects; ``claim()`` comes next.
    init(
        database: @escaping () throws(PostgresError) -> String, spoolID: SpoolID, picture: Picture,
        settings: LoadSettings
    ) throws(LoadError) {
        connection = try Self.connect(database, settings, "tapline load")
        connectSpare = { () throws(LoadError) in
            try Self.connect(database, settings, "tapline news")
        }
        self.spoolID = spoolID
        self.picture = picture
        segmentRowsMax = settings.segmentRowsMax
        statementMilliseconds = settings.statementTimeoutMilliseconds
        heavyUnitEvents = settings.heavyUnitEvents
        alwaysWritesNews = settings.alwaysWritesNews
        epoch = SpoolID.random()
    }

    /// Connects as a session does that reads closed segments by their indexes.
    static func connect(
        _ database: () throws(PostgresError) -> String, _ settings: LoadSettings,
        _ applicationName: String
    ) throws(LoadError) -> PostgresConnection {
        // Probes are by index only: a plan made for 20 keys must serve for 20 000 as well, and the
        // planner takes a range of units for a large part of the table.
        try PostgresConnection.open(
            database: database, applicationName: applicationName,
            settings: """
                SET synchronous_commit = on; SET jit = off;
                SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
                SET enable_bitmapscan = off; SET enable_material = off; SET enable_memoize = off;
                SET plan_cache_mode = force_generic_plan;
                SET lock_timeout = \(settings.lockTimeoutMilliseconds);
                SET idle_in_transaction_session_timeout = \(settings.statementTimeoutMilliseconds)
                """, statementMilliseconds: settings.statementTimeoutMilliseconds)
    }

    /// Claims the spool's checkpoint for this session.
    ///
    /// Two guards keep a second daemon with the same spool id out: a lock that lives as long as the
    /// session, and the epoch, which every commit checks.
    ///
    /// - Returns: What of the spool is committed; nil when nothing is.
    /// - Throws: ``LoadError/spoolIsLoadedElsewhere(_:)`` while another session holds the lock.
    mutating func claim() throws(LoadError) -> SpoolMark? {
        let lock = try connection.statement(
            "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", [.text("\(spoolID)")])
        guard lock.bool(0, 0) == true else { throw .spoolIsLoadedElsewhere(spoolID) }
        try Segments.mend(connection)
        let row = try connection.statement(
            """
            INSERT INTO tapline.spool AS s (id, epoch, segment, "offset", chain, host)
            VALUES ($1, $2, 0, 0, 0, $3)
            ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, host = excluded.host
            RETURNING segment, "offset", chain, received, stored, duplicate, conflict, rejected,
                dead_lettered
            """,
            [.uuid(spoolID.bytes), .uuid(epoch.bytes), .text(Self.hostName)])
        var books = Books()
        books.received = row.int64(0, 3) ?? 0
        books.stored = row.int64(0, 4) ?? 0
        books.duplicate = row.int64(0, 5) ?? 0
        books.conflict = row.int64(0, 6) ?? 0
        books.rejected = row.int64(0, 7) ?? 0
        books.deadLettered = row.int64(0, 8) ?? 0
        claimed = books
        return SpoolMark(row, 0)
    }

    /// Gives up the id of a spool of which the database knows less than was loaded: it goes on under another
    /// one, and what was published of it under this one would wait for ever. What is counted under it stays.
    func disclaim() throws(LoadError) {
        let claim: [PostgresValue] = [.uuid(spoolID.bytes), .uuid(epoch.bytes)]
        _ = try connection.statement(
            """
            DELETE FROM tapline.spool WHERE id = $1 AND epoch = $2 AND segment = 0 AND received = 0
            """, claim)
        _ = try connection.statement(
            """
            UPDATE tapline.spool SET published_received = 0, published_rejected = 0,
                published_spooled = 0, published_quarantined = 0, published_oldest = NULL
            WHERE id = $1 AND epoch = $2
            """, claim)
    }

    /// Finds out that a session that has nothing to do is gone, before there is something.
    mutating func keepAlive() throws(LoadError) {
        guard connection.isAlive else {
            throw .postgres(.connectionLost(reason: "closed while idle", sqlstate: nil))
        }
    }

    private static var hostName: String {
        var name = utsname()
        guard unsafe uname(&name) == 0 else { return "" }
        return unsafe withUnsafeBytes(of: &name.nodename) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}
