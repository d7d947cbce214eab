internal import CSimdjson
import JSONLines

enum JSONProperty {
    static let seeds: [[UInt8]] = [
        #"{"type":"clicked","message_uid":"01","n":-12.5e+3,"p":{"a":[1,{},[]]}}"#,
        #"{"s":"é€😀\ud83d\ude00\u0041\n\\\"","t":true,"f":false,"z":null,"o":{"":[0,-0,1e5]}}"#,
        #"{"a":[[[[[[[[1]]]]]]]],"b":"cdefghijklmnopqrstuvwxyz0123456789","\u0061":"\u0000"}"#,
        "[]", "1", "{}",
    ].map { Array($0.utf8) }

    static func violation(_ text: [UInt8]) -> String? {
        var members = GrowingTable<JSONMember>()
        let failure = JSONObject.scan(text.rawSpan, 0..<text.count, into: &members)
        let isOurs: Bool
        switch failure {
        case nil, .notAnObject: isOurs = true
        // The grammar is right, only the number is not to our taste.
        case .invalid(.numberTooLarge): return nil
        case .invalid: isOurs = false
        }
        let verdict = unsafe text.withUnsafeBytes {
            unsafe tapline_simdjson_check($0.baseAddress, $0.count)
        }
        let isTheirs = verdict == tapline_simdjson_valid
        // simdjson alone refuses lone surrogates, and numbers over 64 bits or a double; and it
        // allows itself more levels, and a byte order mark.
        let isExplained =
            isOurs
            ? verdict == tapline_simdjson_string && text.contains(0x5C)
                || verdict == tapline_simdjson_number
            : failure == .invalid(.tooDeep) || text.starts(with: [0xEF, 0xBB, 0xBF])
        if isOurs != isTheirs, !isExplained {
            return "ours \(isOurs) (\(String(describing: failure))), simdjson \(verdict.rawValue)"
        }
        guard failure == nil else { return nil }
        return placeViolation(text, members)
    }

    /// That members are in order and inside the text, and that what jsonb refuses can be replaced.
    private static func placeViolation(
        _ text: [UInt8], _ members: borrowing GrowingTable<JSONMember>
    ) -> String? {
        var end = 0
        for index in 0..<members.count {
            let member = members[index]
            guard member.key.lowerBound >= end, member.key.upperBound < member.value.lowerBound,
                !member.value.isEmpty, member.value.upperBound < text.count
            else { return "member \(index) at \(member.key) and \(member.value)" }
            end = member.value.upperBound
            var clean = ByteBuffer()
            JSONText.sanitize(text.rawSpan, member.value, into: &clean)
            guard clean.count == member.value.count else { return "sanitize changed the length" }
            if member.isString {
                var plain = ByteBuffer()
                JSONText.unescape(text.rawSpan, member.text, into: &plain)
                guard plain.count <= member.text.count else { return "unescape made it longer" }
                guard String(validating: plain.array, as: UTF8.self) != nil else {
                    return "unescape made bytes that are no UTF-8"
                }
            }
        }
        return nil
    }

    /// The text as PostgreSQL would get it; nil if it is refused.
    static func sanitized(_ text: [UInt8]) -> [UInt8]? {
        var members = GrowingTable<JSONMember>()
        guard JSONObject.scan(text.rawSpan, 0..<text.count, into: &members) == nil else {
            return nil
        }
        var clean = ByteBuffer()
        JSONText.sanitize(text.rawSpan, 0..<text.count, into: &clean)
        return clean.array
    }
}

extension Property {
    /// The JSON text that the scanner takes, as it would be stored; nil if it takes none.
    package static func storedJSON(_ text: [UInt8]) -> [UInt8]? { JSONProperty.sanitized(text) }

    /// The time that the parser takes, as it would be written, and its microseconds since 1970.
    package static func storedTime(_ text: [UInt8]) -> (text: String, microseconds: Int64)? {
        TimeProperty.stored(text)
    }
}
