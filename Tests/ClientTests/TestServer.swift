import Client
import Foundation
import Glibc

/// One request as the server saw it.
struct SeenRequest: Sendable {
    let number: Int
    let target: String
    let headers: [String: String]
    /// Inflated.
    let body: [UInt8]
    let at: TimeInterval

    var lines: [String] {
        String(decoding: body, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

/// An answer of the server.
struct ScriptedAnswer {
    var status = 200
    var headers: [String] = []
    var json: String

    static func taken(_ received: Int, rejected: Int = 0, errors: String = "") -> ScriptedAnswer {
        ScriptedAnswer(
            json: """
                {"received":\(received),"accepted":\(received - rejected),\
                "rejected":\(rejected),"errors":[\(errors)]}
                """)
    }
}

/// A small HTTP/1.1 server on raw sockets whose answers a test decides.
@safe
final class TestServer: @unchecked Sendable {
    let port: UInt16
    private let listener: Int32
    private let lock = NSLock()
    private var requests: [SeenRequest] = []
    private let answer: @Sendable (SeenRequest) -> ScriptedAnswer

    /// Listens on a port of 127.0.0.1, 0 for any.
    init(port: UInt16 = 0, answer: @escaping @Sendable (SeenRequest) -> ScriptedAnswer) throws {
        self.answer = answer
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var on: Int32 = 1
        unsafe setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, 4)
        var address = TestServer.loopback(port)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                unsafe bind(listener, raw, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, raw, &length) == 0
            }
        }
        guard bound else { throw POSIXError(.EADDRINUSE) }
        self.port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else {
                    // Closed here only: elsewhere the number could come to mean another listener.
                    close(listener)
                    return
                }
                Thread.detachNewThread { [self] in serve(connection) }
            }
        }
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// What came so far.
    var seen: [SeenRequest] { lock.withLock { requests } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private func serve(_ connection: Int32) {
        var buffer: [UInt8] = []
        defer { close(connection) }
        while let request = readRequest(connection, &buffer) {
            let answer = answer(request)
            let head =
                "HTTP/1.1 \(answer.status) Scripted\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(answer.json.utf8.count)\r\n"
                + answer.headers.map { $0 + "\r\n" }.joined() + "\r\n"
            let bytes = Array((head + answer.json).utf8)
            if unsafe send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) < 0 {
                return
            }
        }
    }

    private func readRequest(_ connection: Int32, _ buffer: inout [UInt8]) -> SeenRequest? {
        let separator = Array("\r\n\r\n".utf8)
        var end = buffer.firstRange(of: separator)
        while end == nil {
            guard fill(connection, &buffer) else { return nil }
            end = buffer.firstRange(of: separator)
        }
        guard let end else { return nil }
        let head = String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
            .components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in head.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        buffer.removeSubrange(..<end.upperBound)
        let length = Int(headers["content-length"] ?? "") ?? 0
        while buffer.count < length {
            guard fill(connection, &buffer) else { return nil }
        }
        let sent = Array(buffer[..<length])
        buffer.removeSubrange(..<length)
        var body = sent
        if headers["content-encoding"] == "gzip", var reader = GzipReader() {
            body = []
            _ = reader.inflate(sent, into: &body)
        }
        return lock.withLock {
            let request = SeenRequest(
                number: requests.count + 1, target: head[0], headers: headers, body: body,
                at: ProcessInfo.processInfo.systemUptime)
            requests.append(request)
            return request
        }
    }

    private func fill(_ connection: Int32, _ buffer: inout [UInt8]) -> Bool {
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        let count = unsafe recv(connection, &piece, piece.count, 0)
        guard count > 0 else { return false }
        buffer += piece[..<count]
        return true
    }
}
