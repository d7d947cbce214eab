import Foundation
import Glibc
import Platform
import Testing

final class FileTests {
    let folder = "/tmp/tapline-platform-\(Hex.encode(Random.bytes(8)))"

    init() throws { try Directory.create(folder) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    @Test func whatIsWrittenIsRead() throws {
        let file = try File(folder + "/a", .createNew)
        try file.write(Array("hello".utf8).span, at: 3)
        try file.sync()
        #expect(try file.size() == 8)
        #expect(try file.read(count: 100, at: 0) == [0, 0, 0] + Array("hello".utf8))
        #expect(try file.read(count: 2, at: 4) == Array("el".utf8))
        #expect(try file.read(count: 2, at: 8) == [])
        try file.truncate(to: 4)
        #expect(try File.contents(of: folder + "/a") == [0, 0, 0, 104])
    }

    /// What cannot be synced says so, which nothing but the kernel's call can know.
    @Test func aSyncAsksTheKernel() {
        func sync(_ path: String) throws {
            let file = try File(path, .read)
            try file.sync()
        }
        let device = SystemError(code: EINVAL, action: "sync", path: "/dev/null")
        #expect(throws: device) { try sync("/dev/null") }
        let directory = SystemError(code: EINVAL, action: "sync directory", path: "/proc")
        #expect(throws: directory) { try Directory.sync("/proc") }
    }

    @Test func createNewRefusesAnExistingFile() throws {
        _ = try File(folder + "/a", .createNew)
        let expected = SystemError(code: EEXIST, action: "open", path: folder + "/a")
        #expect(throws: expected) { _ = try File(self.folder + "/a", .createNew) }
    }

    @Test func anErrorSaysWhatOnWhatAndWhy() {
        let error = SystemError(code: ENOSPC, action: "append to spool segment", path: "42.seg")
        #expect(
            "\(error)" == "could not append to spool segment \"42.seg\": no space left on device")
        #expect(error.isOutOfSpace)
        #expect("\(SystemError(code: 9999, action: "x"))" == "could not x: unknown error")
        #expect(SystemError.reason(EIO) == "input/output error")
    }

    @Test func replaceLeavesOneWholeFile() throws {
        let path = folder + "/state"
        try File.replace(path, with: [1, 2, 3].span)
        try File.replace(path, with: [4].span)
        #expect(try File.contents(of: path) == [4])
        #expect(try Directory.list(folder) == ["state"])
    }

    @Test func directoriesAreMadeAndListedInOrder() throws {
        try Directory.create(folder + "/x/y/z")
        try Directory.create(folder + "/x/y/z")
        for name in ["b", "a", "c"] { _ = try File(folder + "/x/" + name, .createNew) }
        #expect(try Directory.list(folder + "/x") == ["a", "b", "c", "y"])
        try Directory.sync(folder + "/x")
        #expect(throws: SystemError.self) { try Directory.create(self.folder + "/x/a") }
        #expect(throws: SystemError.self) { try Directory.list(self.folder + "/none") }
    }

    @Test(arguments: [("a/b", "a"), ("a", "."), ("/a", "/"), ("/", "/"), ("/a/b/", "/a")])
    func theParentIsFound(path: String, parent: String) {
        #expect(Directory.parent(of: path) == parent)
    }

    @Test func aLockIsHeldOnceAndFreedAtItsEnd() throws {
        let path = folder + "/lock"
        func take() throws -> Bool { try FileLock.tryTake(path) != nil }
        do {
            let first = try FileLock.tryTake(path)
            let isTaken = first != nil
            #expect(isTaken)
            #expect(try !take())
            _ = consume first
        }
        #expect(try take())
    }

    /// A child has the descriptor until it runs its program.
    @Test func aLockIsFreedThoughAnotherProcessHasTheDescriptor() throws {
        let path = folder + "/lock"
        let lock = try FileLock.tryTake(path)
        let own = try Directory.list("/proc/self/fd").compactMap { Int32($0) }.first {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))
                == path
        }
        let copy = dup(try #require(own))
        defer { close(copy) }
        _ = consume lock
        let again = try FileLock.tryTake(path)
        let isTaken = again != nil
        #expect(isTaken)
    }

    @Test func removingAMissingFileIsNoError() throws {
        try File.remove(folder + "/none")
        #expect(throws: SystemError.self) { try File.remove(self.folder) }
    }

    /// Past the page cache, or through it where there is no other way: the bytes are the same.
    @Test func aDirectFileReadsAndWritesBlocksAndAnyPart() throws {
        let path = folder + "/direct"
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var blocks = BlockBuffer(capacity: bytes.count)
        #expect(blocks.capacity == 12_288)
        #expect(blocks.fill(from: bytes.span) == bytes.count)
        blocks.padToBlock()
        let file = try File(path, .createNew, isDirect: true)
        try file.write(blocks.span, at: 0)
        try file.truncate(to: bytes.count)
        let again = try File(path, .read, isDirect: true)
        for (offset, count) in [(0, 10_000), (5, 1), (4_090, 20), (9_999, 5), (10_000, 3), (0, 0)] {
            #expect(
                try again.read(count: count, at: offset)
                    == Array(bytes.dropFirst(offset).prefix(count)), "\(count) at \(offset)")
        }
        var read = BlockBuffer(capacity: 4_096)
        try again.append(to: &read, upTo: 4_096, at: 4_096)
        read.setCapacity(8_192)
        try again.append(to: &read, upTo: 8_192, at: 8_192)
        let found = read.span
        #expect(found.count == 10_000 - 4_096)
        #expect(found.indices.allSatisfy { found[$0] == bytes[4_096 + $0] })
    }

    /// A file system may take the flag and refuse each call, as it does here for what is no block.
    @Test func whereDirectCallsAreRefusedAllGoThroughThePageCache() throws {
        let path = folder + "/direct"
        let file = try File(path, .createNew, isDirect: true)
        let bytes: [UInt8] = Array("tapline".utf8)
        try file.write(bytes.span, at: 3)
        #expect(try File.contents(of: path) == [0, 0, 0] + bytes)
        let again = try File(path, .read, isDirect: true)
        var got: [UInt8] = Array(repeating: 0, count: 5)
        let count = try unsafe got.withUnsafeMutableBytes { unsafe try again.read(into: $0, at: 4) }
        #expect(count == 5 && got == Array(bytes[1..<6]))
    }

    /// What the kernel says of a lost sector: past the page cache in several words, through it in one.
    @Test(arguments: [EIO, ENODATA, EILSEQ, EREMOTEIO, ENOMEM])
    func lostBytesAreOneError(code: Int32) {
        let expected = code == ENOMEM ? ENOMEM : EIO
        let error = File.readError(SystemError(code: code, action: "read", path: "a"))
        #expect(error == SystemError(code: expected, action: "read", path: "a"))
    }
}
