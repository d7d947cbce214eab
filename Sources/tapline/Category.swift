import Client
import Load
import Options
import Platform

/// `tapline category import|list`.
func runCategory(_ parsed: Parsed) throws(OptionsError) -> Int32 {
    let store = try StoreOptions(parsed)
    guard parsed.path.last == "import" else {
        return listCategories(
            app: parsed.value("app"), isJSON: parsed.value("format") == "json", store)
    }
    let name = parsed.operands[0]
    let categories: [Categories.Category]
    do throws(CategoryFileError) {
        categories = try CategoryFile.read(name)
    } catch {
        complain("tapline category: \(name): \(error.message)")
        return 1
    }
    let app = parsed.value("app") ?? ""
    return withStore(store, command: "category") { connection throws(LoadError) in
        // Categories may be there before the daemon has ever run.
        _ = try Migrator.migrate(connection)
        let isRecounted = try Categories.put(
            connection, categories, app: app, replacesAll: parsed.flag("replace"))
        let buttons = categories.reduce(0) { $0 + $1.buttons.count }
        return print(
            "\(categories.count) categories with \(buttons) buttons imported"
                + (isRecounted ? "; stored events were counted anew\n" : "\n"))
    }
}

private func listCategories(app: String?, isJSON: Bool, _ store: StoreOptions) -> Int32 {
    withStore(store, command: "category") { connection throws(LoadError) in
        let found = try Categories.all(connection).filter { app == nil || $0.app == app }
        func quoted(_ text: String?) -> String { text.map { JSONString.quoted($0) } ?? "null" }
        if isJSON {
            let items = found.map { app, category in
                let buttons = category.buttons.map { button in
                    "{\"id\":\(quoted(button.id)),\"label\":\(quoted(button.label)),"
                        + "\"type\":\(quoted(button.type)),\"startApplication\":"
                        + (button.opensApp.map { $0 ? "1" : "0" } ?? "null") + "}"
                }
                return "{\"app\":\(quoted(app)),\"id\":\(quoted(category.id)),"
                    + "\"label\":\(quoted(category.label)),"
                    + "\"buttons\":[\(buttons.joined(separator: ","))]}"
            }
            return print("[" + items.joined(separator: ",\n ") + "]\n")
        }
        var rows = [["APP", "CATEGORY", "LABEL", "BUTTON", "LABEL", "OPENS THE APP"]]
        for (app, category) in found {
            let head = [app, category.id, category.label ?? "-"]
            if category.buttons.isEmpty { rows.append(head + ["-", "-", "-"]) }
            for button in category.buttons {
                let opens = button.opensApp.map { $0 ? "yes" : "no" } ?? "not known"
                rows.append(head + [button.id, button.label ?? "-", opens])
            }
        }
        return print(textTable(rows))
    }
}

/// What is wrong with a file of categories, as a line for people.
struct CategoryFileError: Error { let message: String }

/// Reads categories from JSON or CSV.
enum CategoryFile {
    private static let bytesMax = 16 << 20
    private static let columns = [
        "category_id", "category_label", "button_id", "label", "type", "start_application",
    ]

    static func read(_ name: String) throws(CategoryFileError) -> [Categories.Category] {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try File.contents(of: name == "-" ? "/dev/stdin" : name)
        } catch {
            throw CategoryFileError(message: "cannot be read: \(error)")
        }
        guard bytes.count <= bytesMax else {
            throw CategoryFileError(message: "is \(bytes.count) bytes, limit is \(bytesMax)")
        }
        let first = bytes.first { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) }
        let categories =
            first == UInt8(ascii: "[") || first == UInt8(ascii: "{")
            ? try fromJSON(bytes) : try fromCSV(bytes)
        var ids: Set<String> = []
        for category in categories {
            guard ids.insert(category.id).inserted else {
                throw CategoryFileError(message: "category \"\(category.id)\" is there twice")
            }
            var buttons: Set<String> = []
            for button in category.buttons where !buttons.insert(button.id).inserted {
                throw CategoryFileError(
                    message: "button \"\(button.id)\" of category \"\(category.id)\" is there twice"
                )
            }
        }
        return categories
    }

    // MARK: JSON

    private static func fromJSON(
        _ bytes: [UInt8]
    ) throws(CategoryFileError) -> [Categories.Category] {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        guard let value = JSONValue.parse(bytes.starts(with: mark) ? Array(bytes[3...]) : bytes)
        else { throw CategoryFileError(message: "is not valid JSON") }
        guard let items = value.array ?? value["iosCategories"]?.array ?? value["categories"]?.array
        else { throw CategoryFileError(message: "is JSON, but no array of categories") }
        var categories: [Categories.Category] = []
        for (index, item) in items.enumerated() {
            let place = "category \(index + 1)"
            var buttons: [Categories.Button] = []
            for (index, button) in (item["buttons"]?.array ?? []).enumerated() {
                let place = "\(place), button \(index + 1)"
                buttons.append(
                    Categories.Button(
                        id: try identifier(text(button["id"]), "id", place),
                        label: text(button["label"]), type: text(button["type"]),
                        opensApp: try flag(
                            text(button["startApplication"] ?? button["opens_app"]), place)))
            }
            categories.append(
                Categories.Category(
                    id: try identifier(
                        text(item["id"] ?? item["categoryId"] ?? item["category_id"]), "id", place),
                    label: text(item["label"] ?? item["name"]), buttons: buttons))
        }
        return categories
    }

    /// A text, a whole number or a boolean as text.
    private static func text(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text): text.isEmpty ? nil : text
        case .number: value?.int.map { "\($0)" }
        case .bool(let flag): flag ? "1" : "0"
        default: nil
        }
    }

    private static func identifier(
        _ text: String?, _ name: String, _ place: String
    ) throws(CategoryFileError) -> String {
        guard let text else { throw CategoryFileError(message: "\(place): \(name) is missing") }
        guard text.utf8.count <= 128 else {
            throw CategoryFileError(
                message: "\(place): \(name) is \(text.utf8.count) bytes, limit is 128")
        }
        guard !text.utf8.contains(0) else {
            throw CategoryFileError(message: "\(place): \(name) has a NUL")
        }
        return text
    }

    private static func flag(
        _ text: String?, _ place: String
    ) throws(CategoryFileError) -> Bool? {
        switch text?.lowercased() {
        case nil: nil
        case "1", "true", "yes": true
        case "0", "false", "no": false
        default:
            throw CategoryFileError(
                message: "\(place): startApplication is \"\(text ?? "")\", not 0 or 1")
        }
    }

    // MARK: CSV

    private static func fromCSV(
        _ bytes: [UInt8]
    ) throws(CategoryFileError) -> [Categories.Category] {
        var rows = records(String(decoding: bytes, as: UTF8.self))
        guard !rows.isEmpty, rows[0].fields.map({ $0.lowercased() }) == columns else {
            throw CategoryFileError(
                message: "line 1 does not name the columns " + columns.joined(separator: ", "))
        }
        rows.removeFirst()
        var categories: [Categories.Category] = []
        for (line, fields) in rows {
            let place = "line \(line)"
            guard fields.count == columns.count else {
                throw CategoryFileError(
                    message: "\(place) has \(fields.count) columns, not \(columns.count)")
            }
            let values = fields.map { $0.isEmpty ? nil : $0 }
            let id = try identifier(values[0], columns[0], place)
            var buttons: [Categories.Button] = []
            var label = values[1]
            if let last = categories.last, last.id == id {
                categories.removeLast()
                buttons = last.buttons
                label = last.label ?? label
            }
            if values[2...].contains(where: { $0 != nil }) {
                buttons.append(
                    Categories.Button(
                        id: try identifier(values[2], columns[2], place), label: values[3],
                        type: values[4], opensApp: try flag(values[5], place)))
            }
            categories.append(Categories.Category(id: id, label: label, buttons: buttons))
        }
        return categories
    }

    /// The records of a CSV (RFC 4180), each with the line that it begins on; blank lines are none.
    private static func records(_ text: String) -> [(line: Int, fields: [String])] {
        var records: [(line: Int, fields: [String])] = []
        var (fields, field, line, first) = ([String](), "", 1, 1)
        var isQuoted = false
        func isBlank() -> Bool { fields.isEmpty && field.isEmpty }
        func end() {
            if !isBlank() { records.append((first, fields + [field])) }
            (fields, field) = ([], "")
        }
        var scalars = Array(text.unicodeScalars)[...]
        if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
        while let scalar = scalars.popFirst() {
            switch (scalar, isQuoted) {
            case ("\"", true) where scalars.first == "\"":
                field.unicodeScalars.append("\"")
                scalars.removeFirst()
            case ("\"", _) where isQuoted || field.isEmpty: isQuoted.toggle()
            case (",", false):
                fields.append(field)
                field = ""
            case ("\r", false) where scalars.first == "\n": break
            case ("\n", false):
                end()
                line += 1
                first = line
            default:
                if scalar == "\n" { line += 1 }
                field.unicodeScalars.append(scalar)
            }
        }
        end()
        return records
    }
}
