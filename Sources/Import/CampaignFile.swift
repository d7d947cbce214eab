import Client

/// A file of campaigns: CSV with a row of names, or NDJSON.
package struct CampaignFile: Sendable {
    /// A campaign on a line of the file.
    package struct Line: Equatable, Sendable {
        package let line: Int
        package let app: String
        package let id: String
        /// By column; nil where the column is empty. `sent_at` is in microseconds since 1970.
        package let values: [String: String?]
    }

    /// The campaigns that are right, each once.
    package private(set) var lines: [Line] = []
    /// What is wrong, in the order of the file.
    package private(set) var problems: [SendProblem] = []
    /// Columns that mean nothing here.
    package private(set) var unused: [String] = []
    private let name: String
    private let app: String?
    /// By app and id: where among the lines it is.
    private var places: [[String]: Int] = [:]

    package static let columns = ["name", "provider", "sent_at", "audience", "variant"]

    /// Reads a file to its end.
    ///
    /// - Parameter app: Of campaigns whose line does not say.
    /// - Throws: ``ClientError`` where it cannot be read.
    package init(_ input: SendInput, app: String?) throws(ClientError) {
        name = input.name
        self.app = app
        // All of it: files of campaigns are small, and what they are is seen at their beginning.
        let bytes = try InputBytes(input).all()
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        if bytes[start...].first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) })
            == UInt8(ascii: "{")
        {
            readObjects(bytes[start...])
        } else {
            try readTable(bytes)
        }
    }

    private mutating func readTable(_ bytes: [UInt8]) throws(ClientError) {
        let head = bytes.prefix { $0 != 0x0A }
        let separator = ["\t", ";"].compactMap(\.utf8.first).first(where: head.contains) ?? 0x2C
        let reader = try RowReader(.memory(name: name, bytes), separator: separator)
        guard let first = try reader.next() else { return note(1, "the file is empty") }
        guard case .success(let names) = first.fields else { return note(first) }
        guard names.contains("id") || names.contains("campaign_id") else {
            return note(1, "no column \"id\" among the names of columns")
        }
        reader.expect(fields: names.count)
        while let row = try reader.next() {
            guard case .success(let fields) = row.fields else {
                note(row)
                continue
            }
            add(
                row.line,
                Dictionary(zip(names, fields.map { $0.isEmpty ? nil : $0 })) { $1 })
        }
    }

    private mutating func note(_ row: Row) {
        if case .failure(let error) = row.fields { note(row.line, error.reason) }
    }

    private mutating func note(_ line: Int, _ reason: String) {
        problems.append(SendProblem(file: name, line: line, message: reason))
    }

    private mutating func readObjects(_ bytes: ArraySlice<UInt8>) {
        for (index, text) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
            .enumerated()
        {
            if text.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) { continue }
            guard case .object(let members) = JSONValue.parse(Array(text)) else {
                note(index + 1, "not a JSON object")
                continue
            }
            do throws(RowError) {
                var values: [String: String?] = [:]
                for (name, value) in members { values[name] = try Self.text(value, name) }
                add(index + 1, values)
            } catch {
                note(index + 1, error.reason)
            }
        }
    }

    /// A text or a whole number as text; nil for null.
    private static func text(_ value: JSONValue, _ name: String) throws(RowError) -> String? {
        switch value {
        case .string(let text): return text.isEmpty ? nil : text
        case .null: return nil
        case .number(let number):
            // Numbers beyond this are not exact here.
            guard abs(number) <= 9_007_199_254_740_992, let whole = Int(exactly: number) else {
                throw RowError("\(name) is a number that is not exact: write it as text")
            }
            return String(whole)
        default: throw RowError("\(name) is neither text nor a number")
        }
    }

    private mutating func add(_ line: Int, _ values: [String: String?]) {
        for name in values.keys.sorted()
        where !Self.columns.contains(name) && !["id", "campaign_id", "app"].contains(name)
            && !unused.contains(name)
        {
            unused.append(name)
        }
        do throws(RowError) {
            let found = try campaign(line, values)
            guard let place = places[[found.app, found.id]] else {
                places[[found.app, found.id]] = lines.count
                return lines.append(found)
            }
            let other = lines[place]
            guard other.values == found.values else {
                throw RowError(
                    "campaign \"\(found.id)\" is on line \(other.line) with other values")
            }
        } catch {
            note(line, error.reason)
        }
    }

    private func campaign(_ line: Int, _ values: [String: String?]) throws(RowError) -> Line {
        func text(_ name: String, _ limit: Int) throws(RowError) -> String? {
            guard let value = values[name] ?? nil else { return nil }
            return try TableText.checked(value, name, bytesMax: limit)
        }
        let ids = [
            try text("id", TableText.idBytesMax), try text("campaign_id", TableText.idBytesMax),
        ]
        guard let id = ids[0] ?? ids[1] else { throw RowError("id is missing") }
        let named = try text("app", TableText.idBytesMax)
        guard let app = named ?? app else {
            throw RowError("app is missing: give --app, or a column \"app\"")
        }
        var known: [String: String?] = [:]
        for name in Self.columns where values.keys.contains(name) {
            let value = try text(name, TableText.textBytesMax)
            guard name == "sent_at", let value else {
                known[name] = .some(value)
                continue
            }
            guard let time = RowTime.normalised(value, zone: nil).flatMap(RowTime.microseconds)
            else {
                throw RowError(
                    "sent_at is \"\(value)\", expected RFC 3339 with an offset, or an epoch")
            }
            known[name] = .some(String(time))
        }
        return Line(line: line, app: app, id: id, values: known)
    }
}
