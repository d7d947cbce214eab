import JSONLines
import Platform

/// A value in the body of a source: looked into by name, and copied as it was sent.
///
/// Nothing of it is trusted: what goes on is written into a line of ours, which the decoder judges.
struct SourceJSON: Sendable {
    let bytes: [UInt8]
    /// The value without white space around it.
    let range: Range<Int>

    /// A whole body, or a text that should be JSON.
    init(_ bytes: [UInt8]) {
        let whole = JSONBody.whole(bytes.rawSpan)
        let start = bytes[whole].firstIndex { !Ascii.isSpace($0) } ?? whole.upperBound
        let end = bytes[whole].lastIndex { !Ascii.isSpace($0) } ?? start - 1
        self.init(bytes, start..<max(start, end + 1))
    }

    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        self.range = range
    }

    /// A string of ours.
    static func text(_ text: String) -> SourceJSON {
        SourceJSON(Array(JSONString.quoted(text).utf8))
    }

    /// A boolean of ours.
    static func flag(_ value: Bool) -> SourceJSON {
        SourceJSON(Array((value ? "true" : "false").utf8))
    }

    /// The value as it was sent.
    var raw: ArraySlice<UInt8> { bytes[range] }

    var isEmpty: Bool { range.isEmpty }
    var isNull: Bool { raw.elementsEqual("null".utf8) }

    /// The text of a string that is not empty, or a number as it is written; nil for anything else.
    var text: String? {
        switch raw.first ?? 0 {
        case Ascii.quote:
            guard range.count > 2 else { return nil }
            var text = ByteBuffer(capacity: 64)
            JSONText.unescape(
                bytes.rawSpan, range.lowerBound + 1..<range.upperBound - 1, into: &text)
            return String(decoding: text.array, as: UTF8.self)
        case 0x2D, 0x30...0x39: return String(decoding: raw, as: UTF8.self)
        default: return nil
        }
    }

    /// The value in a message, its beginning at most.
    var shown: String { ServiceRefusal.shown(text.map { Array($0.utf8)[...] } ?? raw) }

    /// The integer, written as a number or in a string.
    var integer: Int? { text.flatMap { Int($0) } }

    /// The object, if it is one: also one that is written into a string.
    var object: SourceObject? {
        guard raw.first == Ascii.quote else { return SourceObject(self) }
        return text.flatMap { SourceObject(SourceJSON(Array($0.utf8))) }
    }

    /// The elements of an array, or an object as the only one; nil for anything else.
    var elements: [Range<Int>]? {
        var ranges: [Range<Int>] = []
        do throws(JSONBody.Failure) {
            try JSONBody.split(bytes.rawSpan, range, into: &ranges)
        } catch { return nil }
        return ranges
    }
}

/// An object in the body of a source. Of equal names the last counts, and null is absent.
struct SourceObject: Sendable {
    private let bytes: [UInt8]
    private let members: [JSONBody.Member]

    init?(_ value: SourceJSON) {
        do throws(JSONBody.Failure) {
            members = try JSONBody.members(value.bytes.rawSpan, value.range)
        } catch { return nil }
        bytes = value.bytes
    }

    subscript(_ name: StaticString) -> SourceJSON? {
        guard let member = members.last(where: { has($0, name) }) else { return nil }
        let value = SourceJSON(bytes, member.value)
        return value.isNull ? nil : value
    }

    /// The first of the names that is there.
    func first(_ names: StaticString...) -> SourceJSON? {
        for name in names { if let value = self[name] { return value } }
        return nil
    }

    /// The members of other names, as an object.
    ///
    /// - Returns: Nil when there is none.
    func rest(without names: [StaticString]) -> SourceJSON? {
        written(members.filter { member in !names.contains { has(member, $0) } }) { $0.raw }
    }

    /// The members but for push tokens, also those of objects inside, as an object: whoever has a token can
    /// write to the device, so none is kept.
    ///
    /// A token is known by its name. Objects deeper than a line may nest are left as they are: the decoder
    /// rejects them.
    ///
    /// - Returns: Nil when there is none.
    func withoutTokens(depth: Int = 0) -> SourceJSON? {
        written(members.filter { !Self.isToken(name(of: $0)) }) { value in
            guard depth < JSONLimits.depthMax, let inner = SourceObject(value) else {
                return value.raw
            }
            return inner.withoutTokens(depth: depth + 1)?.raw ?? Array("{}".utf8)[...]
        }
    }

    /// Whether a member of this name is a push token: `token`, `push_token`, `deviceToken`, `registration_id`.
    private static func isToken(_ name: String) -> Bool {
        let letters = name.lowercased().filter(\.isLetter)
        return letters.hasSuffix("token") || letters.hasSuffix("registrationid")
    }

    private func written(
        _ members: [JSONBody.Member], _ value: (SourceJSON) -> ArraySlice<UInt8>
    ) -> SourceJSON? {
        var text: [UInt8] = []
        for member in members {
            text.append(text.isEmpty ? Ascii.leftBrace : Ascii.comma)
            // The quotes of the key, too.
            text += bytes[member.key.lowerBound - 1...member.key.upperBound]
            text.append(Ascii.colon)
            text += value(SourceJSON(bytes, member.value))
        }
        guard !text.isEmpty else { return nil }
        text.append(Ascii.rightBrace)
        return SourceJSON(text)
    }

    private func has(_ member: JSONBody.Member, _ name: StaticString) -> Bool {
        guard member.isKeyEscaped else { return bytes.rawSpan.extracting(member.key).is(name) }
        let key = unescaped(member.key)
        return key.rawSpan.is(name)
    }

    private func name(of member: JSONBody.Member) -> String {
        String(decoding: unescaped(member.key).array, as: UTF8.self)
    }

    private func unescaped(_ key: Range<Int>) -> ByteBuffer {
        var text = ByteBuffer(capacity: 64)
        JSONText.unescape(bytes.rawSpan, key, into: &text)
        return text
    }
}
