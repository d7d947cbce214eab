import Postgres
import Spool

extension PostgresConnection {
    /// Connects and runs `settings`, with the error of this module.
    ///
    /// - Parameter statementMilliseconds: The bound of each statement; 0 leaves it to the database.
    package static func open(
        database: () throws(PostgresError) -> String, applicationName: String, settings: String,
        statementMilliseconds: Int = 0
    ) throws(LoadError) -> PostgresConnection {
        var connection: PostgresConnection
        do throws(PostgresError) {
            connection = try PostgresConnection(
                conninfo: try database(), applicationName: applicationName)
        } catch {
            throw .postgres(error)
        }
        if statementMilliseconds > 0 {
            try connection.limitStatements(milliseconds: statementMilliseconds)
        }
        if !settings.isEmpty { _ = try connection.statement(settings) }
        return connection
    }

    /// See ``Postgres/PostgresConnection/setStatementTimeout(milliseconds:isLocal:)``.
    mutating func limitStatements(
        milliseconds: Int, isLocal: Bool = false
    ) throws(LoadError) {
        do throws(PostgresError) {
            try setStatementTimeout(milliseconds: milliseconds, isLocal: isLocal)
        } catch {
            throw .postgres(error)
        }
    }

    /// Runs statements while the caller does something else; see
    /// ``Postgres/PostgresConnection/execute(_:while:)``.
    func statement(_ sql: String, while work: () -> Void) throws(LoadError) {
        do throws(PostgresError) {
            try execute(sql, while: work)
        } catch {
            throw .postgres(error)
        }
    }

    /// Runs a statement, or several without parameters, with the error of this module.
    package func statement(
        _ sql: String, _ parameters: [PostgresValue] = [],
        format: PostgresFormat = .text
    ) throws(LoadError) -> PostgresResult {
        do throws(PostgresError) {
            return parameters.isEmpty && format == .text
                ? try execute(sql) : try query(sql, parameters, format: format)
        } catch {
            throw .postgres(error)
        }
    }
}

extension SpoolMark {
    /// The checkpoint in three columns of row 0: segment, offset, chain; nil when there is none, or
    /// nothing is loaded yet.
    init?(_ result: borrowing PostgresResult, _ column: Int) {
        guard let segment = result.int64(0, column), segment > 0,
            let offset = result.int64(0, column + 1), let chain = result.int64(0, column + 2)
        else { return nil }
        self.init(
            segment: UInt64(segment), offset: UInt64(offset),
            chain: UInt32(truncatingIfNeeded: chain))
    }
}
