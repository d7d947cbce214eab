import Foundation
import Platform
import Spool

/// The input is the content of the only segment of a spool.
enum SpoolProperty {
    private static let segment = "000000000001.seg"
    private static let recordCount = 5

    private static func payload(_ number: Int) -> [UInt8] {
        Array("record \(number) ".utf8) + Array(repeating: UInt8(number), count: number * 7)
    }

    static let seeds: [[UInt8]] = {
        Log.level = .off
        guard let seed = try? inDirectory(filledSegment) else { return [] }
        return [seed, Array(seed.prefix(64)), Array(seed.prefix(88)), []]
    }()

    /// The segment of a spool with all records, and a little of the zeros that follow.
    private static func filledSegment(_ directory: String) throws -> [UInt8] {
        let spool = try Spool(directory: directory, options: SpoolOptions())
        let left = Sync.Monitor(recordCount)
        for number in 0..<recordCount {
            try spool.append(payload(number), events: number) { _ in
                left.withLock { $0 -= 1 }
                left.broadcast()
            }
        }
        let deadline = Clock.deadline(inMilliseconds: 60_000)
        guard left.wait(until: deadline, for: { $0 == 0 ? true : nil }) != nil else {
            fatalError("the spool did not answer in 60 s")
        }
        spool.close()
        let names = try Directory.list(directory).filter { $0.hasSuffix(".seg") }.sorted()
        let whole = try File.contents(of: "\(directory)/\(names[0])")
        let used = whole.lastIndex { $0 != 0 } ?? 0
        return Array(whole[...min(used + 64, whole.count - 1)])
    }

    static func violation(_ input: [UInt8]) -> String? {
        do {
            return try inDirectory { directory in
                try File.replace("\(directory)/\(segment)", with: input.span)
                var scanned: [[UInt8]] = []
                // A version that is newer is refused, and so may other heads be.
                _ = try? SpoolFiles.scan(directory: directory) { scanned.append($0.payload) }
                guard let spool = try? Spool(directory: directory, options: SpoolOptions()) else {
                    return nil
                }
                defer { spool.close() }
                var delivered: [[UInt8]] = []
                if let reader = try? spool.makeReader(from: nil) {
                    while let record = try? reader.next(timeoutMilliseconds: 0) {
                        delivered.append(record.payload)
                        guard delivered.count <= recordCount * 4 else { return "it has no end" }
                    }
                }
                // A fuzzer that knows the marker forges checksums in the end, so that other records than
                // ours are right; but each is in the file.
                for payload in scanned + delivered where !input.contains(payload) {
                    return "a record was made up: \(payload.prefix(64))"
                }
                return nil
            }
        } catch {
            return "\(error)"
        }
    }

    private static func inDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
        let root = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
        let directory = "\(root)/tapline-fuzz-\(getpid())-\(Hex.encode(Random.bytes(6)))"
        try Directory.create(directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        return try body(directory)
    }
}
