import Client
import Glibc
import Load
import Platform
import Report
import Spool

/// Why a run or a check could not be made. What a check finds is not one.
package enum BenchError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The URL is wrong, or libcurl does not work.
    case client(ClientError)
    /// The log could not be written or read.
    case system(SystemError)
    /// A line of the log cannot be right.
    case log(path: String, line: Int, reason: String)
    /// The database has no key with the hash of the log.
    case unknownKey(path: String)
    case load(LoadError)
    case report(ReportError)
    case spool(SpoolError)

    /// One line in lower case without a period.
    package var description: String {
        switch self {
        case .client(let error): error.message
        case .system(let error): "\(error)"
        case .log(let path, let line, let reason): "line \(line) of log \"\(path)\" \(reason)"
        case .unknownKey(let path):
            "the key of log \"\(path)\" is not in this database, so it was not the one of the run"
        case .load(let error): "\(error)"
        case .report(let error): "\(error)"
        case .spool(let error): "\(error)"
        }
    }

    /// What to do, where that is known.
    package var hint: String? {
        switch self {
        case .system(let error) where error.code == EEXIST:
            "A log is never written over: give --log another name, or remove it."
        case .unknownKey: "Give the --data-dir or --database of the daemon that took the run."
        case .load(let error): error.hint
        default: nil
        }
    }
}
