import Demo
import Foundation
import Glibc
import Options
import Sample
import Testing

@Suite struct DemoRunTests {
    /// Counts what is started and stopped, and fails where a test wants.
    final class FakeBackend: DemoBackend {
        enum Failure { case none, start, key, report }
        var failure = Failure.none
        var directory = ""
        var isRunning = false
        var stops = 0

        func start(
            dataDirectory: String, isCancelled: () -> Bool
        ) throws(DemoError) -> String {
            directory = dataDirectory
            isRunning = true
            if failure == .start { throw DemoError("cannot start") }
            return "http://127.0.0.1:1"
        }
        func createKey(app: String) throws(DemoError) -> String {
            if failure == .key { throw DemoError("no key") }
            return "key"
        }
        func waitingEvents() throws(DemoError) -> Int { 0 }
        func report() throws(DemoError) -> String { "REPORT" }
        func stop() {
            isRunning = false
            stops += 1
        }
    }

    static func run(
        _ backend: FakeBackend, directory: String? = nil, isCancelled: Bool = false
    ) -> (code: Int32, output: String) {
        var sample = SampleOptions(anchorSeconds: 1_795_996_800)
        sample.percent = 1
        var options = DemoOptions(sample: sample)
        options.dataDirectory = directory
        let terminal = Terminal(
            descriptor: -1, surroundings: Surroundings(variables: [:], isRoot: false))
        var output = ""
        let run = DemoRun(
            options: options, backend: backend, terminal: terminal,
            isCancelled: { isCancelled }, sleep: {}, output: { output += $0 })
        return (run.run(), output)
    }

    static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test(arguments: [FakeBackend.Failure.start, .key]) func aFailedStepStopsWhatWasStarted(
        failure: FakeBackend.Failure
    ) {
        let backend = FakeBackend()
        backend.failure = failure
        #expect(Self.run(backend).code == 1)
        #expect(!backend.isRunning && backend.stops == 1)
        #expect(!backend.directory.isEmpty && !Self.exists(backend.directory))
    }

    @Test func cancellingStopsWhatWasStarted() {
        let backend = FakeBackend()
        #expect(Self.run(backend, isCancelled: true).code == 1)
        #expect(!backend.isRunning && backend.stops == 1)
        #expect(!Self.exists(backend.directory))
    }

    @Test func aDirectoryOfTheUserIsMadeAndStays() {
        let backend = FakeBackend()
        backend.failure = .key
        let path = NSTemporaryDirectory() + "/tapline-\(UUID().uuidString)/a/b"
        #expect(Self.run(backend, directory: path).code == 1)
        #expect(backend.directory == path)
        #expect(Self.exists(path))
        try? FileManager.default.removeItem(atPath: path)
    }
}
