import Glibc

/// What is sent: a file, stdin, or lines already in memory.
package enum SendInput: Sendable {
    /// A path; `-` is stdin.
    case file(String)
    /// NDJSON in memory under a name for messages.
    case memory(name: String, [UInt8])

    /// The name in messages.
    package var name: String {
        switch self {
        case .file("-"): "(stdin)"
        case .file(let path): path
        case .memory(let name, _): name
        }
    }
}

/// Whole lines of one file that are posted together.
package struct Body: Equatable, Sendable {
    /// The file's name.
    package let file: String
    /// The physical number, from 1, of its first line in the file.
    package let firstLine: Int
    /// Physical lines, blank ones included.
    package let lineCount: Int
    /// The lines with their newlines.
    package let bytes: [UInt8]
    /// Bytes of the file, as stored, that it stands for.
    package let sourceBytes: Int

    /// The lines of the file it holds.
    package var lines: String {
        lineCount == 1 ? "line \(firstLine)" : "lines \(firstLine)-\(firstLine + lineCount - 1)"
    }

    /// Two bodies of half the lines each; nil for a single line.
    package var halves: (Body, Body)? {
        guard lineCount > 1 else { return nil }
        var cut = 0
        for _ in 0..<(lineCount / 2) {
            guard let newline = bytes[cut...].firstIndex(of: 0x0A) else { return nil }
            cut = newline + 1
        }
        let first = Body(
            file: file, firstLine: firstLine, lineCount: lineCount / 2,
            bytes: Array(bytes[..<cut]), sourceBytes: sourceBytes / 2)
        let second = Body(
            file: file, firstLine: firstLine + lineCount / 2,
            lineCount: lineCount - lineCount / 2, bytes: Array(bytes[cut...]),
            sourceBytes: sourceBytes - sourceBytes / 2)
        return (first, second)
    }
}

/// What a source gives next.
package enum SourceItem: Equatable {
    case body(Body)
    /// A line longer than a body may be; it is skipped.
    case overlongLine(number: Int)
    case end
}

/// Cuts one input into bodies of whole lines, reading no further than it must.
///
/// Holds at most one body and one piece of the file. Gzip is recognised by its first two bytes.
package final class LineSource {
    /// The name in messages.
    package let name: String
    /// Bytes of the file as stored, where that is known.
    package let bytesTotal: Int?
    private let linesMax: Int
    private let bytesMax: Int
    private let descriptor: Int32
    private var gzip: GzipReader?
    private let expectsGzip: Bool
    private var begun = false
    private var ended = false
    private var failure: ClientError?
    private var position = 0
    private var reported = 0
    private var buffer: [UInt8] = []
    /// Where in the buffer the bytes not yet given out begin.
    private var head = 0
    private var nextLine = 1

    /// Opens an input.
    ///
    /// - Throws: ``ClientError/unreadable(file:reason:)``.
    package init(_ input: SendInput, linesMax: Int, bytesMax: Int) throws(ClientError) {
        name = input.name
        self.linesMax = linesMax
        self.bytesMax = bytesMax
        switch input {
        case .memory(_, let bytes):
            descriptor = -1
            buffer = bytes
            position = bytes.count
            bytesTotal = bytes.count
            expectsGzip = false
            begun = true
            ended = true
        case .file("-"):
            descriptor = dup(0)
            bytesTotal = nil
            expectsGzip = false
        case .file(let path):
            descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
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

    /// The next body, or what stands in its place.
    ///
    /// - Throws: ``ClientError`` once, after the last whole line before the fault; then `end`.
    package func next() throws(ClientError) -> SourceItem {
        var lineCount = 0
        // Both counted from `head`.
        var end = 0
        var scanned = 0
        while true {
            while let newline = newline(from: scanned) {
                if lineCount > 0, newline + 1 > bytesMax { return take(lineCount, end) }
                if newline + 1 > bytesMax { return skip(through: newline + 1) }
                lineCount += 1
                end = newline + 1
                scanned = end
                if lineCount == linesMax { return take(lineCount, end) }
            }
            scanned = buffer.count - head
            if scanned > bytesMax {
                if lineCount > 0 { return take(lineCount, end) }
                return try skipUnendedLine()
            }
            if ended {
                if let failure {
                    if lineCount > 0 { return take(lineCount, end) }
                    // What is left is a part of a line: not to be sent.
                    self.failure = nil
                    head = buffer.count
                    throw failure
                }
                if end < scanned { return take(lineCount + 1, scanned) }
                return lineCount > 0 ? take(lineCount, end) : .end
            }
            readPiece()
        }
    }

    private func newline(from offset: Int) -> Int? {
        let start = head + offset
        guard start < buffer.count else { return nil }
        // SAFETY: memchr looks at start ..< count of the buffer only.
        return unsafe buffer.withUnsafeBytes { bytes in
            unsafe memchr(bytes.baseAddress! + start, 0x0A, bytes.count - start)
                .map { unsafe UnsafeRawPointer($0) - bytes.baseAddress! - head }
        }
    }

    private func take(_ lineCount: Int, _ end: Int) -> SourceItem {
        let body = Body(
            file: name, firstLine: nextLine, lineCount: lineCount,
            bytes: Array(buffer[head..<head + end]), sourceBytes: sourceBytes(consuming: end))
        head += end
        nextLine += lineCount
        return .body(body)
    }

    private func skip(through end: Int) -> SourceItem {
        head += end
        nextLine += 1
        return .overlongLine(number: nextLine - 1)
    }

    private func skipUnendedLine() throws(ClientError) -> SourceItem {
        while !ended {
            head = buffer.count
            readPiece()
            if let newline = newline(from: 0) { return skip(through: newline + 1) }
        }
        return skip(through: buffer.count - head)
    }

    private func sourceBytes(consuming count: Int) -> Int {
        // Lines in memory count as they are; a file counts as far as it has been read.
        let bytes = descriptor < 0 ? count : position - reported
        reported += bytes
        return bytes
    }

    private func readPiece() {
        buffer.removeFirst(head)
        head = 0
        var piece = [UInt8](repeating: 0, count: 256 << 10)
        var count = -1
        repeat {
            // SAFETY: read fills at most the buffer.
            count = unsafe piece.withUnsafeMutableBytes { bytes in
                unsafe read(descriptor, bytes.baseAddress, bytes.count)
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else {
            return fail(.unreadable(file: name, reason: systemReason(errno)))
        }
        position += count
        piece.removeLast(piece.count - count)
        if !begun, count > 0 {
            begun = true
            if piece.starts(with: [0x1F, 0x8B]) {
                gzip = GzipReader()
            } else if expectsGzip {
                return fail(.corruptGzip(file: name))
            }
        }
        guard gzip != nil else {
            buffer += piece
            ended = count == 0
            return
        }
        if count == 0 {
            if gzip?.isCutOff == true { return fail(.truncatedGzip(file: name)) }
            ended = true
        } else if gzip?.inflate(piece, into: &buffer) == false {
            fail(.corruptGzip(file: name))
        }
    }

    private func fail(_ error: ClientError) {
        failure = error
        ended = true
    }
}

/// The system's words for an `errno`, in lower case.
func systemReason(_ code: Int32) -> String {
    // SAFETY: strerror answers a static or thread-local string that is copied at once.
    let text = unsafe String(cString: strerror(code))
    return text.prefix(1).lowercased() + text.dropFirst()
}
