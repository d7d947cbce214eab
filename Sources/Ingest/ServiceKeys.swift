import HTTPServer

/// What a key may do.
package enum KeyRole: String, Sendable, CaseIterable {
    case ingest
    case read
    case admin
}

/// What is known about a key.
package enum KeyVerdict: Equatable, Sendable {
    /// It belongs to an app, by its UTF-8 bytes, and is good for one kind of work.
    case known(app: [UInt8], role: KeyRole)
    /// It was issued to a device of an app, and is good for what that device calls.
    case device(app: [UInt8], device: String)
    /// It was good and is no more.
    case revoked
    /// There is no such key.
    case unknown
    /// The cache does not tell; ask.
    case ask
    /// It could not be looked up now. An answer of ``KeyStore/ask(_:_:)`` only.
    case unavailable
}

/// What is known about a vendor's id of an app.
package enum AliasVerdict: Equatable, Sendable {
    /// It stands for an app, by its UTF-8 bytes; open when it does in place of a key, too.
    case known(app: [UInt8], isOpen: Bool)
    /// It is no alias.
    case unknown
    /// It is not known here, and could not be looked up lately.
    case unavailable
}

/// Knows the keys.
package protocol KeyStore: AnyObject, Sendable {
    /// What the cache knows. Called on the HTTP thread and must not block.
    func lookup(_ key: [UInt8]) -> KeyVerdict

    /// Looks a key up where it is made.
    ///
    /// - Parameter completion: Runs once, on any thread, never with ``KeyVerdict/ask``.
    func ask(_ key: [UInt8], _ completion: @escaping @Sendable (KeyVerdict) -> Void)

    /// What a vendor's id of an app stands for. Must not block.
    func lookup(alias: String) -> AliasVerdict

    /// Makes a token for the calls of a device; nil while its secret is not known here. Must not block.
    func issueToken(app: [UInt8], device: String) -> String?

    /// The categories of interactive notifications of an app, as Pushwoosh writes them: a JSON array.
    /// Must not block.
    func categories(app: [UInt8]) -> String
}

extension KeyStore {
    package func lookup(alias: String) -> AliasVerdict { .unknown }
    package func issueToken(app: [UInt8], device: String) -> String? { nil }
    package func categories(app: [UInt8]) -> String { "[]" }
}

/// Reads the key out of a request.
package enum ServiceKeys {
    /// More than any key that was ever made, and than the token of an app and device of 128 bytes each.
    static let keyBytesMax = 640

    /// The schemes of `Authorization` that are followed by a key; the later ones are of sources.
    private static let schemes: [StaticString] = ["Bearer", "Token", "MobileAppToken"]

    /// The key of the header `Authorization`: `Bearer KEY`, or Basic with the key as user; of sources
    /// also `Token KEY`, `MobileAppToken KEY`, and the header `X_KEY` in its place.
    ///
    /// - Returns: Nil when there is none that could be read.
    package static func key(in headers: HeaderFields) -> [UInt8]? {
        let key = authorization(headers) ?? sourceKey(headers)
        guard let key, !key.isEmpty, key.count <= keyBytesMax else { return nil }
        return key
    }

    /// Whether a key is there, good or bad.
    static func hasKey(_ headers: HeaderFields) -> Bool {
        headers.count(of: "Authorization") > 0 || headers.count(of: "X_KEY") > 0
    }

    private static func sourceKey(_ headers: HeaderFields) -> [UInt8]? {
        guard headers.count(of: "Authorization") == 0, headers.count(of: "X_KEY") == 1 else {
            return nil
        }
        return headers.first("X_KEY").map { Array($0) }
    }

    private static func authorization(_ headers: HeaderFields) -> [UInt8]? {
        guard headers.count(of: "Authorization") == 1, let value = headers.first("Authorization"),
            let space = value.firstIndex(of: 0x20)
        else { return nil }
        let scheme = value[..<space]
        let rest = value[space...].drop { $0 == 0x20 }
        if schemes.contains(where: { equalsIgnoringCase(scheme, $0) }) { return Array(rest) }
        guard equalsIgnoringCase(scheme, "Basic"), let pair = decodeBase64(rest),
            let colon = pair.firstIndex(of: 0x3A)
        else { return nil }
        let user = Array(pair[..<colon])
        // Some clients can only set a password.
        return user.isEmpty ? Array(pair[pair.index(after: colon)...]) : user
    }

    /// Base64 of RFC 4648 §4, with or without its padding.
    static func decodeBase64(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var text = text
        while text.last == 0x3D { text.removeLast() }
        guard text.count % 4 != 1, text.count <= 2 * keyBytesMax else { return nil }
        var bytes: [UInt8] = []
        var bits = 0
        var bitCount = 0
        for character in text {
            let value: UInt8
            switch character {
            case 0x41...0x5A: value = character - 0x41
            case 0x61...0x7A: value = character - 0x61 + 26
            case 0x30...0x39: value = character - 0x30 + 52
            case 0x2B: value = 62
            case 0x2F: value = 63
            default: return nil
            }
            bits = (bits << 6 | Int(value)) & 0xFFFF
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
            }
        }
        return bytes
    }
}
