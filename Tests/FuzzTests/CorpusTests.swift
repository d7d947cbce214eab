import Foundation
import Testing

@testable import JSONLines

/// The scanner of lines over `Tests/Fuzz/corpus/json.tsv`, which has a verdict for each text.
struct CorpusTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let verdict: String
        let name: String
        let text: [UInt8]
        var testDescription: String { name }
    }

    static let rows: [Row] = {
        let file = FuzzTests.corpus.appendingPathComponent("json.tsv")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
            return Row(
                verdict: String(parts[0]), name: String(parts[1]), text: bytes(of: parts[2]))
        }
    }()

    /// `%XX` is a byte.
    private static func bytes(of text: Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    private static func verdict(_ text: [UInt8]) -> String {
        let bytes = text.rawSpan
        var scanner = JSONScanner(0..<text.count, of: bytes)
        guard scanner.value(bytes, depth: 0), scanner.isAtEnd(bytes) else {
            switch scanner.failure {
            case .invalidUTF8: return "invalid_utf8"
            case .tooDeep: return "too_deep"
            default: return "syntax"
            }
        }
        if scanner.isNumberTooLarge { return "number_too_large" }
        return scanner.hasRefusedText ? "sanitized" : "valid"
    }

    @Test func theCorpusIsThere() { #expect(Self.rows.count >= 290) }

    @Test(arguments: rows) func aTextGetsTheVerdictOfTheCorpus(row: Row) {
        #expect(Self.verdict(row.text) == row.verdict)
        // As the value of a member it is judged the same, a level deeper.
        guard !row.name.contains("depth"), !row.text.isEmpty else { return }
        let line = Array(#"{"x":"#.utf8) + row.text + Array("}".utf8)
        var members = GrowingTable<JSONMember>()
        let failure = JSONObject.scan(line.rawSpan, 0..<line.count, into: &members)
        switch row.verdict {
        case "valid", "sanitized": #expect(failure == nil)
        case "number_too_large": #expect(failure == .invalid(.numberTooLarge))
        default: #expect(failure != nil)
        }
        if row.verdict == "sanitized" {
            #expect(members[0].isValueRefused)
        }
    }
}
