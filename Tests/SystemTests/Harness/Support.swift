import Foundation
import Glibc

/// Why a test cannot go on.
struct Failure: Error, CustomStringConvertible {
    let description: String
    /// Whether asking again cannot help.
    let isFinal: Bool

    init(_ description: String, isFinal: Bool = false) {
        self.description = description
        self.isFinal = isFinal
    }
}

/// Asks again and again until there is an answer.
///
/// - Parameters:
///   - what: Completes "not so after 5 s: …".
///   - interval: The pause between two tries, in seconds.
/// - Throws: ``Failure`` when there is none in time, with the last error of `answer`.
@discardableResult
func until<Answer>(
    _ what: @autoclosure () -> String, seconds: Double = 60, interval: Double = 0.01,
    _ answer: () throws -> Answer?
) throws -> Answer {
    let deadline = Date().addingTimeInterval(seconds)
    var lastError: (any Error)?
    while true {
        do {
            if let answer = try answer() { return answer }
            lastError = nil
        } catch {
            if (error as? Failure)?.isFinal == true { throw error }
            lastError = error
        }
        guard Date() < deadline else {
            let reason = lastError.map { ": \($0)" } ?? ""
            throw Failure("not so after \(seconds) s: \(what())\(reason)")
        }
        usleep(UInt32(interval * 1_000_000))
    }
}

/// A fixed sequence of random numbers (SplitMix64), the same on every machine.
struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}

/// A directory under /tmp with a short name, removed at the end.
final class TemporaryDirectory: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/tls-XXXXXX".utf8CString)
        // SAFETY: a NUL-terminated template, which mkdtemp fills in.
        guard unsafe mkdtemp(&template) != nil else { fatalError("could not create /tmp/tls-*") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        unsafe chmod(path, 0o755)
        Living.add(directory: path)
    }

    func file(_ name: String, _ text: String) throws -> String {
        try file(name, Array(text.utf8))
    }

    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = "\(path)/\(name)"
        guard FileManager.default.createFile(atPath: file, contents: Data(bytes)) else {
            throw Failure("could not write \(file)")
        }
        return file
    }
}

/// A JSON value.
enum JSON: Equatable, Sendable, Decodable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .int(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    init(parsing text: some Collection<UInt8>) throws {
        do {
            self = try JSONDecoder().decode(JSON.self, from: Data(text))
        } catch {
            throw Failure("not JSON: \(String(decoding: text.prefix(500), as: UTF8.self))")
        }
    }

    subscript(name: String) -> JSON {
        if case .object(let members) = self { return members[name] ?? .null }
        return .null
    }

    subscript(index: Int) -> JSON {
        if case .array(let items) = self, items.indices.contains(index) { return items[index] }
        return .null
    }

    var keys: Set<String> {
        if case .object(let members) = self { return Set(members.keys) }
        return []
    }

    var items: [JSON] { if case .array(let items) = self { items } else { [] } }
    var int: Int64? { if case .int(let value) = self { value } else { nil } }
    var text: String? { if case .string(let value) = self { value } else { nil } }
    var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    var number: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }
}

/// A text as a JSON string.
func quote(_ text: String) -> String {
    let items = try? JSONEncoder().encode([text])
    return String(decoding: (items ?? Data()).dropFirst().dropLast(), as: UTF8.self)
}
