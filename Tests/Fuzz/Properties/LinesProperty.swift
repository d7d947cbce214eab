import Event
import Ingest
import JSONLines

enum LinesProperty {
    static let receivedAt: Int64 = 1_796_018_400_000_000

    static let seeds: [[UInt8]] = [
        "{\"type\":\"clicked\",\"message_uid\":\"m\",\"device_id\":\"d\"}\n\r\n  \n{}\n",
        "\u{FEFF}{\"type\":\"launch\",\"device_id\":\"d\",\"occurred_at\":1}\r\n{\"a\":[1,2]}",
        "[{\"type\":\"sent\",\"message_uid\":1,\"properties\":{\"a\":\"\\u0000\"}},{}, 7]",
        "{\"status\":\"inbox_open\",\"inbox_message_uid\":\"i\",\"uuid\":\"6F9619FF-8B86-D011-B42D-"
            + "00C04FC964FF\",\"campaign_id\":12,\"sent_at\":\"2026-11-30T06:10:00Z\",\"x\":[]}",
    ].map { Array($0.utf8) }

    static func violation(_ body: [UInt8]) -> String? {
        var splitter = LineSplitter()
        var lines: [Line] = []
        while let line = splitter.next(in: body.rawSpan) { lines.append(line) }
        guard lines.map({ Piece($0.range, $0.number) }) == slowLines(body) else {
            return "lines \(lines)"
        }
        var elements: [Range<Int>] = []
        do {
            try JSONBody.split(body.rawSpan, into: &elements)
        } catch {
            elements = []
        }
        var end = 0
        for element in elements {
            guard element.lowerBound >= end, element.upperBound <= body.count, !element.isEmpty
            else { return "element at \(element)" }
            end = element.upperBound
        }
        return verdictViolation(body, lines.map(\.range)) ?? verdictViolation(body, elements)
    }

    /// That each piece is a row or a rejection, and that the record of them can be read.
    static func verdictViolation(_ body: [UInt8], _ pieces: [Range<Int>]) -> String? {
        guard !pieces.isEmpty else { return nil }
        let app = Array("shop".utf8)
        var decoder = EventDecoder()
        var builder = BodyRecord.Builder(app: app, receivedAt: receivedAt)
        var accepted = 0
        for piece in pieces {
            let verdict = decoder.decode(
                line: body.rawSpan.extracting(piece), receivedAt: receivedAt, sentAtHeader: nil,
                app: app, into: &builder)
            if verdict == .accepted { accepted += 1 }
        }
        do {
            let record = try BodyRecord(payload: builder.finish())
            let rows = try record.rows()
            guard record.received == pieces.count, rows.count == accepted,
                record.rejected == pieces.count - accepted
            else { return "\(pieces.count) pieces, \(accepted) accepted, \(rows.count) rows" }
        } catch {
            return "the record cannot be read: \(error)"
        }
        return nil
    }

    private struct Piece: Equatable {
        let range: Range<Int>
        let number: Int
        init(_ range: Range<Int>, _ number: Int) { (self.range, self.number) = (range, number) }
    }

    /// What ``LineSplitter`` should do, byte by byte.
    private static func slowLines(_ body: [UInt8]) -> [Piece] {
        var lines: [Piece] = []
        var start = body.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        var number = 1
        for index in start...body.count where index == body.count || body[index] == 0x0A {
            var end = index
            if end > start, body[end - 1] == 0x0D { end -= 1 }
            if body[start..<end].contains(where: { !Ascii.isSpace($0) }) {
                lines.append(Piece(start..<end, number))
            }
            start = index + 1
            number += 1
        }
        return lines
    }
}
