/// The target of a request line, split but not decoded.
package struct RequestTarget: Sendable {
    /// The path as sent. Compare it with whole known paths: nothing in it is decoded, so `%2F` is
    /// not a slash and `%00` is not the end.
    package let path: String
    /// What follows the first `?`, as sent.
    package let query: String

    /// Splits a target.
    ///
    /// - Parameter target: As it was sent; of an absolute one (`http://host/path`), which a server has to
    ///   take (RFC 9112 §3.2.2), only what follows the host.
    package init(_ target: String) {
        var target = target[...]
        for scheme in ["http://", "https://"] where target.hasPrefix(scheme) {
            let rest = target.dropFirst(scheme.count)
            target = rest.firstIndex { $0 == "/" || $0 == "?" }.map { rest[$0...] } ?? "/"
        }
        if let mark = target.utf8.firstIndex(of: 0x3F) {
            path = String(target[..<mark])
            query = String(target[target.utf8.index(after: mark)...])
        } else {
            path = String(target)
            query = ""
        }
    }

    /// The items of the query in order, decoded: `+` is a space, `%XX` a byte, and what is not
    /// UTF-8 then becomes U+FFFD.
    package var queryItems: [(name: String, value: String)] {
        query.utf8.split(separator: 0x26).map { item in
            guard let equals = item.firstIndex(of: 0x3D) else { return (Self.decode(item), "") }
            return (
                Self.decode(item[..<equals]), Self.decode(item[item.index(after: equals)...])
            )
        }
    }

    /// The decoded value of the first query item of that name; nil when there is none.
    package func queryItem(_ name: String) -> String? {
        if query.isEmpty { return nil }
        return queryItems.first { $0.name == name }?.value
    }

    /// A part of the path, decoded: `%XX` is a byte, and `+` is itself.
    ///
    /// - Returns: Nil for what is not UTF-8 then.
    package static func decodedPath(_ part: Substring) -> String? {
        let bytes = bytes(part.utf8, plus: 0x2B)
        return String(validating: bytes, as: UTF8.self)
    }

    private static func decode(_ text: Substring.UTF8View) -> String {
        String(decoding: bytes(text, plus: 0x20), as: UTF8.self)
    }

    private static func bytes(_ text: Substring.UTF8View, plus: UInt8) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 0x2B: bytes.append(plus)
            case 0x25:
                let digits = rest.prefix(2)
                if digits.count == 2, let high = hexDigit(digits.first!),
                    let low = hexDigit(digits.last!)
                {
                    bytes.append(high << 4 | low)
                    rest = rest.dropFirst(2)
                } else {
                    bytes.append(byte)
                }
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
