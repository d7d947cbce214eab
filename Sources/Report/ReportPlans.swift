import Postgres

/// The plans of statements that one session has made, for a session that makes many reports: planning
/// takes most of the time of a small one.
///
/// Belongs to one session, and is used by whoever uses that.
package final class ReportPlans {
    /// Each keeps some hundred kilobytes in the server.
    private static let countMax = 32

    private var names: [String: String] = [:]

    package init() {}

    /// Runs a statement, whose plan is kept.
    func query(
        _ sql: String, _ values: [PostgresValue], on connection: borrowing PostgresConnection
    ) throws(PostgresError) -> PostgresResult {
        if let name = names[sql] { return try connection.queryPrepared(name, values) }
        guard names.count < Self.countMax else { return try connection.query(sql, values) }
        let name = "report \(names.count + 1)"
        try connection.prepare(name, sql, like: values)
        names[sql] = name
        return try connection.queryPrepared(name, values)
    }
}
