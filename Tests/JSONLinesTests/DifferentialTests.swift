import CSimdjson
import Testing

@testable import JSONLines

/// A small generator with a fixed seed, so that a failure can be repeated.
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z &>> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z &>> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z &>> 31
    }
}

/// Our verdict is simdjson's, but for what PostgreSQL cannot hold and simdjson's own limits.
struct DifferentialTests {
    private static let seeds = [
        #"{"type":"clicked","message_uid":"01","device_id":"d","n":-12.5e+3,"p":{"a":[1,{},[]]}}"#,
        #"{"s":"é€😀\ud83d\ude00\u0041\n\\\"","t":true,"f":false,"z":null,"e":"","o":{"":[0,-0,1e5]}}"#,
        #"[1,2,[3,{"a":"b"}],"c",0.5,[[[[]]]],{"k":{"k":{"k":1}}}] "#,
        #" { "a" : [ 1 , 2 ] , "b" : "cdefghijklmnopqrstuvwxyz0123456789" , "c" : 1E-7 } "#,
    ].map { Array($0.utf8) }
    private static let tokens: [[UInt8]] =
        [
            "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "1", "-", "+", ".", "e", "E", " ", "\n",
            "\t",
            "\\u", "\\ud83d", "\\ude00", "\\u0000", "null", "true", "false", "\0", "\u{1F}", "é",
            "😀", "//",
        ].map { Array($0.utf8) } + [[0x80], [0xC0], [0xED, 0xA0, 0xBD], [0xF4, 0x90], [0xFF]]

    private func mutate(_ text: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
        var text = text
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            guard !text.isEmpty else { break }
            let index = Int.random(in: 0..<text.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: text[index] = UInt8.random(in: 0...255, using: &random)
            case 1: text.remove(at: index)
            case 2: text.insert(contentsOf: Self.tokens.randomElement(using: &random)!, at: index)
            case 3: text.removeSubrange(index..<min(text.count, index + 4))
            case 4: text.insert(contentsOf: text[index..<min(text.count, index + 9)], at: index)
            default:
                let token = Self.tokens.randomElement(using: &random)!
                text.replaceSubrange(index..<min(text.count, index + token.count), with: token)
            }
        }
        return text
    }

    private func simdjson(_ text: [UInt8]) -> tapline_simdjson_verdict {
        unsafe text.withUnsafeBytes { unsafe tapline_simdjson_check($0.baseAddress, $0.count) }
    }

    @Test func mutatedTextsGetTheVerdictOfSimdjson() {
        var random = SplitMix64(state: 20_261_130)
        var valid = 0
        for round in 0..<50_000 {
            let text = mutate(Self.seeds[round % Self.seeds.count], &random)
            let bytes = text.rawSpan
            var scanner = JSONScanner(0..<text.count, of: bytes)
            let isOurs = scanner.value(bytes, depth: 0) && scanner.isAtEnd(bytes)
            let theirs = simdjson(text)
            let isTheirs = theirs == tapline_simdjson_valid
            if isOurs { valid += 1 }
            if isOurs == isTheirs { continue }
            // simdjson alone refuses lone surrogates and numbers over 64 bits or a double.
            if isOurs, theirs == tapline_simdjson_string, scanner.hasRefusedText { continue }
            if isOurs, theirs == tapline_simdjson_number, hasLargeNumber(text) { continue }
            let shown = String(decoding: text, as: UTF8.self)
            Issue.record("round \(round): ours \(isOurs), simdjson \(theirs.rawValue): \(shown)")
        }
        #expect(valid > 5_000 && valid < 45_000)
    }

    private func hasLargeNumber(_ text: [UInt8]) -> Bool {
        var digits = 0
        for byte in text {
            digits = Ascii.isDigit(byte) || byte == 0x65 || byte == 0x45 ? digits + 1 : 0
            if digits >= 4 { return true }
        }
        return false
    }
}
