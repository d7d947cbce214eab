internal import Glibc
import JSONLines

/// Writes JSON so that two texts are equal in bytes exactly when PostgreSQL's jsonb calls them equal.
///
/// No white space; members in the order of the canonical bytes of their keys, of equal keys the last
/// alone; strings with as few escapes as JSON allows; a number is its digits without zeros at either
/// end and an exponent of ten, if that is not 0, so that 1, 1.0 and 10e-1 are one, and -0 is 0.
package struct CanonicalJSON: ~Copyable {
    /// A member in the output: `start..<keyEnd` is its key, `start..<end` all of it.
    private struct Member {
        var start, keyEnd, end: Int
        /// The first eight bytes of the key, which tell most keys apart.
        var prefix: UInt64 = 0

        mutating func move(by offset: Int) {
            start += offset
            keyEnd += offset
            end += offset
        }
    }

    private var members: [Member] = []
    private var plain = PlainMembers()
    private var body = ByteBuffer()

    package init() {}

    /// Appends the canonical form of one value.
    ///
    /// - Parameters:
    ///   - bytes: A text that a scan found valid; others trap or come out as nonsense.
    ///   - range: Where the value is; white space around it is passed over.
    package mutating func append(
        _ bytes: RawSpan, _ range: Range<Int>, to output: inout ByteBuffer
    ) {
        members.removeAll(keepingCapacity: true)
        var index = range.lowerBound
        value(bytes, &index, &output)
    }

    /// Appends an object whose members were read before.
    func append(_ bytes: RawSpan, _ plain: borrowing PlainMembers, to output: inout ByteBuffer) {
        output.append(Ascii.leftBrace)
        for index in 0..<plain.count {
            if index > 0 { output.append(Ascii.comma) }
            let entry = plain[index]
            output.append(bytes, entry.range)
            if entry.endsWithNumber {
                var end = entry.range.upperBound
                CanonicalNumber.append(bytes, &end, to: &output)
            }
        }
        output.append(Ascii.rightBrace)
    }

    // Recursion is bounded by the depth that a scan lets pass.
    private mutating func value(_ bytes: RawSpan, _ index: inout Int, _ output: inout ByteBuffer) {
        Self.skipSpace(bytes, &index)
        switch bytes.byte(at: index) {
        case Ascii.quote: string(bytes, &index, &output)
        case Ascii.leftBrace: object(bytes, &index, &output)
        case Ascii.leftBracket: array(bytes, &index, &output)
        case 0x74: Self.copy(4, bytes, &index, &output)
        case 0x66: Self.copy(5, bytes, &index, &output)
        case 0x6E: Self.copy(4, bytes, &index, &output)
        default: CanonicalNumber.append(bytes, &index, to: &output)
        }
    }

    private static func copy(
        _ count: Int, _ bytes: RawSpan, _ index: inout Int, _ output: inout ByteBuffer
    ) {
        output.append(bytes, index..<index + count)
        index += count
    }

    private static func skipSpace(_ bytes: RawSpan, _ index: inout Int) {
        while Ascii.isSpace(bytes.byte(at: index)) { index &+= 1 }
    }

    private mutating func array(_ bytes: RawSpan, _ index: inout Int, _ output: inout ByteBuffer) {
        output.append(Ascii.leftBracket)
        index += 1
        Self.skipSpace(bytes, &index)
        while bytes.byte(at: index) != Ascii.rightBracket {
            value(bytes, &index, &output)
            Self.skipSpace(bytes, &index)
            if bytes.byte(at: index) == Ascii.comma {
                output.append(Ascii.comma)
                index += 1
            }
        }
        output.append(Ascii.rightBracket)
        index += 1
    }

    private mutating func object(_ bytes: RawSpan, _ index: inout Int, _ output: inout ByteBuffer) {
        if let end = plain.read(bytes, at: index) {
            append(bytes, plain, to: &output)
            index = end
            return
        }
        output.append(Ascii.leftBrace)
        let first = members.count
        let start = output.count
        var isSorted = true
        index += 1
        Self.skipSpace(bytes, &index)
        while bytes.byte(at: index) != Ascii.rightBrace {
            if members.count > first { output.append(Ascii.comma) }
            var member = Member(start: output.count, keyEnd: 0, end: 0)
            if let plain = PlainMember(bytes, at: index) {
                output.append(bytes, index..<plain.copiedEnd)
                member.keyEnd = member.start + plain.keyEnd - index
                index = plain.copiedEnd
                if index < plain.end { CanonicalNumber.append(bytes, &index, to: &output) }
            } else {
                string(bytes, &index, &output)
                member.keyEnd = output.count
                Self.skipSpace(bytes, &index)
                index += 1  // The colon.
                output.append(Ascii.colon)
                value(bytes, &index, &output)
            }
            member.end = output.count
            member.prefix = PlainMember.prefix(output.rawSpan, member.start, member.keyEnd)
            if members.count > first, isSorted {
                isSorted = Self.order(members[members.count - 1], member, in: output.rawSpan) < 0
            }
            members.append(member)
            Self.skipSpace(bytes, &index)
            if bytes.byte(at: index) == Ascii.comma {
                index += 1
                Self.skipSpace(bytes, &index)
            }
        }
        index += 1
        if !isSorted { sort(from: first, start: start, &output) }
        members.removeLast(members.count - first)
        output.append(Ascii.rightBrace)
    }

    /// Writes the members from `first` on, whose text begins at `start`, again in order.
    private mutating func sort(from first: Int, start: Int, _ output: inout ByteBuffer) {
        body.truncate(to: 0)
        body.append(output.rawSpan, start..<output.count)
        output.truncate(to: start)
        for index in first..<members.count { members[index].move(by: -start) }
        Self.sort(&members, from: first, by: body)
        for index in first..<members.count {
            let member = members[index]
            if index + 1 < members.count,
                Self.order(member, members[index + 1], in: body.rawSpan) == 0
            {
                continue
            }
            if output.count > start { output.append(Ascii.comma) }
            output.append(body.rawSpan, member.start..<member.end)
        }
    }

    private static func sort(
        _ members: inout [Member], from first: Int, by body: borrowing ByteBuffer
    ) {
        let text = body.rawSpan
        unsafe members.withUnsafeMutableBufferPointer { all in
            guard all.count - first <= sortedByInsertionMax else {
                unsafe all[first...].sort { left, right in
                    let order = order(left, right, in: text)
                    return order != 0 ? order < 0 : left.start < right.start
                }
                return
            }
            for index in first + 1..<all.count {
                let member = unsafe all[index]
                var hole = index
                while hole > first, unsafe order(all[hole - 1], member, in: text) > 0 {
                    unsafe all[hole] = unsafe all[hole - 1]
                    hole -= 1
                }
                unsafe all[hole] = member
            }
        }
    }

    /// Up to so many members insertion is the faster sort.
    private static let sortedByInsertionMax = 16

    /// Less than, equal to or greater than 0 as the keys' bytes are.
    private static func order(_ left: Member, _ right: Member, in text: RawSpan) -> Int {
        if left.prefix != right.prefix { return left.prefix < right.prefix ? -1 : 1 }
        let leftCount = left.keyEnd - left.start
        let rightCount = right.keyEnd - right.start
        precondition(max(left.keyEnd, right.keyEnd) <= text.byteCount)
        let order = unsafe text.withUnsafeBytes { buffer in
            // SAFETY: both keys are within `text` by the precondition.
            unsafe Int(
                memcmp(
                    buffer.baseAddress! + left.start, buffer.baseAddress! + right.start,
                    min(leftCount, rightCount)))
        }
        return order != 0 ? order : leftCount - rightCount
    }

    private func string(_ bytes: RawSpan, _ index: inout Int, _ output: inout ByteBuffer) {
        let string = JSONText.endOfString(in: bytes, at: index)
        if string.hasEscape {
            output.append(Ascii.quote)
            let start = output.count
            JSONText.unescape(bytes, index + 1..<string.end - 1, into: &output)
            JSONText.escape(from: start, in: &output)
            output.append(Ascii.quote)
        } else {
            output.append(bytes, index..<string.end)
        }
        index = string.end
    }
}

/// The canonical form of numbers.
enum CanonicalNumber {
    /// Appends the number at `index` and passes over it.
    static func append(_ bytes: RawSpan, _ index: inout Int, to output: inout ByteBuffer) {
        let sign = output.count
        if bytes.byte(at: index) == 0x2D {
            output.append(0x2D)
            index += 1
        }
        let start = output.count
        var exponent = 0
        var isFraction = false
        scan: while index < bytes.byteCount {
            let byte = bytes.byte(at: index)
            switch byte {
            case 0x30...0x39:
                if isFraction { exponent -= 1 }
                if byte != 0x30 || output.count > start { output.append(byte) }
            case 0x2E: isFraction = true
            case 0x45, 0x65:
                index += 1
                exponent += readExponent(bytes, &index)
                break scan
            default: break scan
            }
            index += 1
        }
        while output.count > start, output[output.count - 1] == 0x30 {
            output.truncate(to: output.count - 1)
            exponent += 1
        }
        if output.count == start {
            output.truncate(to: sign)
            output.append(0x30)
        } else if exponent != 0 {
            output.append(0x65)
            appendDecimal(exponent, to: &output)
        }
    }

    private static func readExponent(_ bytes: RawSpan, _ index: inout Int) -> Int {
        var isNegative = false
        var value = 0
        while index < bytes.byteCount {
            let byte = bytes.byte(at: index)
            if Ascii.isDigit(byte) {
                value = min(value &* 10 &+ Int(byte &- 0x30), 1_000_000)
            } else if byte == 0x2D {
                isNegative = true
            } else if byte != 0x2B {
                break
            }
            index += 1
        }
        return isNegative ? -value : value
    }
}

/// Appends `value` in decimal digits.
func appendDecimal(_ value: Int, to output: inout ByteBuffer) {
    if value < 0 { output.append(0x2D) }
    let start = output.count
    var rest = value.magnitude
    repeat {
        output.append(0x30 + UInt8(rest % 10))
        rest /= 10
    } while rest > 0
    var (left, right) = (start, output.count - 1)
    while left < right {
        (output[left], output[right]) = (output[right], output[left])
        left += 1
        right -= 1
    }
}
