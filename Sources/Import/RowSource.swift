import Client
import Event
import Ingest
import JSONLines

/// Cuts a table into bodies of the events that its rows make.
///
/// Rows that are wrong go into the file of rejects, and cost no other row anything; what is wrong with an
/// event is found as the daemon would find it. Holds the rows whose events have no verdict yet; a file is
/// open only from its first row to its last, so there may be many.
package final class RowSource: BodySource {
    /// What came of the rows so far.
    package struct Tally: Equatable, Sendable {
        /// Rows read, without the names of columns.
        package var rows = 0
        /// Rows that are not asked for.
        package var skipped = 0
        /// Rows that are wrong, or that the server refused.
        package var rejected = 0
        /// Events made, by type.
        package var events: [String: Int] = [:]
        /// The first few rows that are wrong.
        package var problems: [SendProblem] = []
        /// The first few events, as they are sent.
        package var first: [String] = []

        package init() {}
    }

    package private(set) var tally = Tally()
    package let rejects: Rejects?
    package let name: String
    package let bytesTotal: Int?
    private let map: ColumnMap
    private let input: SendInput
    /// Nil before the first row of a file that can be opened again, and at the end.
    private var reader: RowReader?
    private let linesMax: Int
    private let bytesMax: Int
    private var mapper: RowMapper?
    private var header: [UInt8]?
    /// Whether the file is one of rejects itself.
    private var isOfRejects = false
    private var decoder = EventDecoder()
    private var reported = 0
    /// By line: rows sent, and how many of their events have no verdict yet.
    private var pending: [Int: (raw: [UInt8], events: Int, isRefused: Bool)] = [:]
    private var failure: ClientError?
    private var isAtEnd = false

    /// Events that ``Tally/first`` has at most.
    package static let firstMax = 5

    /// - Parameters:
    ///   - rejects: Where refused rows go; nil to leave them out.
    ///   - linesMax: Events of a body; the last row may make some more.
    /// - Throws: ``ClientError/unreadable(file:reason:)``.
    package init(
        _ input: SendInput, map: ColumnMap, rejects: Rejects?, linesMax: Int, bytesMax: Int
    ) throws(ClientError) {
        self.map = map
        self.rejects = rejects
        self.linesMax = linesMax
        self.bytesMax = bytesMax
        self.input = input
        let reader = try RowReader(input, separator: map.separator)
        name = reader.name
        bytesTotal = reader.bytesTotal
        try readColumns(reader)
        if case .file = input, bytesTotal != nil { return }
        self.reader = reader
    }

    private func readColumns(_ reader: RowReader) throws(ClientError) {
        func fail(_ reason: String) -> ClientError { .unreadable(file: name, reason: reason) }
        do throws(RowError) {
            if let columns = map.columns {
                mapper = try RowMapper(map, columns: columns)
                reader.expect(fields: columns.count)
                return
            }
        } catch {
            throw fail(error.reason)
        }
        guard let row = try reader.next() else { throw fail("is empty, without names of columns") }
        do throws(RowError) {
            let columns = try row.fields.get()
            mapper = try RowMapper(map, columns: columns)
            reader.expect(fields: columns.count)
            header = row.raw
            // The names of a file of rejects are those of the file they came from.
            if columns.first == RowMapper.reasonColumn {
                isOfRejects = true
                header = withoutReason(row.raw)
            }
        } catch {
            throw fail(error.reason)
        }
    }

    /// A row of a file of rejects as it stood in the first file: its reason is between quotes.
    private func withoutReason(_ raw: [UInt8]) -> [UInt8] {
        // A part of a row that was broken up does not begin with one.
        guard isOfRejects, raw == header || raw.first == UInt8(ascii: "\"") else { return raw }
        var isInside = false
        for (index, byte) in raw.enumerated() {
            if byte == UInt8(ascii: "\"") { isInside.toggle() }
            if byte == map.separator, !isInside { return Array(raw[(index + 1)...]) }
        }
        return raw
    }

    package func next() throws(ClientError) -> SourceItem {
        var bytes: [UInt8] = []
        var lines: [Int] = []
        while lines.count < linesMax, bytes.count < bytesMax, !isAtEnd {
            do throws(ClientError) {
                let reader = try openedReader()
                guard let row = try reader.next() else {
                    isAtEnd = true
                    break
                }
                for line in events(of: row) {
                    bytes += line.utf8
                    bytes.append(0x0A)
                    lines.append(row.line)
                }
            } catch {
                failure = error
                isAtEnd = true
            }
            if let reason = rejects?.failure, failure == nil {
                failure = .unavailable(reason: reason)
                isAtEnd = true
            }
        }
        let position = reader?.position ?? reported
        if isAtEnd { reader = nil }
        if let first = lines.first {
            let body = Body(
                file: name, firstLine: first, lineCount: lines.count, bytes: bytes,
                sourceBytes: position - reported, lineNumbers: lines)
            reported = position
            return .body(body)
        }
        if let failure {
            self.failure = nil
            throw failure
        }
        return .end
    }

    private func openedReader() throws(ClientError) -> RowReader {
        if let reader { return reader }
        let reader = try RowReader(input, separator: map.separator)
        try readColumns(reader)
        self.reader = reader
        return reader
    }

    /// Takes note of what became of a body's events.
    package func settle(_ body: Body, _ errors: [LineError]) {
        guard body.file == name else { return }
        let reasons = Dictionary(
            errors.map { (body.fileLine($0.line), $0.code + ": " + $0.message) },
            uniquingKeysWith: { first, _ in first })
        for line in body.lineNumbers {
            guard var row = pending.removeValue(forKey: line) else { continue }
            if let reason = reasons[line], !row.isRefused {
                row.isRefused = true
                tally.rejected += 1
                rejects?.add(withoutReason(row.raw), reason: reason, header: header)
            }
            row.events -= 1
            if row.events > 0 { pending[line] = row }
        }
    }

    /// The events of a row as lines; none of one that is refused or not asked for.
    private func events(of row: Row) -> [String] {
        tally.rows += 1
        do throws(RowError) {
            guard let lines = try mapper?.lines(of: try row.fields.get()) else {
                tally.skipped += 1
                return []
            }
            var types: [String] = []
            for line in lines { types.append(try check(line)) }
            for (line, type) in zip(lines, types) {
                tally.events[type, default: 0] += 1
                if tally.first.count < Self.firstMax { tally.first.append(line) }
            }
            pending[row.line] = (row.raw, lines.count, false)
            return lines
        } catch {
            tally.rejected += 1
            if tally.problems.count < SendSummary.problemsMax {
                tally.problems.append(
                    SendProblem(file: name, line: row.line, message: error.reason))
            }
            rejects?.add(withoutReason(row.raw), reason: error.reason, header: header)
            return []
        }
    }

    /// Whether the daemon would take an event.
    ///
    /// - Returns: Its type.
    private func check(_ line: String) throws(RowError) -> String {
        let bytes = Array(line.utf8)
        do throws(Rejection) {
            let type = try decoder.type(of: bytes.rawSpan)
            return "\(type.word)"
        } catch {
            throw RowError("\(error.code.rawValue): \(error.message)")
        }
    }
}
