/// A text as part of a URL: everything but unreserved characters (RFC 3986 §2.3) as `%XX`.
package func percentEncoded(_ text: String) -> String {
    text.utf8.reduce(into: "") { result, byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
            result.unicodeScalars.append(UnicodeScalar(byte))
        default:
            let digits = String(byte, radix: 16, uppercase: true)
            result += digits.count < 2 ? "%0" + digits : "%" + digits
        }
    }
}
