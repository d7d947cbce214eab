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
    /// Its lines, blank ones included.
    package let lineCount: Int
    /// The lines with their newlines.
    package let bytes: [UInt8]
    /// Bytes of the file, as stored, that it stands for.
    package let sourceBytes: Int
    /// The physical line of the file that each line was made of; empty where they are the lines of the
    /// file themselves.
    package let lineNumbers: [Int]

    /// Makes a body.
    package init(
        file: String, firstLine: Int, lineCount: Int, bytes: [UInt8], sourceBytes: Int,
        lineNumbers: [Int] = []
    ) {
        self.file = file
        self.firstLine = firstLine
        self.lineCount = lineCount
        self.bytes = bytes
        self.sourceBytes = sourceBytes
        self.lineNumbers = lineNumbers
    }

    /// The physical line of the file that a line, from 1, stands for.
    package func fileLine(_ line: Int) -> Int {
        lineNumbers.indices.contains(line - 1) ? lineNumbers[line - 1] : firstLine + line - 1
    }

    /// The lines of the file it holds.
    package var lines: String {
        let last = fileLine(lineCount)
        return firstLine == last ? "line \(firstLine)" : "lines \(firstLine)-\(last)"
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
            bytes: Array(bytes[..<cut]), sourceBytes: sourceBytes / 2,
            lineNumbers: Array(lineNumbers.prefix(lineCount / 2)))
        let second = Body(
            file: file, firstLine: fileLine(lineCount / 2 + 1),
            lineCount: lineCount - lineCount / 2, bytes: Array(bytes[cut...]),
            sourceBytes: sourceBytes - sourceBytes / 2,
            lineNumbers: Array(lineNumbers.dropFirst(lineCount / 2)))
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

/// What bodies are cut from.
package protocol BodySource: AnyObject {
    /// The name in messages.
    var name: String { get }
    /// Bytes of the file as stored, where that is known.
    var bytesTotal: Int? { get }
    /// The next body, or what stands in its place.
    ///
    /// - Throws: ``ClientError`` once, after the last whole line before the fault; then `end`.
    func next() throws(ClientError) -> SourceItem
}

/// Cuts one input into bodies of whole lines, reading no further than it must.
///
/// Holds at most one body and one piece of the file.
package final class LineSource: BodySource {
    private let input: InputBytes
    private let linesMax: Int
    private let bytesMax: Int
    private let isInMemory: Bool
    private var ended = false
    private var failure: ClientError?
    private var reported = 0
    private var buffer: [UInt8] = []
    /// Where in the buffer the bytes not yet given out begin.
    private var head = 0
    private var nextLine = 1

    /// Opens an input.
    ///
    /// - Throws: ``ClientError/unreadable(file:reason:)``.
    package init(_ input: SendInput, linesMax: Int, bytesMax: Int) throws(ClientError) {
        self.input = try InputBytes(input)
        self.linesMax = linesMax
        self.bytesMax = bytesMax
        if case .memory = input { isInMemory = true } else { isInMemory = false }
    }

    /// The name in messages.
    package var name: String { input.name }
    /// Bytes of the file as stored, where that is known.
    package var bytesTotal: Int? { input.bytesTotal }

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
        let bytes = isInMemory ? count : input.position - reported
        reported += bytes
        return bytes
    }

    private func readPiece() {
        buffer.removeFirst(head)
        head = 0
        do throws(ClientError) {
            if try !input.read(into: &buffer) { ended = true }
        } catch {
            failure = error
            ended = true
        }
    }
}
