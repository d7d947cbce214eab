import Foundation
import Glibc

/// An answer of the daemon.
struct Answer {
    let status: Int
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    func header(_ name: String) -> String? {
        headers.first { $0.name == name.lowercased() }?.value
    }

    var text: String { String(decoding: body, as: UTF8.self) }
    var json: JSON { get throws { try JSON(parsing: body) } }
}

/// One connection to the daemon, byte by byte under the test's control.
final class Connection {
    private let socket: Int32
    private var buffer: [UInt8] = []
    private var events = ""

    /// - Parameter source: The last byte of the address in 127.0.0.0/8 that it comes from.
    init(port: Int, timeoutSeconds: Int = 30, source: UInt8 = 1) throws {
        socket = Glibc.socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        // Before connecting, which they bound, too.
        var timeout = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        var on: Int32 = 1
        let size = socklen_t(MemoryLayout<timeval>.size)
        unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, size)
        unsafe setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, size)
        unsafe setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
        if source != 1 {
            // Else it would be chosen here, and be free of all connections that have ended in the last minute.
            unsafe setsockopt(socket, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &on, 4)
            var own = sockaddr_in()
            own.sin_family = sa_family_t(AF_INET)
            own.sin_addr.s_addr = (UInt32(0x7F00_0000) + UInt32(source)).bigEndian
            // SAFETY: as below.
            let code = unsafe withUnsafePointer(to: &own) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe Glibc.bind(socket, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard code == 0 else { throw Failure("could not bind to 127.0.0.\(source): \(errno)") }
        }
        // SAFETY: a sockaddr_in is a sockaddr, and its own size is given.
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe Glibc.connect(socket, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            // `deinit` closes the socket; twice would close another's that has its number by then.
            throw Failure("could not connect to port \(port): errno \(errno)")
        }
    }

    deinit { close(socket) }

    func send(_ bytes: some Collection<UInt8>) throws {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { raw in
                unsafe Glibc.send(
                    socket, raw.baseAddress! + sent, raw.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure("could not send: errno \(errno)") }
            sent += count
        }
    }

    func send(_ text: String) throws { try send(text.utf8) }

    /// Sends a piece over and over, whatever is answered, as long as the daemon takes it.
    ///
    /// - Returns: How often all of it was taken.
    func sendOver(_ piece: [UInt8], times: Int) -> Int {
        for count in 0..<times where (try? send(piece)) == nil { return count }
        return times
    }

    /// Says that nothing more will be sent.
    func endSending() { shutdown(socket, Int32(SHUT_WR)) }

    /// Everything that comes until the daemon closes the connection.
    func rest() throws -> String {
        let deadline = Date().addingTimeInterval(120)
        while try fill() {
            guard Date() < deadline else { throw Failure("not at its end after 120 s") }
        }
        defer { buffer = [] }
        return String(decoding: buffer, as: UTF8.self)
    }

    /// Whether the daemon has closed the connection and nothing is left to be read.
    func isAtEnd() throws -> Bool { try buffer.isEmpty && !fill() }

    /// Reads the next answer.
    ///
    /// - Parameter takesContinue: Whether a `100 Continue` is an answer too.
    func answer(takesContinue: Bool = false, hasBody: Bool = true) throws -> Answer {
        var head = try line().split(separator: " ", maxSplits: 2)
        guard head.count >= 2, head[0].hasPrefix("HTTP/1."), let status = Int(head[1]) else {
            throw Failure("not HTTP: \(head)")
        }
        head.removeAll()
        var headers: [(name: String, value: String)] = []
        while case let text = try line(), !text.isEmpty {
            guard let colon = text.firstIndex(of: ":") else { throw Failure("header \(text)") }
            let value = text[text.index(after: colon)...]
            headers.append(
                (text[..<colon].lowercased(), value.trimmingCharacters(in: .whitespaces)))
        }
        if status < 200 {
            let empty = Answer(status: status, headers: headers, body: [])
            return takesContinue ? empty : try answer(hasBody: hasBody)
        }
        func value(_ name: String) -> String? { headers.first { $0.name == name }?.value }
        var body: [UInt8] = []
        if !hasBody || status == 204 || status == 304 {
        } else if value("transfer-encoding")?.lowercased() == "chunked" {
            while case let size = Int(try line(), radix: 16) ?? 0, size > 0 {
                body += try take(size)
                _ = try line()
            }
            while try !line().isEmpty {}
        } else if let length = value("content-length").flatMap({ Int($0) }) {
            body = try take(length)
        } else {
            while try fill() {}
            body = buffer
            buffer = []
        }
        return Answer(status: status, headers: headers, body: body)
    }

    /// Reads server-sent events of a chunked answer until one is as wanted.
    func event(_ name: String, where isWanted: (JSON) -> Bool = { _ in true }) throws -> JSON {
        let deadline = Date().addingTimeInterval(60)
        while true {
            guard Date() < deadline else {
                throw Failure("no such \(name) in 60 s", isFinal: true)
            }
            let (found, json) = try anyEvent()
            if found == name, isWanted(json) { return json }
        }
    }

    /// Reads the next server-sent event.
    func anyEvent() throws -> (name: String, data: JSON) {
        while true {
            while let end = events.firstRange(of: "\n\n") {
                let event = events[..<end.lowerBound]
                events.removeSubrange(..<end.upperBound)
                let lines = event.split(separator: "\n")
                guard lines.count == 2, lines[0].hasPrefix("event: ") else { continue }
                return (
                    String(lines[0].dropFirst("event: ".count)),
                    try JSON(parsing: lines[1].dropFirst("data: ".count).utf8)
                )
            }
            guard let size = Int(try line(), radix: 16) else { throw Failure("not a chunk") }
            guard size > 0 else { throw Failure("the stream has ended", isFinal: true) }
            events += String(decoding: try take(size), as: UTF8.self)
            _ = try line()
        }
    }

    private func line() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                let line = buffer[..<end]
                let text = String(
                    decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
                buffer.removeSubrange(...end)
                return text
            }
            guard try fill() else { throw Failure("connection closed before the answer") }
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count {
            guard try fill() else { throw Failure("connection closed inside the answer") }
        }
        let bytes = Array(buffer[..<count])
        buffer.removeSubrange(..<count)
        return bytes
    }

    /// Reads more; false at the end.
    private func fill() throws -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65536)
        let count = unsafe recv(socket, &chunk, chunk.count, 0)
        if count < 0 {
            if errno == ECONNRESET { return false }
            throw Failure("could not receive: errno \(errno)")
        }
        buffer += chunk[..<count]
        return count > 0
    }
}

/// A request to build and send.
struct Request {
    var method = "POST"
    var target = "/v1/events"
    var key: String?
    var headers: [(String, String)] = []
    var body: [UInt8] = []
    /// Sends the body in chunks of this size instead of with its length.
    var chunkBytes: Int?

    /// An NDJSON body.
    static func events(_ text: String, key: String?, query: String = "") -> Request {
        events(Array(text.utf8), key: key, query: query)
    }

    static func events(_ body: [UInt8], key: String?, query: String = "") -> Request {
        Request(
            target: "/v1/events" + query, key: key,
            headers: [("Content-Type", "application/x-ndjson")], body: body)
    }

    static func get(_ target: String, key: String? = nil) -> Request {
        Request(method: "GET", target: target, key: key)
    }

    /// The same body, gzipped.
    var gzipped: Request {
        var copy = self
        copy.headers.append(("Content-Encoding", "gzip"))
        copy.body = gzip(body)
        return copy
    }

    func with(_ name: String, _ value: String) -> Request {
        var copy = self
        copy.headers.removeAll { $0.0.lowercased() == name.lowercased() }
        copy.headers.append((name, value))
        return copy
    }

    var head: String {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: localhost"]
        if let key { lines.append("Authorization: Bearer \(key)") }
        lines += headers.map { "\($0.0): \($0.1)" }
        if chunkBytes != nil {
            lines.append("Transfer-Encoding: chunked")
        } else if method != "GET" && method != "HEAD" {
            lines.append("Content-Length: \(body.count)")
        }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    var bytes: [UInt8] {
        guard let chunkBytes else { return head.utf8 + body }
        var result = Array(head.utf8)
        var start = 0
        while start < body.count {
            let chunk = body[start..<min(start + chunkBytes, body.count)]
            result += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
            start += chunkBytes
        }
        return result + Array("0\r\n\r\n".utf8)
    }
}
