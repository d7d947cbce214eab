import Glibc

/// A JSON value of an answer. For small answers only: events are never parsed with this.
package enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The member of an object.
    package subscript(_ name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
    /// The number, if it is one.
    package var number: Double? { if case .number(let value) = self { value } else { nil } }
    /// The whole number, if it is one.
    package var int: Int? { number.flatMap { Int(exactly: $0) } }
    /// The text, if it is one.
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The elements, if it is an array.
    package var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// Parses one JSON text; nil when it is not one, or nests deeper than 32.
    package static func parse(_ bytes: [UInt8]) -> JSONValue? {
        var parser = JSONParser(bytes: bytes)
        guard let value = parser.value(depth: 0) else { return nil }
        parser.skipSpace()
        return parser.index == bytes.count ? value : nil
    }
}

private struct JSONParser {
    let bytes: [UInt8]
    var index = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    mutating func skipSpace() {
        while let byte, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    mutating func take(_ text: StaticString) -> Bool {
        let wanted = Array(text.description.utf8)
        guard bytes[index...].starts(with: wanted) else { return false }
        index += wanted.count
        return true
    }

    mutating func value(depth: Int) -> JSONValue? {
        skipSpace()
        guard depth < 32, let byte else { return nil }
        switch byte {
        case UInt8(ascii: "{"): return object(depth: depth)
        case UInt8(ascii: "["): return array(depth: depth)
        case UInt8(ascii: "\""): return string().map(JSONValue.string)
        case UInt8(ascii: "t"): return take("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take("null") ? .null : nil
        default: return number()
        }
    }

    mutating func number() -> JSONValue? {
        let start = index
        while let byte, "+-.0123456789Ee".utf8.contains(byte) { index += 1 }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        guard let value = Double(text), value.isFinite else { return nil }
        return .number(value)
    }

    mutating func array(depth: Int) -> JSONValue? {
        var elements: [JSONValue] = []
        index += 1
        skipSpace()
        if take("]") { return .array([]) }
        while true {
            guard let element = value(depth: depth + 1) else { return nil }
            elements.append(element)
            skipSpace()
            if take("]") { return .array(elements) }
            guard take(",") else { return nil }
        }
    }

    mutating func object(depth: Int) -> JSONValue? {
        var members: [String: JSONValue] = [:]
        index += 1
        skipSpace()
        if take("}") { return .object([:]) }
        while true {
            skipSpace()
            guard byte == UInt8(ascii: "\""), let name = string() else { return nil }
            skipSpace()
            guard take(":"), let member = value(depth: depth + 1) else { return nil }
            members[name] = member
            skipSpace()
            if take("}") { return .object(members) }
            guard take(",") else { return nil }
        }
    }

    mutating func string() -> String? {
        var text: [UInt16] = []
        var plain: [UInt8] = []
        var result = ""
        index += 1
        func flush() {
            if !plain.isEmpty { result += String(decoding: plain, as: UTF8.self) }
            if !text.isEmpty { result += String(decoding: text, as: UTF16.self) }
            plain = []
            text = []
        }
        while let byte {
            index += 1
            if byte == UInt8(ascii: "\"") {
                flush()
                return result
            }
            guard byte == UInt8(ascii: "\\") else {
                if !text.isEmpty { flush() }
                plain.append(byte)
                continue
            }
            guard let unit = escape() else { return nil }
            if !plain.isEmpty { flush() }
            text.append(unit)
        }
        return nil
    }

    mutating func escape() -> UInt16? {
        guard let byte else { return nil }
        index += 1
        switch byte {
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "t"): return 0x09
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "b"): return 0x08
        case UInt8(ascii: "f"): return 0x0C
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return UInt16(byte)
        case UInt8(ascii: "u"):
            guard index + 4 <= bytes.count else { return nil }
            let digits = String(decoding: bytes[index..<index + 4], as: UTF8.self)
            index += 4
            return UInt16(digits, radix: 16)
        default: return nil
        }
    }
}
