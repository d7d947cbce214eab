import Client

/// One row of a table in text: RFC 4180, with any separator and any line end.
package struct Row: Equatable, Sendable {
    /// The physical line, from 1, that it begins on.
    package let line: Int
    /// As it stands in the file, without its line end.
    package let raw: [UInt8]
    /// Its fields, or why there are none.
    package let fields: Result<[String], RowError>
}

/// Why a row, or what an event should be made of it, is wrong: one line, in lower case.
package struct RowError: Error, Equatable, Sendable {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}

/// Reads the rows of a table: a field may stand between double quotes, and then hold the separator,
/// line ends, and quotes written twice.
///
/// Holds one row and one piece of the file. A row that is broken, by a quote that never closes, say,
/// costs its first physical line alone: reading goes on with the next, so it hides none of its neighbours.
package final class RowReader {
    private let input: InputBytes
    private let separator: UInt8
    private var buffer: [UInt8] = []
    private var head = 0
    private var ended = false
    private var failure: ClientError?
    private var nextLine = 1
    /// Fields of a row; one with others is broken.
    private var width: Int?

    /// Bytes of a row: a quote that is never closed must not make one row of all that follows.
    package static let rowBytesMax = 1 << 20

    /// - Parameter separator: Of fields; not a quote or a line end.
    /// - Throws: ``ClientError/unreadable(file:reason:)``.
    package init(_ input: SendInput, separator: UInt8) throws(ClientError) {
        self.input = try InputBytes(input)
        self.separator = separator
    }

    /// The name in messages.
    package var name: String { input.name }
    /// Bytes of the file as stored, where that is known.
    package var bytesTotal: Int? { input.bytesTotal }
    /// Bytes of it, as stored, that have been read.
    package var position: Int { input.position }

    /// From now on a row has to have so many fields.
    package func expect(fields count: Int) { width = count }

    /// The next row that is not blank; nil at the end.
    ///
    /// - Throws: ``ClientError`` once, after the last whole row before the fault; then nil.
    package func next() throws(ClientError) -> Row? {
        while true {
            if nextLine == 1, head == 0 {
                while buffer.count < 3, !ended { readPiece() }
                if buffer.starts(with: [0xEF, 0xBB, 0xBF]) { head = 3 }
            }
            switch scan() {
            case .more: readPiece()
            case .end:
                guard let failure else { return nil }
                self.failure = nil
                throw failure
            case .row(let end, let next, let lines, let spans):
                let row = Row(
                    line: nextLine, raw: Array(buffer[head..<end]), fields: fields(spans))
                if case .failure = row.fields, lines > 1 { return brokenLine(row.fields) }
                head = next
                nextLine += lines
                if row.raw.isEmpty { continue }
                return row
            case .broken(let reason): return brokenLine(.failure(RowError(reason)))
            }
        }
    }

    private enum Scan {
        case more
        case end
        /// Where it ends without and with its line end, its physical lines, and its fields.
        case row(end: Int, next: Int, lines: Int, [FieldSpan])
        case broken(String)
    }

    private struct FieldSpan {
        let start, end: Int
        let isQuoted, hasEscapes: Bool
    }

    /// Finds the end of the row that begins at `head`.
    private func scan() -> Scan {
        guard head < buffer.count else { return ended ? .end : .more }
        // A copy that costs nothing, and spares the look at `self` for each byte.
        let buffer = buffer
        var spans: [FieldSpan] = []
        var index = head
        var lines = 1
        while true {
            var field = FieldSpan(start: index, end: index, isQuoted: false, hasEscapes: false)
            if index < buffer.count, buffer[index] == UInt8(ascii: "\"") {
                let start = index + 1
                var hasEscapes = false
                index = start
                while true {
                    guard index < buffer.count else { return open("a quote is not closed") }
                    if buffer[index] == 0x0A { lines += 1 }
                    if buffer[index] == UInt8(ascii: "\"") {
                        guard index + 1 < buffer.count, buffer[index + 1] == UInt8(ascii: "\"")
                        else { break }
                        hasEscapes = true
                        index += 1
                    }
                    index += 1
                }
                if index + 1 == buffer.count, !ended { return .more }
                field = FieldSpan(start: start, end: index, isQuoted: true, hasEscapes: hasEscapes)
                index += 1
            } else {
                while index < buffer.count, buffer[index] != separator, buffer[index] != 0x0A {
                    index += 1
                }
                field = FieldSpan(
                    start: field.start, end: index, isQuoted: false, hasEscapes: false)
            }
            if index >= buffer.count {
                guard ended else { return open("") }
                // What is left of a file that broke off is a part of a row.
                if failure != nil {
                    head = buffer.count
                    return .end
                }
                spans.append(withoutReturn(field))
                return .row(end: withoutReturn(index), next: index, lines: lines, spans)
            }
            let byte = buffer[index]
            if byte == separator {
                spans.append(field)
                index += 1
                continue
            }
            if byte == 0x0A {
                spans.append(withoutReturn(field))
                return .row(end: withoutReturn(index), next: index + 1, lines: lines, spans)
            }
            let isReturn =
                byte == 0x0D && (index + 1 == buffer.count || buffer[index + 1] == 0x0A)
            guard isReturn else { return .broken("text follows a closing quote") }
            if index + 1 == buffer.count, !ended { return .more }
            spans.append(field)
            return .row(
                end: index, next: min(index + 2, buffer.count), lines: lines, spans)
        }
    }

    /// What a row is that has no end yet.
    private func open(_ reason: String) -> Scan {
        if buffer.count - head > Self.rowBytesMax {
            return .broken(reason.isEmpty ? "longer than \(Self.rowBytesMax) bytes" : reason)
        }
        guard ended else { return .more }
        if failure != nil {
            head = buffer.count
            return .end
        }
        return .broken(reason)
    }

    private func withoutReturn(_ index: Int) -> Int {
        index > head && buffer[index - 1] == 0x0D ? index - 1 : index
    }

    /// Without the return of the line end, unless that stands between quotes.
    private func withoutReturn(_ field: FieldSpan) -> FieldSpan {
        guard !field.isQuoted, field.end > field.start else { return field }
        return FieldSpan(
            start: field.start, end: withoutReturn(field.end), isQuoted: false, hasEscapes: false)
    }

    private func fields(_ spans: [FieldSpan]) -> Result<[String], RowError> {
        if let width, spans.count != width {
            return .failure(RowError("has \(spans.count) columns, expected \(width)"))
        }
        var fields: [String] = []
        fields.reserveCapacity(spans.count)
        for (index, span) in spans.enumerated() {
            guard let text = String(validating: buffer[span.start..<span.end], as: UTF8.self) else {
                return .failure(RowError("column \(index + 1) is not valid UTF-8"))
            }
            fields.append(span.hasEscapes ? text.replacing("\"\"", with: "\"") : text)
        }
        return .success(fields)
    }

    /// The first physical line of a row that is broken.
    private func brokenLine(_ fields: Result<[String], RowError>) -> Row {
        while !ended, buffer[head...].firstIndex(of: 0x0A) == nil,
            buffer.count - head <= Self.rowBytesMax
        { readPiece() }
        let newline = buffer[head...].firstIndex(of: 0x0A)
        let end = newline ?? buffer.count
        let row = Row(line: nextLine, raw: Array(buffer[head..<withoutReturn(end)]), fields: fields)
        // A line of more than the limit is broken up; its parts are all there.
        head = newline.map { $0 + 1 } ?? buffer.count
        if newline != nil { nextLine += 1 }
        return row
    }

    private func readPiece() {
        buffer.removeFirst(head)
        head = 0
        do throws(ClientError) {
            if try !input.read(into: &buffer) { ended = true }
        } catch {
            failure = error
            ended = true
        }
    }
}
