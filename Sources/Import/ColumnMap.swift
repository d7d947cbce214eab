import Ingest

/// How the columns of a table become the fields of events: docs/import.md.
package struct ColumnMap: Equatable, Sendable {
    /// A part of a value.
    enum Term: Equatable, Sendable {
        case text(String)
        /// A column; one that is optional may be missing from the file.
        case column(String, isOptional: Bool)
        /// What identifies the whole row: ``RowIdentity``.
        case row
    }

    /// Whether something holds of a row: its value of a column is one of these texts, in any case.
    struct Condition: Equatable, Sendable {
        let column: String
        let values: [String]
        let isNegated: Bool

        func holds(_ value: String) -> Bool {
            values.contains { $0.lowercased() == value.lowercased() } != isNegated
        }
    }

    /// A value of a field: its terms one after the other, if none of its columns is empty.
    struct Assignment: Equatable, Sendable {
        let field: Field
        let terms: [Term]
        let condition: Condition?
    }

    /// A place in an event.
    enum Field: Hashable, Sendable {
        case event(EventField)
        case property(String)
    }

    /// An event that rows make.
    struct Event: Equatable, Sendable {
        let condition: Condition?
        var assignments: [Assignment]
    }

    /// Columns whose values go into the properties under their own names.
    enum Kept: Equatable, Sendable {
        /// All that nothing else is made of, but for these.
        case allBut(Set<String>)
        case only(Set<String>)
    }

    /// Between fields; one byte.
    package var separator = UInt8(ascii: ",")
    /// The columns of a file that has no row of names.
    var columns: [String]?
    /// The offset of times that have none, as `+01:00` or `Z`.
    var zone: String?
    /// Texts that mean that there is no value.
    var nulls: Set<String> = []
    /// The column that names the app: a file is of one.
    var app: String?
    var kept = Kept.allBut([])
    /// In the order of the file; what stands before the first is in each.
    var events: [Event] = []
    /// The rows that count.
    package var only: [(column: String, value: String)] = []

    package static func == (left: ColumnMap, right: ColumnMap) -> Bool {
        left.separator == right.separator && left.columns == right.columns
            && left.zone == right.zone && left.nulls == right.nulls && left.app == right.app
            && left.kept == right.kept && left.events == right.events
            && left.only.elementsEqual(right.only, by: ==)
    }

    /// Every column that the map names, and whether a file may be without it.
    var named: [(column: String, isOptional: Bool)] {
        var result: [(String, Bool)] = []
        func add(_ condition: Condition?) {
            if let condition { result.append((condition.column, false)) }
        }
        for event in events {
            add(event.condition)
            for assignment in event.assignments {
                add(assignment.condition)
                for case .column(let name, let isOptional) in assignment.terms {
                    result.append((name, isOptional))
                }
            }
        }
        if let app { result.append((app, true)) }
        return result + only.map { ($0.column, false) }
    }
}

/// Why a map means nothing.
package struct MapError: Error, Equatable, Sendable {
    /// From 1; nil where it is about the whole.
    package let line: Int?
    package let reason: String
}

extension ColumnMap {
    /// Reads a map.
    ///
    /// - Throws: The first line that means nothing.
    package init(_ text: String) throws(MapError) {
        var shared: [Assignment] = []
        var lineNumber = 0
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            lineNumber += 1
            do throws(RowError) {
                var words = MapWords(try MapWords.split(line))
                guard let first = words.next() else { continue }
                guard case .bare(let name) = first else {
                    throw RowError("begins with a text and not with a name")
                }
                if name == "event" {
                    events.append(Event(condition: try words.condition(), assignments: []))
                    continue
                }
                guard words.next() == .bare("=") else { throw RowError("\"\(name)\" without =") }
                if try set(name, &words) { continue }
                let assignment = Assignment(
                    field: try Self.field(name), terms: try words.terms(),
                    condition: try words.condition())
                if events.isEmpty {
                    shared.append(assignment)
                } else {
                    events[events.count - 1].assignments.append(assignment)
                }
            } catch {
                throw MapError(line: lineNumber, reason: error.reason)
            }
        }
        if events.isEmpty { events = [Event(condition: nil, assignments: [])] }
        // What stands in the event itself goes before what is said of all.
        for index in events.indices {
            events[index].assignments += shared
            guard events[index].assignments.contains(where: { $0.field == .event(.type) }) else {
                throw MapError(line: nil, reason: "event \(index + 1) has no \"type\"")
            }
        }
    }

    /// Takes a line that is about the file and not about a field.
    private mutating func set(_ name: String, _ words: inout MapWords) throws(RowError) -> Bool {
        switch name {
        case "separator":
            let known = ["comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"]
            let word = try words.only(of: name)
            guard let character = known[word] else {
                throw RowError("separator is \"\(word)\", expected comma, tab, semicolon or pipe")
            }
            separator = character.utf8.first ?? separator
        case "zone":
            let word = try words.only(of: name)
            guard RowTime.isOffset(word) else {
                throw RowError("zone is \"\(word)\", expected an offset as +01:00, or Z")
            }
            zone = word
        case "app": app = try words.only(of: name)
        case "columns": columns = try words.names(of: name)
        case "nulls": nulls = Set(try words.names(of: name))
        case "drop": kept = .allBut(Set(try words.names(of: name)))
        case "keep": kept = .only(Set(try words.names(of: name)))
        default: return false
        }
        guard words.isAtEnd else { throw RowError("\"\(name)\" has too many words") }
        return true
    }

    /// Fields by name, spelled as docs/events.md does.
    private static let fields: [String: EventField] = {
        let others: Set<EventField> = [
            .event, .status, .kind, .uuid, .eventID, .insertID, .activityType, .activityUID,
            .timestamp, .time, .sentAt, .properties, .attributes, .props,
        ]
        var fields: [String: EventField] = [:]
        for field in EventField.allCases where !others.contains(field) {
            fields["\(field.name)"] = field
        }
        return fields
    }()

    private static func field(_ name: String) throws(RowError) -> Field {
        if let field = fields[name] { return .event(field) }
        let prefix = "properties."
        if name.hasPrefix(prefix), name.count > prefix.count {
            return .property(String(name.dropFirst(prefix.count)))
        }
        throw RowError(
            "there is no field \"\(name)\"; there are \(fields.keys.sorted().joined(separator: ", ")), "
                + "and properties.NAME")
    }
}

/// The words of a line of a map.
struct MapWords {
    enum Word: Equatable {
        /// As it stands there.
        case bare(String)
        /// Between double quotes.
        case quoted(String)
        /// Between brackets: the name of a column.
        case bracketed(String)
    }

    private var words: ArraySlice<Word>

    init(_ words: [Word]) { self.words = words[...] }

    var isAtEnd: Bool { words.isEmpty }
    mutating func next() -> Word? { words.popFirst() }

    /// Splits a line; `#` begins a comment.
    static func split(_ line: Substring) throws(RowError) -> [Word] {
        var words: [Word] = []
        var rest = line
        while let character = rest.first {
            if character == "#" { break }
            if character.isWhitespace {
                rest.removeFirst()
            } else if character == "\"" || character == "[" {
                let close: Character = character == "[" ? "]" : "\""
                rest.removeFirst()
                guard let end = rest.firstIndex(of: close) else {
                    throw RowError("\(character) without \(close)")
                }
                let text = String(rest[..<end])
                words.append(character == "[" ? .bracketed(text) : .quoted(text))
                rest = rest[rest.index(after: end)...]
            } else if character == "=" {
                words.append(.bare("="))
                rest.removeFirst()
            } else {
                let word = rest.prefix { !$0.isWhitespace && !"=\"[#".contains($0) }
                words.append(.bare(String(word)))
                rest = rest[word.endIndex...]
            }
        }
        return words
    }

    /// What a field is made of, up to `if` or the end.
    mutating func terms() throws(RowError) -> [ColumnMap.Term] {
        var terms: [ColumnMap.Term] = []
        while let word = words.first, word != .bare("if") {
            words.removeFirst()
            switch word {
            case .quoted(let text): terms.append(.text(text))
            case .bare("@row"): terms.append(.row)
            default:
                var name = try column(word)
                let isOptional = name.hasSuffix("?")
                if isOptional { name.removeLast() }
                terms.append(.column(name, isOptional: isOptional))
            }
        }
        guard !terms.isEmpty else { throw RowError("nothing after =") }
        return terms
    }

    /// `if COLUMN is "TEXT"…` or `if COLUMN is not "TEXT"…`, or nothing.
    mutating func condition() throws(RowError) -> ColumnMap.Condition? {
        guard let word = next() else { return nil }
        guard word == .bare("if"), let column = next(), next() == .bare("is") else {
            throw RowError("expected if COLUMN is \"TEXT\", or if COLUMN is not \"TEXT\"")
        }
        let isNegated = words.first == .bare("not")
        if isNegated { words.removeFirst() }
        var values: [String] = []
        while let word = next() {
            guard case .quoted(let text) = word else {
                throw RowError("expected texts between double quotes after \"is\"")
            }
            values.append(text)
        }
        guard !values.isEmpty else { throw RowError("nothing after \"is\"") }
        return ColumnMap.Condition(
            column: try self.column(column), values: values, isNegated: isNegated)
    }

    /// All words that are left, as names.
    mutating func names(of setting: String) throws(RowError) -> [String] {
        var names: [String] = []
        while let word = next() {
            switch word {
            case .bare(let name), .quoted(let name), .bracketed(let name): names.append(name)
            }
        }
        guard !names.isEmpty else { throw RowError("\"\(setting)\" has no value") }
        return names
    }

    /// The one word that is left.
    mutating func only(of setting: String) throws(RowError) -> String {
        let names = try names(of: setting)
        guard names.count == 1 else { throw RowError("\"\(setting)\" has too many words") }
        return names[0]
    }

    private func column(_ word: Word) throws(RowError) -> String {
        switch word {
        case .bare("="): throw RowError("a second =")
        case .bare(let name), .bracketed(let name): return name
        case .quoted(let text): throw RowError("expected a column, not the text \"\(text)\"")
        }
    }
}
