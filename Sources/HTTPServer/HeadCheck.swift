/// What the headers say about the body of a request, or why they are refused.
///
/// A head that two servers could read differently is how one client's request is smuggled into
/// another's (RFC 9112 §6.3, §11.2), so each such shape is refused rather than interpreted.
package struct HeadCheck: Equatable {
    /// The length that the client announced; nil when there is no body or it is chunked.
    package var contentLength: Int?
    /// Whether the body is chunked.
    package var isChunked = false
    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue = false
    /// The headers that say where a body ends.
    private static let framing: [StaticString] = ["Content-Length", "Transfer-Encoding"]
    /// Whether bytes of a body follow the head.
    var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }

    /// Reads the headers that frame a body.
    ///
    /// - Parameters:
    ///   - fields: All headers of the request.
    ///   - isVersion11: Whether the request is HTTP/1.1; 1.0 knows no chunks.
    /// - Throws: ``Malformed``.
    package init(_ fields: HeaderFields, isVersion11: Bool) throws(Malformed) {
        var hosts = 0
        var lengths = 0
        var encodings = 0
        var encoding: ArraySlice<UInt8> = []
        for (name, value) in fields.all {
            guard !name.isEmpty, name.allSatisfy(isTokenByte) else {
                throw Malformed(reason: "a header name is not a token")
            }
            guard !value.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) else {
                throw Malformed(reason: "a header value holds a control character")
            }
            switch name.count {
            case 4 where equalsIgnoringCase(name, "Host"): hosts += 1
            case 14 where equalsIgnoringCase(name, "Content-Length"): lengths += 1
            case 17 where equalsIgnoringCase(name, "Transfer-Encoding"):
                encodings += 1
                encoding = value
            default:
                // Of a folded header libmicrohttpd (0.9.75) appends the second line to the name:
                // "Transfer-Encoding:", " chunked" is "Transfer-Encodingchunked" to it, and the body
                // would be read as requests.
                guard !Self.framing.contains(where: { begins(name, $0) }) else {
                    throw Malformed(reason: "a folded header that frames the body")
                }
            }
        }
        if hosts > 1 { throw Malformed(reason: "more than one Host") }
        if hosts == 0, isVersion11 { throw Malformed(reason: "no Host") }
        if lengths > 1 { throw Malformed(reason: "more than one Content-Length") }
        if encodings > 1 { throw Malformed(reason: "more than one Transfer-Encoding") }
        if lengths == 1, encodings == 1 {
            throw Malformed(reason: "Content-Length together with Transfer-Encoding")
        }
        if encodings == 1 {
            guard equalsIgnoringCase(encoding, "chunked") else {
                throw Malformed(reason: "a Transfer-Encoding other than chunked")
            }
            guard isVersion11 else { throw Malformed(reason: "Transfer-Encoding in HTTP/1.0") }
            isChunked = true
        }
        if lengths == 1 {
            guard let value = fields.first("Content-Length"), let length = decimal(value) else {
                throw Malformed(reason: "Content-Length is not a number")
            }
            contentLength = length
        }
        if let value = fields.first("Expect") {
            expectsContinue = equalsIgnoringCase(value, "100-continue")
        }
    }

    /// Why a head is refused.
    package struct Malformed: Error, Equatable {
        /// What is wrong, for a line of text.
        package var reason: String
    }
}

/// The value of a string of digits, nil for anything else and for what does not fit.
private func decimal(_ digits: ArraySlice<UInt8>) -> Int? {
    guard !digits.isEmpty, digits.count <= 18 else { return nil }
    var value = 0
    for digit in digits {
        guard (0x30...0x39).contains(digit) else { return nil }
        value = value * 10 + Int(digit - 0x30)
    }
    return value
}

/// Whether a header name begins with `prefix`, in any case.
private func begins(_ name: ArraySlice<UInt8>, _ prefix: StaticString) -> Bool {
    equalsIgnoringCase(name.prefix(prefix.utf8CodeUnitCount), prefix)
}

/// Whether a byte may be part of a header name (RFC 9110 §5.6.2).
private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
}
