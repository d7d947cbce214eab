/// An ERROR that the server answered, with its fields as sent.
package struct ServerReport: Error, Equatable, Sendable {
    /// The five characters of the SQLSTATE, such as `23505`.
    package let sqlstate: String
    /// The primary message, in the language of the server.
    package let message: String
    /// Secondary message.
    package let detail: String?
    /// The server's own hint.
    package let hint: String?
    /// What the server was doing (`where`), such as `COPY event, line 17, column properties`.
    package let context: String?
    /// The table concerned, where there is one.
    package let table: String?
    /// The column concerned, where there is one.
    package let column: String?
    /// The constraint that was violated, where there is one.
    package let constraint: String?
    /// The function of the server's source that raised it; never translated.
    package let function: String?

    /// Makes a report; only the SQLSTATE and the message are always there.
    package init(
        sqlstate: String, message: String, detail: String? = nil, hint: String? = nil,
        context: String? = nil, table: String? = nil, column: String? = nil,
        constraint: String? = nil, function: String? = nil
    ) {
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.context = context
        self.table = table
        self.column = column
        self.constraint = constraint
        self.function = function
    }

    /// The line of a COPY that was refused, from 1, taken from `context`.
    package var copyLine: Int? {
        guard let context, let line = context.firstRange(of: ", line ") else { return nil }
        return Int(context[line.upperBound...].prefix { $0.isASCII && $0.isNumber })
    }
}

/// What went wrong between this process and PostgreSQL.
package enum PostgresError: Error, Equatable, Sendable {
    /// The connection string names no database that libpq could understand.
    case unreadableConninfo(reason: String)
    /// No session came about. `sqlstate` is known when a server answered.
    case couldNotConnect(server: String, reason: String, sqlstate: String?)
    /// The session is gone; what became of the last statement is not known.
    case connectionLost(reason: String, sqlstate: String?)
    /// The server refused a statement; the session lives on.
    case refused(ServerReport)
    /// The caller and the statement disagree, such as COPY data for a SELECT.
    case misuse(String)
    /// The embedded database could not be found, started or stopped.
    case cluster(ClusterFault)
}

/// Why the embedded database cannot be used.
package enum ClusterFault: Error, Equatable, Sendable {
    /// No PostgreSQL server programs are installed (or none of the cluster's version).
    case noPrograms(version: Int?, found: [Int])
    /// Running as root without a user that the server could run as.
    case noServerUser
    /// The data directory has no database, and none was to be made.
    case noCluster(directory: String)
    /// A file or directory of the cluster could not be used.
    case files(String)
    /// `initdb` failed.
    case couldNotInitialize(directory: String, reason: String)
    /// The server ended while it was starting.
    case couldNotStart(directory: String, reason: String)
    /// The server is not ready yet; it goes on starting.
    case notReadyInTime(directory: String, seconds: Int)
    /// The server did not end.
    case couldNotStop(directory: String)
    /// `stop` was called meanwhile.
    case cancelled
}

/// What a loader does about an error (docs/reliability.md, "Classes by SQLSTATE").
package enum PostgresErrorClass: Equatable, Sendable {
    /// Roll back and try the same again.
    case retryBatch
    /// Not listed: try the same again, and tell a person.
    case retryWithAlert
    /// A partition is missing: create it and try again.
    case missingPartition
    /// A row is at fault: find it.
    case isolateRow
    /// A person has to mend something: keep spooling, try again, alert.
    case configuration
    /// The session is gone: connect anew, try again.
    case connection
}

extension PostgresErrorClass {
    /// The class of a SQLSTATE.
    ///
    /// - Parameters:
    ///   - sqlstate: Five characters; anything else is unlisted.
    ///   - isMissingPartition: Whether a 23514 is that of a row no partition takes.
    package init(sqlstate: String, isMissingPartition: Bool = false) {
        switch sqlstate {
        case "57P01", "57P02", "57P03": self = .connection
        case "57014", "40001", "40P01", "55P03": self = .retryBatch
        case "23514" where isMissingPartition: self = .missingPartition
        case "21000", "54000", "54001": self = .isolateRow
        case "3D000", "42P01", "42703", "42501", "25006": self = .configuration
        default:
            switch sqlstate.prefix(2) {
            case "08": self = .connection
            case "58", "XX", "53": self = .retryBatch
            case "22", "23": self = .isolateRow
            case "28": self = .configuration
            default: self = .retryWithAlert
            }
        }
    }
}

extension PostgresError {
    /// The SQLSTATE, where a server gave one.
    package var sqlstate: String? {
        switch self {
        case .couldNotConnect(_, _, let sqlstate), .connectionLost(_, let sqlstate): sqlstate
        case .refused(let report): report.sqlstate
        case .unreadableConninfo, .misuse, .cluster: nil
        }
    }

    /// What to do about it.
    package var errorClass: PostgresErrorClass {
        switch self {
        case .unreadableConninfo: .configuration
        case .couldNotConnect(_, _, let sqlstate?): PostgresErrorClass(sqlstate: sqlstate)
        case .couldNotConnect, .connectionLost: .connection
        case .refused(let report):
            // The message may be translated, so the place in the server's source tells a row
            // without a partition from a CHECK; a CHECK always has a name.
            PostgresErrorClass(
                sqlstate: report.sqlstate,
                isMissingPartition: report.function.map { $0 == "ExecFindPartition" }
                    ?? (report.constraint == nil))
        case .misuse: .retryWithAlert
        case .cluster(let fault):
            switch fault {
            case .notReadyInTime, .couldNotStop, .cancelled: .connection
            default: .configuration
            }
        }
    }

    /// Whether the same work may succeed later as it is.
    package var isRetryable: Bool {
        if case .misuse = self { return false }
        return errorClass != .isolateRow
    }
}

extension PostgresError: CustomStringConvertible {
    /// One line in lower case without a period; the SQLSTATE in parentheses.
    package var description: String {
        switch self {
        case .unreadableConninfo(let reason): "cannot read the connection string: \(reason)"
        case .couldNotConnect(let server, let reason, let sqlstate):
            "could not connect to database \"\(server)\": \(reason)"
                + (sqlstate.map { " (\($0))" } ?? "")
        case .connectionLost(let reason, let sqlstate):
            "lost the connection to the database: \(reason)" + (sqlstate.map { " (\($0))" } ?? "")
        case .refused(let report):
            "database refused the statement: \(report.message) (\(report.sqlstate))"
                + (report.context.map { ", in \(Self.firstLine(of: $0))" } ?? "")
        case .misuse(let what): what
        case .cluster(let fault): fault.description
        }
    }

    /// A full sentence on what to do, for faults that a person has to mend.
    package var hint: String? {
        switch self {
        case .cluster(let fault): return fault.hint
        case .unreadableConninfo:
            return "Give a URI like postgres://user@host/database, or host=… dbname=… ."
        case .misuse: return nil
        default: break
        }
        switch sqlstate {
        case "3D000"?: return "Create the database, or name another with --database."
        case "42P01"?, "42703"?:
            return "Run \"tapline migrate\" to create or upgrade the schema."
        case "42501"?:
            return "Grant the database user its rights on schema \"tapline\" again."
        case "25006"?:
            return "Connect to the primary: this server is read-only (a standby, or so set)."
        case "53100"?: return "Free space on the disk of the database."
        case "55P03"?:
            return "Look in pg_stat_activity for a session whose transaction began long ago."
        case "53300"?: return "Raise max_connections of the database or close other sessions."
        case let state? where state.hasPrefix("28"):
            return "Check the user and the password in --database, DATABASE_URL or PG…."
        case nil: return "Check that PostgreSQL runs and can be reached from here."
        case _?: break
        }
        if case .refused(let report) = self { return report.hint }
        return nil
    }

    private static func firstLine(of text: String) -> Substring {
        text.prefix { !$0.isNewline }
    }
}

extension ClusterFault: CustomStringConvertible {
    /// One line in lower case without a period.
    package var description: String {
        switch self {
        case .noPrograms(let version?, let found):
            "cannot start the embedded database: it is of PostgreSQL \(version), installed "
                + (found.isEmpty
                    ? "is none" : "is \(found.map(String.init).joined(separator: ", "))")
        case .noPrograms(nil, _):
            "cannot start the embedded database: the PostgreSQL server is not installed"
        case .noServerUser:
            "cannot start the embedded database as root: there is no user \"postgres\""
        case .noCluster(let directory): "data directory \"\(directory)\" has no database yet"
        case .files(let what): what
        case .couldNotInitialize(let directory, let reason):
            "could not create the embedded database in \"\(directory)\": \(reason)"
        case .couldNotStart(let directory, let reason):
            "could not start the embedded database in \"\(directory)\": \(reason)"
        case .notReadyInTime(let directory, let seconds):
            "embedded database in \"\(directory)\" was not ready within \(seconds) s"
        case .couldNotStop(let directory):
            "could not stop the embedded database in \"\(directory)\""
        case .cancelled: "start of the embedded database was cancelled"
        }
    }

    /// A full sentence on what to do.
    package var hint: String? {
        switch self {
        case .noPrograms:
            "Install the PostgreSQL server (Debian: apt-get install postgresql), set "
                + "TAPLINE_POSTGRES_BIN to its bin directory, or name a database with --database."
        case .noServerUser:
            "Run as another user than root, or create the system user \"postgres\"."
        case .noCluster: "Start \"tapline serve\" on it first, or check --data-dir."
        case .files: "Check the owner and the permissions of the data directory."
        case .couldNotInitialize, .couldNotStart:
            "See the log files in the directory \"postgres/log\" of the data directory."
        case .notReadyInTime:
            "It may be recovering from a crash: see \"postgres/log\" in the data directory."
        case .couldNotStop, .cancelled: nil
        }
    }
}
