import Postgres

/// `tapline rebuild`: makes what reports are read from anew from the events.
package enum Rebuild {
    /// Makes cells anew in one transaction, for which loads wait.
    ///
    /// - Returns: Of how many events.
    /// - Throws: ``LoadError``; nothing is changed then.
    package static func run(
        _ connection: borrowing PostgresConnection
    ) throws(LoadError) -> Int64 {
        // Cells of a detached partition would not be made.
        _ = try Segments.attachDetached(connection)
        do throws(LoadError) {
            _ = try connection.statement("BEGIN")
            _ = try connection.statement("SET LOCAL statement_timeout = 0")
            _ = try connection.statement("SELECT tapline.rebuild_cells()")
            let count = try connection.statement(
                """
                SELECT (coalesce(sum(rows) FILTER (WHERE state <> 'open'), 0)
                    + (SELECT segment_rows FROM tapline.turn))::bigint FROM tapline.segment
                """)
            _ = try connection.statement("COMMIT")
            return count.int64(0, 0) ?? 0
        } catch {
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }
}
