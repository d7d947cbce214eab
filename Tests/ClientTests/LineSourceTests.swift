import Client
import Foundation
import Testing

@Suite struct LineSourceTests {
    static func read(
        _ input: SendInput, linesMax: Int = 1000, bytesMax: Int = 8 << 20
    ) throws -> [SourceItem] {
        let source = try LineSource(input, linesMax: linesMax, bytesMax: bytesMax)
        var items: [SourceItem] = []
        while true {
            let item = try source.next()
            if item == .end { return items }
            items.append(item)
        }
    }

    static func withFile<R>(
        _ bytes: [UInt8], suffix: String, _ body: (String) throws -> R
    ) throws -> R {
        let path = NSTemporaryDirectory() + "/tapline-\(UUID().uuidString)\(suffix)"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { _ = unsafe unlink(path) }
        return try body(path)
    }

    /// The obvious way: all lines with their newlines.
    static func slowLines(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var line: [UInt8] = []
        for byte in bytes {
            line.append(byte)
            if byte == 0x0A {
                lines.append(line)
                line = []
            }
        }
        return line.isEmpty ? lines : lines + [line]
    }

    @Test func agreesWithTheObviousWayOnAllSmallInputs() throws {
        for length in 0...7 {
            for pattern in 0..<(1 << length) {
                let bytes = (0..<length).map { UInt8(pattern >> $0 & 1 == 1 ? 0x0A : 0x61) }
                for linesMax in 1...3 {
                    for bytesMax in 1...4 {
                        try check(bytes, linesMax: linesMax, bytesMax: bytesMax)
                    }
                }
            }
        }
    }

    private func check(_ bytes: [UInt8], linesMax: Int, bytesMax: Int) throws {
        let lines = Self.slowLines(bytes)
        var next = 1
        for item in try Self.read(
            .memory(name: "m", bytes), linesMax: linesMax, bytesMax: bytesMax)
        {
            switch item {
            case .body(let body):
                #expect(body.firstLine == next)
                #expect(body.lineCount >= 1 && body.lineCount <= linesMax)
                #expect(body.bytes.count <= bytesMax)
                let expected = lines[(next - 1)..<(next - 1 + body.lineCount)]
                #expect(body.bytes == Array(expected.joined()))
                next += body.lineCount
            case .overlongLine(let number):
                #expect(number == next)
                #expect(lines[number - 1].count > bytesMax)
                next += 1
            case .end: break
            }
        }
        #expect(next == lines.count + 1, "\(bytes) \(linesMax) \(bytesMax)")
    }

    @Test func aFileOfSeveralGzipMembersAndPaddingIsOneStream() throws {
        let parts = ["{\"a\":1}\n{\"b\"", ":2}\n", "{\"c\":3}"]
        var bytes: [UInt8] = []
        for part in parts { bytes += try #require(gzipMember(Array(part.utf8))) }
        bytes += [0, 0, 0, 0]
        let items = try Self.withFile(bytes, suffix: ".gz") { try Self.read(.file($0)) }
        guard case .body(let body) = items.first else {
            Issue.record("no body")
            return
        }
        #expect(items.count == 1)
        #expect(String(decoding: body.bytes, as: UTF8.self) == parts.joined())
        #expect(body.lineCount == 3)
        #expect(body.sourceBytes == bytes.count)
    }

    @Test func everyTruncationOfAGzipFileIsNoticed() throws {
        let whole = try #require(gzipMember(Array("{\"a\":1}\n{\"b\":2}\n".utf8)))
        for count in 2..<whole.count {
            try Self.withFile(Array(whole.prefix(count)), suffix: ".gz") { path in
                _ = #expect(throws: ClientError.truncatedGzip(file: path)) {
                    try Self.read(.file(path))
                }
            }
        }
    }

    @Test func aGzFileThatIsNotGzipIsRefused() throws {
        try Self.withFile(Array("{}\n".utf8), suffix: ".ndjson.gz") { path in
            _ = #expect(throws: ClientError.corruptGzip(file: path)) {
                try Self.read(.file(path))
            }
        }
    }

    @Test func garbageAfterAMemberIsRefused() throws {
        let member = try #require(gzipMember(Array("{}\n".utf8)))
        try Self.withFile(member + [1, 2, 3], suffix: ".gz") { path in
            _ = #expect(throws: ClientError.corruptGzip(file: path)) {
                try Self.read(.file(path))
            }
        }
    }

    @Test func aLineLongerThanABodyIsSkippedWhereverThePiecesEnd() throws {
        let long = [UInt8](repeating: 0x78, count: 700_000)
        let bytes = Array("{}\n".utf8) + long + Array("\n{\"z\":1}\n".utf8)
        let items = try Self.withFile(bytes, suffix: "") { path in
            try Self.read(.file(path), bytesMax: 1000)
        }
        #expect(items.count == 3)
        #expect(items[1] == .overlongLine(number: 2))
        if case .body(let body) = items[2] { #expect(body.firstLine == 3) }
    }

    @Test func aDirectoryIsNamed() {
        #expect(throws: ClientError.unreadable(file: "/tmp", reason: "is a directory")) {
            try Self.read(.file("/tmp"))
        }
    }
}
