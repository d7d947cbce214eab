import Event
import Platform

/// The token that a registration call issues: a device of an app, signed.
///
/// `tld1.APP.DEVICE.SECONDS.MAC`: app and device id in hexadecimal, when it was issued (seconds since
/// 1970 UTC), and the first 16 bytes of the HMAC-SHA-256 (RFC 2104) of all before the last dot, in
/// hexadecimal. Nobody keeps it: whoever has the secret of the database can check it.
package struct DeviceToken: Equatable, Sendable {
    private static let prefix = Array("tld1.".utf8)
    private static let macBytes = 16

    package let app: [UInt8]
    package let device: String

    /// Makes a token.
    ///
    /// - Parameter issuedAt: Microseconds since 1970 UTC.
    package static func make(
        app: [UInt8], device: String, secret: [UInt8], issuedAt: Int64
    ) -> String {
        let text =
            "tld1.\(Hex.encode(app)).\(Hex.encode(device.utf8)).\(issuedAt / 1_000_000)"
        return text + "." + mac(text, secret)
    }

    /// Whether a key is one of these, good or bad.
    package static func isToken(_ key: [UInt8]) -> Bool { key.starts(with: prefix) }

    /// Reads a token; nil unless it was made with this secret.
    package init?(_ key: [UInt8], secret: [UInt8]) {
        let parts = String(decoding: key, as: UTF8.self)
            .split(separator: ".", omittingEmptySubsequences: false)
        guard Self.isToken(key), parts.count == 5, let app = Hex.decode(parts[1]),
            let device = Hex.decode(parts[2])
        else { return nil }
        let expected = Self.mac(parts[0..<4].joined(separator: "."), secret)
        // Every byte is looked at, so that the time does not tell how many were right.
        guard expected.utf8.count == parts[4].utf8.count,
            zip(expected.utf8, parts[4].utf8).reduce(0, { $0 | ($1.0 ^ $1.1) }) == 0
        else { return nil }
        self.app = app
        self.device = String(decoding: device, as: UTF8.self)
    }

    private static func mac(_ text: String, _ secret: [UInt8]) -> String {
        // The secret is shorter than a block of 64 bytes.
        let key = secret + [UInt8](repeating: 0, count: 64 - secret.count)
        let inner = sha256(key.map { $0 ^ 0x36 } + Array(text.utf8))
        return Hex.encode(sha256(key.map { $0 ^ 0x5C } + inner).prefix(macBytes))
    }
}
