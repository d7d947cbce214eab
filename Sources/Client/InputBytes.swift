import Glibc

/// The bytes of one input, inflated where they are gzipped, piece by piece.
///
/// Gzip is recognised by its first two bytes.
package final class InputBytes {
    /// The name in messages.
    package let name: String
    /// Bytes of the file as stored, where that is known.
    package let bytesTotal: Int?
    /// Bytes of it, as stored, that have been read.
    package private(set) var position = 0
    private let descriptor: Int32
    private let memory: [UInt8]
    private var gzip: GzipReader?
    private let expectsGzip: Bool
    private var begun = false

    /// Opens an input.
    ///
    /// - Throws: ``ClientError/unreadable(file:reason:)``.
    package init(_ input: SendInput) throws(ClientError) {
        name = input.name
        switch input {
        case .memory(_, let bytes):
            descriptor = -1
            memory = bytes
            bytesTotal = bytes.count
            expectsGzip = false
        case .file("-"):
            descriptor = dup(0)
            memory = []
            bytesTotal = nil
            expectsGzip = false
        case .file(let path):
            descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
            memory = []
            expectsGzip = path.hasSuffix(".gz")
            var status = stat()
            guard descriptor >= 0, unsafe fstat(descriptor, &status) == 0 else {
                throw .unreadable(file: path, reason: systemReason(errno))
            }
            guard status.st_mode & S_IFMT != S_IFDIR else {
                close(descriptor)
                throw .unreadable(file: path, reason: "is a directory")
            }
            bytesTotal = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Appends the next piece; it may be empty, and more come after it.
    ///
    /// - Returns: False at the end.
    /// - Throws: ``ClientError``; what was good before the fault has been appended.
    package func read(into buffer: inout [UInt8]) throws(ClientError) -> Bool {
        guard descriptor >= 0 else {
            defer { position = memory.count }
            if position < memory.count { buffer += memory }
            return position < memory.count
        }
        var piece = [UInt8](repeating: 0, count: 256 << 10)
        var count = -1
        repeat {
            // SAFETY: read fills at most the buffer.
            count = unsafe piece.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(descriptor, bytes.baseAddress, bytes.count)
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else { throw .unreadable(file: name, reason: systemReason(errno)) }
        position += count
        piece.removeLast(piece.count - count)
        if !begun, count > 0 {
            begun = true
            if piece.starts(with: [0x1F, 0x8B]) {
                gzip = GzipReader()
            } else if expectsGzip {
                throw .corruptGzip(file: name)
            }
        }
        guard gzip != nil else {
            buffer += piece
            return count > 0
        }
        if count == 0 {
            if gzip?.isCutOff == true { throw .truncatedGzip(file: name) }
            return false
        }
        if gzip?.inflate(piece, into: &buffer) == false { throw .corruptGzip(file: name) }
        return true
    }
}

extension InputBytes {
    /// What is left of it.
    ///
    /// - Parameter bytesMax: Reading ends when there is more.
    package func all(upTo bytesMax: Int = .max) throws(ClientError) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count <= bytesMax, try read(into: &bytes) {}
        return bytes
    }
}

/// The system's words for an `errno`, in lower case.
package func systemReason(_ code: Int32) -> String {
    // SAFETY: strerror answers a static or thread-local string that is copied at once.
    let text = unsafe String(cString: strerror(code))
    return text.prefix(1).lowercased() + text.dropFirst()
}
