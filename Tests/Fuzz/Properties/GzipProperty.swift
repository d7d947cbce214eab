import Gzip
import GzipOracle

/// The first byte says in what pieces the rest arrives.
enum GzipProperty {
    private static let limit = 1 << 18
    private static let pieces = [Int.max, 1, 2, 3, 7, 17, 64, 1000]

    static let seeds: [[UInt8]] = {
        var random = Random(state: 7)
        let text = Array("{\"type\":\"clicked\",\"message_uid\":\"m\"}\n".utf8)
        let noise = (0..<300).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        var seeds: [[UInt8]] = []
        for payload in [[], text, noise, [UInt8](repeating: 0x61, count: 3000)] {
            for piece in 0..<4 {
                let member = ZlibOracle.member(payload, .random(&random))
                seeds.append([UInt8(piece)] + member)
                seeds.append([UInt8(piece + 4)] + member + member + [0, 0, 0])
            }
        }
        return seeds
    }()

    static func violation(_ input: [UInt8]) -> String? {
        guard let first = input.first else { return nil }
        let body = Array(input.dropFirst())
        let piece = pieces[Int(first) % pieces.count]
        let theirs = try? ZlibOracle.inflate(body, limit: limit).get()
        let ours = try? inflate(body, piece: piece)
        guard ours == theirs else {
            let counts = [ours, theirs].map { $0.map { "\($0.count) bytes" } ?? "an error" }
            return "pieces of \(piece): ours \(counts[0]), zlib \(counts[1])"
        }
        return nil
    }

    private static func inflate(_ body: [UInt8], piece: Int) throws(GzipError) -> [UInt8] {
        var stream = try InflateStream(limit: limit)
        var output: [UInt8] = []
        var start = 0
        while start < body.count {
            let count = min(piece, body.count - start)
            try stream.push(body.span.extracting(start..<start + count), into: &output)
            guard output.count <= limit else { throw .tooLarge(limit: -1) }
            start += count
        }
        try stream.finish()
        return output
    }
}
