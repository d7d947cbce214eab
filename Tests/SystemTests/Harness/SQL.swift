internal import CPostgres
import Foundation
import Glibc

/// A connection of the tests to the database, beside the product's own.
@safe
final class SQL {
    private let raw: OpaquePointer

    init(_ conninfo: String) throws {
        guard let raw = unsafe PQconnectdb(conninfo + " connect_timeout=5") else {
            throw Failure("out of memory")
        }
        guard unsafe PQstatus(raw) == CONNECTION_OK else {
            let reason = unsafe String(cString: PQerrorMessage(raw))
            unsafe PQfinish(raw)
            throw Failure("could not connect to \(conninfo): \(reason)")
        }
        unsafe self.raw = raw
    }

    deinit { unsafe PQfinish(raw) }

    /// The result of the last of some statements, as `PQexec` gives it, which would wait for ever.
    private func result(of sql: String, seconds: Double) throws -> OpaquePointer? {
        guard unsafe PQsendQuery(raw, sql) == 1 else {
            throw Failure("\(sql): \(unsafe String(cString: PQerrorMessage(raw)))")
        }
        let deadline = Date().addingTimeInterval(seconds)
        var last: OpaquePointer?
        while true {
            while unsafe PQisBusy(raw) == 1 {
                var poller = pollfd(
                    fd: unsafe PQsocket(raw), events: Int16(POLLIN), revents: 0)
                let left = deadline.timeIntervalSinceNow
                guard left > 0 else {
                    unsafe PQclear(last)
                    throw Failure("no answer in \(seconds) s: \(sql)", isFinal: true)
                }
                unsafe poll(&poller, 1, Int32(left * 1000) + 1)
                unsafe PQconsumeInput(raw)
            }
            guard let next = unsafe PQgetResult(raw) else { return unsafe last }
            unsafe PQclear(last)
            unsafe last = next
        }
    }

    /// Runs statements; the rows of the last one, as text.
    @discardableResult
    func rows(_ sql: String, seconds: Double = 120) throws -> [[String?]] {
        let result = try unsafe result(of: sql, seconds: seconds)
        defer { unsafe PQclear(result) }
        let status = unsafe PQresultStatus(result)
        guard status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK else {
            throw Failure("\(sql): \(unsafe String(cString: PQresultErrorMessage(result)))")
        }
        return unsafe (0..<PQntuples(result)).map { row in
            unsafe (0..<PQnfields(result)).map { column in
                // SAFETY: row and column are in range; the text lives until PQclear.
                unsafe PQgetisnull(result, row, column) == 1
                    ? nil : unsafe String(cString: PQgetvalue(result, row, column))
            }
        }
    }

    /// The first column of the first row.
    func value(_ sql: String) throws -> String? { try rows(sql).first?.first ?? nil }

    func int(_ sql: String) throws -> Int {
        guard let text = try value(sql), let value = Int(text) else {
            throw Failure("\(sql): not a number")
        }
        return value
    }
}
