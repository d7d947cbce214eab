import Bench
import Foundation
import Platform
import Testing

/// The log says what was acknowledged, whatever became of the run.
@Suite struct AckLogTests {
    static let plan = BenchPlan(
        seed: 7, events: 1000, batch: 10, start: 1_764_522_000_123_456, delay: 1000,
        isShuffled: true)
    static let keyHash = [UInt8](0..<32)

    /// Writes a log and reads its bytes.
    static func log(_ entries: [AckLog.Entry]) throws -> [UInt8] {
        let path = NSTemporaryDirectory() + "tapline-acklog-" + UUID().uuidString
        defer { try? File.remove(path) }
        var log = try AckLog.create(path, plan: plan, keyHash: keyHash)
        for entry in entries { log.note(entry) }
        try log.sync()
        return try File.contents(of: path)
    }

    @Test func whatIsWrittenIsRead() throws {
        let bytes = try Self.log([.issue(upTo: 64), .ack(body: 3), .refuse(body: 4), .end])
        let log = try AckLogContent(bytes, path: "log")
        #expect(log.plan == Self.plan && log.keyHash == Self.keyHash)
        #expect(log.issuedBodies == 64 && log.acknowledged == [3] && log.refused == [4])
        #expect(log.isEnded && !log.isTorn)
    }

    @Test func aLogCutAnywhereSaysOnlyWhatWasWhole() throws {
        let entries: [AckLog.Entry] = [.issue(upTo: 64), .ack(body: 12), .ack(body: 3)]
        let bytes = try Self.log(entries)
        let head = try #require(bytes.firstIndex(of: 0x0A)) + 1
        for count in 0..<head {
            #expect(throws: BenchError.self) {
                try AckLogContent(Array(bytes.prefix(count)), path: "log")
            }
        }
        for count in head...bytes.count {
            let log = try AckLogContent(Array(bytes.prefix(count)), path: "log")
            let whole = bytes.prefix(count).count { $0 == 0x0A } - 1
            #expect(log.issuedBodies == (whole >= 1 ? 64 : 0))
            #expect(log.acknowledged == [12, 3].prefix(max(whole - 1, 0)).map { $0 })
            #expect(log.isTorn == (bytes[count - 1] != 0x0A))
        }
    }

    @Test(arguments: ["ack", "ack x", "ack -1", "ack 100", "issue 101", "acc 1", "ack 1 2", ""])
    func aLineThatCannotBeRightIsNamed(line: String) throws {
        let bytes = try Self.log([.issue(upTo: 64)]) + Array("\(line)\nack 1\n".utf8)
        let reason = "\"\(line)\" is no entry of its run"
        #expect(throws: BenchError.log(path: "log", line: 3, reason: reason)) {
            try AckLogContent(bytes, path: "log")
        }
    }

    @Test func aLogIsNeverWrittenOver() throws {
        let path = NSTemporaryDirectory() + "tapline-acklog-" + UUID().uuidString
        defer { try? File.remove(path) }
        try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: SystemError(code: EEXIST, action: "open", path: path)) {
            _ = try AckLog.create(path, plan: Self.plan, keyHash: Self.keyHash)
        }
        #expect(try File.contents(of: path) == Array("mine".utf8))
    }
}
