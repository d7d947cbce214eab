import Foundation
import Platform
import Spool
import Synchronization

/// A spool directory of its own, removed at the end.
final class SpoolFixture: Sendable {
    let path: String

    init(under directory: String = "/tmp") throws {
        path = Self.newPath(directory)
        // Damage is loud, and here there is much of it.
        Log.level = .off
        try Directory.create(path)
    }

    private static func newPath(_ directory: String) -> String {
        "\(directory)/tapline-spool-\(Hex.encode(Random.bytes(8)))"
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// A copy of a fixture in its present state.
    init(copying other: SpoolFixture) throws {
        path = Self.newPath("/tmp")
        try FileManager.default.copyItem(atPath: other.path, toPath: path)
    }

    /// The names of the segments.
    func segments() throws -> [String] {
        try Directory.list(path).filter { $0.hasSuffix(".seg") }
    }

    func quarantined() -> [String] { (try? Directory.list(path + "/quarantine")) ?? [] }

    func bytes(_ name: String) throws -> [UInt8] { try File.contents(of: path + "/" + name) }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        try File.replace(path + "/" + name, with: bytes.span)
    }

    func remove(_ name: String) throws { try File.remove(path + "/" + name) }

    /// Opens it, runs the body and closes it.
    @discardableResult
    func open<Result>(
        _ options: SpoolOptions = SpoolOptions(), _ body: (Spool) throws -> Result
    ) throws -> Result {
        let spool = try Spool(directory: path, options: options)
        defer { spool.close() }
        return try body(spool)
    }

    /// Everything a reader is given.
    func delivered(
        _ options: SpoolOptions = SpoolOptions(), from mark: SpoolMark? = nil
    ) throws -> (payloads: [[UInt8]], statistics: SpoolStatistics) {
        try open(options) { spool in
            let payloads = try spool.makeReader(from: mark).all().map(\.payload)
            return (payloads, spool.statistics)
        }
    }

    /// What the read-only scan sees.
    func scanned(from mark: SpoolMark? = nil) throws -> (payloads: [[UInt8]], SpoolFiles.Scan) {
        var payloads: [[UInt8]] = []
        let scan = try SpoolFiles.scan(directory: path, from: mark) { payloads.append($0.payload) }
        return (payloads, scan)
    }

    /// A payload that says its number, of a length that varies.
    static func payload(_ number: Int) -> [UInt8] {
        Array("record \(number) ".utf8) + Array(repeating: UInt8(number & 255), count: number % 7)
    }

    /// A closed spool with records 0..<count.
    static func filled(_ count: Int, _ options: SpoolOptions = SpoolOptions()) throws
        -> (fixture: SpoolFixture, marks: [SpoolMark])
    {
        let fixture = try SpoolFixture()
        let marks = try fixture.open(options) { spool in
            try (0..<count).map { try spool.appendAndWait(payload($0)).get() }
        }
        return (fixture, marks)
    }
}

extension Spool {
    /// Appends and waits for the completion.
    func appendAndWait(
        _ payload: [UInt8], events: Int = 1
    ) throws -> Result<SpoolMark, SpoolError> {
        let answer = Sync.Monitor<Result<SpoolMark, SpoolError>?>(nil)
        try append(payload, events: events) { result in
            answer.withLock { $0 = result }
            answer.broadcast()
        }
        return answer.wait(until: Clock.deadline(inMilliseconds: 60_000)) { $0 }!
    }
}

extension SpoolReader {
    /// All that can be had without waiting.
    func all() throws -> [SpoolRecord] {
        var records: [SpoolRecord] = []
        while let record = try next(timeoutMilliseconds: 0) { records.append(record) }
        return records
    }
}

/// Storage whose operations fail when told to.
final class FaultyStorage: Sendable {
    struct Faults: Sendable {
        /// Bytes that still fit on the disk; nil is without limit.
        var bytesFree: Int?
        var writeFails = false
        var syncFails = false
        var truncateFails = false
        /// The most one write takes.
        var writeBytesMax = Int.max
        /// Whether the file system opens files for direct I/O.
        var isDirect = true
        var syncs = 0
        var writes = 0
    }

    let faults = Sync.Monitor(Faults())

    var storage: SpoolStorage {
        var storage = SpoolStorage.system
        storage.create = { [faults] path throws(SystemError) in
            try File(path, .createNew, isDirect: faults.withLock { $0.isDirect })
        }
        storage.write = { [faults] file, bytes, offset throws(SystemError) in
            let count = try faults.withLock { faults throws(SystemError) in
                faults.writes += 1
                if faults.writeFails {
                    throw SystemError(code: EIO, action: "write", path: file.path)
                }
                var count = min(bytes.count, faults.writeBytesMax)
                // Past the page cache whole blocks are written.
                if file.isDirect { count = min(bytes.count, BlockBuffer.roundedUp(count)) }
                if let whole = faults.bytesFree {
                    let free = file.isDirect ? BlockBuffer.roundedDown(whole) : whole
                    guard free > 0 else {
                        throw SystemError(code: ENOSPC, action: "write", path: file.path)
                    }
                    count = min(count, free)
                    faults.bytesFree = whole - count
                }
                return count
            }
            return try file.writeOnce(bytes.extracting(0..<count), at: offset)
        }
        storage.sync = { [faults] file throws(SystemError) in
            let fails = faults.withLock { faults in
                faults.syncs += 1
                return faults.syncFails
            }
            if fails { throw SystemError(code: EIO, action: "sync", path: file.path) }
            try file.sync()
        }
        storage.truncate = { [faults] file, bytes throws(SystemError) in
            if faults.withLock({ $0.truncateFails }) {
                throw SystemError(code: EIO, action: "truncate", path: file.path)
            }
            try file.truncate(to: bytes)
        }
        return storage
    }

    var options: SpoolOptions {
        var options = SpoolOptions()
        options.storage = storage
        return options
    }
}
