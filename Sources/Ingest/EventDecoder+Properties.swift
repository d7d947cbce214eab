import Event
import JSONLines

extension EventDecoder {
    /// Above this product of both counts every extra gets the prefix, for comparing would take long.
    private static let comparisonsMax = 4096

    /// The properties as they are stored: the object sent, then the members that have no other place.
    ///
    /// An extra whose name is in the object too gets the name `top.NAME`. What jsonb refuses is replaced.
    mutating func mergedProperties(_ object: JSONMember?, _ line: RawSpan) -> TextRange {
        let start = scratch.count
        scratch.append(Ascii.leftBrace)
        inner.removeAll()
        if let object {
            if !extras.isEmpty {
                let failure = JSONObject.scan(line, object.value, into: &inner)
                precondition(failure == nil, "an object that was valid a moment ago")
            }
            // Without its braces.
            let text = object.value.lowerBound + 1..<object.value.upperBound - 1
            append(text, line, isRefused: object.isValueRefused)
        }
        // White space is all that an object without members has; a text without any is empty then too.
        var isFirst = object.map { isEmpty($0, line) } ?? true
        let compares = extras.count * inner.count <= Self.comparisonsMax
        for index in 0..<extras.count {
            let member = members[Int(extras[index])]
            if !isFirst { scratch.append(Ascii.comma) }
            isFirst = false
            scratch.append(Ascii.quote)
            if !inner.isEmpty, !compares || innerHas(member, line) {
                scratch.append("top." as StaticString)
            }
            append(member.key, line, isRefused: member.isKeyRefused)
            scratch.append(Ascii.quote)
            scratch.append(Ascii.colon)
            append(member.value, line, isRefused: member.isValueRefused)
        }
        scratch.append(Ascii.rightBrace)
        return .scratch(start..<scratch.count)
    }

    private func isEmpty(_ object: JSONMember, _ line: RawSpan) -> Bool {
        var index = object.value.lowerBound + 1
        while Ascii.isSpace(line.byte(at: index)) { index += 1 }
        return line.byte(at: index) == Ascii.rightBrace
    }

    private mutating func append(_ range: Range<Int>, _ line: RawSpan, isRefused: Bool) {
        if isRefused {
            isSanitized = true
            JSONText.sanitize(line, range, into: &scratch)
        } else {
            scratch.append(line, range)
        }
    }

    /// Whether the properties have a member of the same name.
    private func innerHas(_ member: JSONMember, _ line: RawSpan) -> Bool {
        for index in 0..<inner.count {
            let other = inner[index]
            if member.isKeyEscaped || other.isKeyEscaped {
                // Rare, so two small buffers do no harm.
                var name = ByteBuffer()
                var otherName = ByteBuffer()
                JSONText.unescape(line, member.key, into: &name)
                JSONText.unescape(line, other.key, into: &otherName)
                if name.rawSpan.isEqual(to: otherName.rawSpan) { return true }
            } else if line.extracting(member.key).isEqual(to: line.extracting(other.key)) {
                return true
            }
        }
        return false
    }
}
