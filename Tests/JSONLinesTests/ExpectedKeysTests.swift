import Testing

@testable import JSONLines

/// What is expected changes how soon a key is found, and nothing else.
struct ExpectedKeysTests {
    private static let names: [StaticString] = [
        "a", "type", "message_uid", "abcdefghijklmnopqrstu",
    ]
    private static let texts = [
        #"{"type":1,"message_uid":"a text of no matter","abcdefghijklmnopqrstu":{},"a":true,"z":0}"#,
        #"{"\u0074ype":"aaaaaaaaaaaaaaaaaaaaaaaa","types":1,"typ":2,"type" : 3 , "a":"\ud800   "}"#,
        #"{ "message_uid":[],"message_uid":"aaaaaaaaaaaaaaaaa","message_uie":"aaaaaaaaaaaaaaaaa"}"#,
        #"{"type":{"b":1.50,"a":"é","c":true},"a":{ "c" : 1 , "b":[]},"z":{"b":null,"b":20}}"#,
        #"{"a":"aaaaaaaaaaaaaaaaaaaaa","abcdefghijklmnopqrstuv":1,"":"aaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
    ].map { Array($0.utf8) }

    /// Keys of which each has come after any and after the start, `number` last.
    private static func keys(expecting number: Int) -> ExpectedKeys {
        var keys = ExpectedKeys(names)
        for last in 0...keys.start { keys.note(number, after: last) }
        return keys
    }

    private static func violation(_ text: [UInt8], _ keys: borrowing ExpectedKeys) -> String? {
        var plain = GrowingTable<JSONMember>()
        var members = GrowingTable<JSONMember>()
        let failure = JSONObject.scan(text.rawSpan, 0..<text.count, into: &plain)
        var objects = PlainMembers()
        let other = JSONObject.scan(
            text.rawSpan, 0..<text.count, expecting: keys, into: &members, plain: &objects)
        guard failure == other, plain.count == members.count else {
            return "\(String(describing: failure)) became \(String(describing: other))"
        }
        for index in 0..<plain.count {
            let (left, right) = (plain[index], members[index])
            guard left.key == right.key, left.value == right.value, left.kind == right.kind,
                left.flags.bits == right.flags.bits
            else { return "\(left) became \(right)" }
            if right.keyNumber != keys.other,
                "\(names[right.keyNumber])" != String(decoding: text[right.key], as: UTF8.self)
            {
                return "\(right) is not number \(right.keyNumber)"
            }
        }
        return nil
    }

    @Test(arguments: 0...4)
    func allTruncationsAndChangesOfAByteComeOutAsWithout(number: Int) {
        let keys = Self.keys(expecting: number)
        for text in Self.texts {
            for count in 0...text.count {
                let found = Self.violation(Array(text.prefix(count)), keys)
                #expect(found == nil, "the first \(count) bytes")
            }
            for index in text.indices {
                for byte in [0x00, 0x20, 0x22, 0x2C, 0x3A, 0x5C, 0x61, 0x7B, 0x7D, 0xC3] as [UInt8]
                {
                    var changed = text
                    changed[index] = byte
                    let found = Self.violation(changed, keys)
                    #expect(found == nil, "byte \(index) is \(byte)")
                }
            }
        }
    }

    @Test func aKeyIsFoundWhereItCameBefore() {
        var keys = ExpectedKeys(Self.names)
        let text = Self.texts[0]
        var members = GrowingTable<JSONMember>()
        func numbers() -> [Int] {
            var objects = PlainMembers()
            _ = JSONObject.scan(
                text.rawSpan, 0..<text.count, expecting: keys, into: &members, plain: &objects)
            return (0..<members.count).map { members[$0].keyNumber }
        }
        #expect(numbers() == [4, 4, 4, 4, 4])
        var last = keys.start
        for number in [1, 2, 3, 0] {
            keys.note(number, after: last)
            last = number
        }
        // The key "a" has less than 24 bytes behind it.
        #expect(numbers() == [1, 2, 3, 4, 4])
    }
}
