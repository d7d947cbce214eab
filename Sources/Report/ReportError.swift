import Postgres

/// Why there is no report.
package enum ReportError: Error, Equatable, Sendable {
    /// An option has a value that means nothing: exit 2, or HTTP 400.
    case invalidOption(name: String, value: String, reason: String)
    /// The database did not answer; the transaction has been rolled back.
    case database(PostgresError)
    /// The database answered something a report cannot be made of, such as an older schema.
    case unexpectedAnswer(String)
}

extension ReportError: CustomStringConvertible {
    /// One line, for people.
    package var description: String {
        switch self {
        case .invalidOption(let name, let value, let reason):
            "option \"\(name)\" has value \"\(value)\": \(reason)"
        case .database(let error): "could not read the report: \(error)"
        case .unexpectedAnswer(let what): "could not read the report: \(what)"
        }
    }
}
