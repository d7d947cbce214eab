import Glibc

/// A client that sends exactly the bytes it is told to.
package final class RawClient {
    /// One answer; names of headers are in lower case.
    package struct Answer: Equatable {
        package var status: Int
        package var headers: [String: String]
        package var body: String
    }
    /// Why there is no answer.
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
        /// Creates a failure.
        package init(description: String) { self.description = description }
    }

    package let socket: Int32
    private var buffer: [UInt8] = []

    /// Connects to a port of this machine.
    ///
    /// - Parameter source: The last byte of the address in 127.0.0.0/8 that it comes from.
    package init(port: Int, receiveBufferBytes: Int32? = nil, source: UInt8 = 1) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        unsafe setsockopt(
            socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        unsafe setsockopt(
            socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var bytes = receiveBufferBytes {
            unsafe setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, 4)
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = (UInt32(0x7F00_0000) + UInt32(source)).bigEndian
        // The port is chosen by connecting: chosen before, it would have to be free of all connections that
        // have ended in the last minute.
        var on: Int32 = 1
        unsafe setsockopt(socket, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &on, 4)
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0 else { throw Failure(description: "bind: errno \(errno)") }
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure(description: "connect: errno \(errno)") }
    }

    deinit { close() }

    private var isClosed = false

    /// Closes the socket.
    package func close() {
        if !isClosed { Glibc.close(socket) }
        isClosed = true
    }

    /// Closes so that the other side sees a reset.
    package func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(
            socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    /// Sends all of `text`; false when the other side has closed.
    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends all of `bytes`; false when the other side has closed.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.send(
                    socket, buffer.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            offset += count
        }
        return true
    }

    /// Tells the server that nothing more comes.
    package func endSending() { shutdown(socket, Int32(SHUT_WR)) }

    private func fill() throws -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(socket, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN { throw Failure(description: "no answer in 20 s") }
        if count <= 0 { return false }
        buffer.append(contentsOf: chunk[..<count])
        return true
    }

    private func line() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                let text = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeSubrange(...end)
                return text.hasSuffix("\r") ? String(text.dropLast()) : text
            }
            guard try fill() else { throw Failure(description: "closed before an answer") }
        }
    }

    /// Reads one answer, skipping `100 Continue`.
    package func answer(toHead: Bool = false) throws -> Answer {
        let words = try line().split(separator: " ")
        guard words.count >= 2, let status = Int(words[1]) else {
            throw Failure(description: "not a status line: \(words)")
        }
        var headers: [String: String] = [:]
        while case let text = try line(), !text.isEmpty {
            let parts = text.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts[1].drop { $0 == " " }.description
        }
        if status == 100 { return try answer(toHead: toHead) }
        var body = ""
        if let count = headers["content-length"].flatMap({ Int($0) }), !toHead {
            while buffer.count < count {
                guard try fill() else { throw Failure(description: "closed inside a body") }
            }
            body = String(decoding: buffer[..<count], as: UTF8.self)
            buffer.removeSubrange(..<count)
        }
        return Answer(status: status, headers: headers, body: body)
    }

    /// Reads one chunk of a chunked body; empty at its end.
    package func chunk() throws -> String {
        guard let count = Int(try line(), radix: 16) else {
            throw Failure(description: "not a chunk size")
        }
        while buffer.count < count + 2 {
            guard try fill() else { throw Failure(description: "closed inside a chunk") }
        }
        let text = String(decoding: buffer[..<count], as: UTF8.self)
        buffer.removeSubrange(..<(count + 2))
        return text
    }

    /// Reads up to the first empty line.
    package func head() throws -> String {
        var text = ""
        while case let next = try line(), !next.isEmpty { text += next + "\r\n" }
        return text
    }

    /// Waits until the server closes, and returns what it sent until then.
    package func readToEnd() throws -> String {
        let deadline = time(nil) + 120
        while try fill() {
            if time(nil) > deadline { throw Failure(description: "no end in 120 s") }
        }
        defer { buffer = [] }
        return String(decoding: buffer, as: UTF8.self)
    }
}
