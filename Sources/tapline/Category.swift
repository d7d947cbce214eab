import Client
import Import
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
        do throws(ClientError) {
            bytes = try InputBytes(.file(name)).all(upTo: bytesMax)
        } catch {
            throw CategoryFileError(message: error.message)
        }
        guard bytes.count <= bytesMax else {
            throw CategoryFileError(message: "is more than \(bytesMax) bytes, the limit")
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
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw CategoryFileError(message: "is not valid UTF-8")
        }
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
                        label: try note(text(button["label"]), "label", place),
                        type: try note(text(button["type"]), "type", place),
                        opensApp: try flag(
                            text(button["startApplication"] ?? button["opens_app"]), place)))
            }
            categories.append(
                Categories.Category(
                    id: try identifier(
                        text(item["id"] ?? item["categoryId"] ?? item["category_id"]), "id", place),
                    label: try note(text(item["label"] ?? item["name"]), "label", place),
                    buttons: buttons))
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
        return try checked(text, name, TableText.idBytesMax, place)
    }

    /// A label or a type.
    private static func note(
        _ text: String?, _ name: String, _ place: String
    ) throws(CategoryFileError) -> String? {
        guard let text else { return nil }
        return try checked(text, name, TableText.textBytesMax, place)
    }

    private static func checked(
        _ text: String, _ name: String, _ limit: Int, _ place: String
    ) throws(CategoryFileError) -> String {
        do throws(RowError) {
            return try TableText.checked(text, name, bytesMax: limit)
        } catch {
            throw CategoryFileError(message: "\(place): \(error.reason)")
        }
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
        var categories: [Categories.Category] = []
        for row in try rows(bytes).dropFirst() {
            let place = "line \(row.line)"
            let fields: [String]
            switch row.fields {
            case .success(let texts): fields = texts
            case .failure(let error):
                throw CategoryFileError(message: "\(place): \(error.reason)")
            }
            let values = fields.map { $0.isEmpty ? nil : $0 }
            let id = try identifier(values[0], columns[0], place)
            var buttons: [Categories.Button] = []
            var label = try note(values[1], columns[1], place)
            if let last = categories.last, last.id == id {
                categories.removeLast()
                buttons = last.buttons
                label = last.label ?? label
            }
            if values[2...].contains(where: { $0 != nil }) {
                buttons.append(
                    Categories.Button(
                        id: try identifier(values[2], columns[2], place),
                        label: try note(values[3], columns[3], place),
                        type: try note(values[4], columns[4], place),
                        opensApp: try flag(values[5], place)))
            }
            categories.append(Categories.Category(id: id, label: label, buttons: buttons))
        }
        return categories
    }

    /// All rows, the names of columns first, which are right.
    private static func rows(_ bytes: [UInt8]) throws(CategoryFileError) -> [Row] {
        var rows: [Row] = []
        do throws(ClientError) {
            let reader = try RowReader(.memory(name: "", bytes), separator: UInt8(ascii: ","))
            reader.expect(fields: columns.count)
            while let row = try reader.next() { rows.append(row) }
        } catch {
            throw CategoryFileError(message: error.message)
        }
        guard case .success(let names)? = rows.first?.fields,
            names.map({ $0.lowercased() }) == columns
        else {
            throw CategoryFileError(
                message: "line 1 does not name the columns " + columns.joined(separator: ", "))
        }
        return rows
    }
}
