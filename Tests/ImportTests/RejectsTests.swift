import Foundation
import Import
import Testing

@Suite struct RejectsTests {
    /// A directory with `a`, `b`, a link `s` and a second name `h` of `a`, and a link `d` to itself.
    private static func directory() throws -> String {
        let path = FileManager.default.temporaryDirectory.path + "/rejects-\(UUID().uuidString)"
        let files = FileManager.default
        try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        for name in ["a", "b"] {
            try #require(files.createFile(atPath: "\(path)/\(name)", contents: nil))
        }
        try files.createSymbolicLink(atPath: "\(path)/s", withDestinationPath: "a")
        try files.linkItem(atPath: "\(path)/a", toPath: "\(path)/h")
        try files.createSymbolicLink(atPath: "\(path)/d", withDestinationPath: path)
        return path
    }

    @Test(arguments: [
        (["a"], ["a"]), (["./a"], ["a"]), (["s"], ["a"]), (["a"], ["s"]), (["h"], ["a"]),
        (["d/a"], ["a"]), (["new", "b"], ["a", "b"]), (["b", "new"], ["a", "b"]),
        (["new", "d/./new"], ["a", "b"]), (["d/m"], ["a"]),
    ]) func aFileOfManyNamesIsOne(paths: [String], files: [String]) throws {
        let directory = try Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func full(_ names: [String]) -> [String] { names.map { "\(directory)/\($0)" } }
        let conflict = Rejects.conflict(
            of: full(paths), for: full(files), others: full(["m"]))
        #expect(conflict?.contains("it is the same file as \"\(directory)/") == true)
    }

    @Test func whatIsAnotherFileIsNoConflict() throws {
        let directory = try Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func conflict(_ paths: String..., files: [String]) -> String? {
            Rejects.conflict(of: paths, for: files.map { "\(directory)/\($0)" })
        }
        #expect(conflict("\(directory)/b", files: ["a"]) == nil)
        #expect(conflict("\(directory)/a1", "\(directory)/b1", files: ["a", "b"]) == nil)
        #expect(conflict("/dev/null", "/dev/null", files: ["a", "b"]) == nil)
        #expect(conflict("\(directory)/none/a", files: ["a"]) == nil)
    }
}
