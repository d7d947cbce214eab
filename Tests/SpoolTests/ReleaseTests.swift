import Foundation
import Platform
import Spool
import Synchronization
import Testing

struct ReleaseTests {
    /// A clock that tests set.
    final class TestClock: Sendable {
        private let time = Atomic<Int64>(Clock.now())
        var now: Microseconds { time.load(ordering: .relaxed) }
        func advance(seconds: Int) {
            time.wrappingAdd(Int64(seconds) * 1_000_000, ordering: .relaxed)
        }
    }

    static func options(
        _ clock: TestClock, keepSeconds: Int = 3600, keepBytes: Int = 1 << 30
    ) -> SpoolOptions {
        var options = SpoolTests.small()
        options.keepSeconds = keepSeconds
        options.keepBytes = keepBytes
        options.now = { clock.now }
        return options
    }

    @Test func tooMuchToLoadIsRefusedUntilItIsLoaded() throws {
        var options = SpoolTests.small()
        options.bytesMax = 1000
        try SpoolFixture().open(options) { (spool: Spool) throws in
            var last: SpoolMark?
            var refused: SpoolError?
            var taken = 0
            for number in 0..<40 {
                do throws(SpoolError) {
                    try spool.append(SpoolFixture.payload(number), events: 1) { _ in }
                    taken += 1
                } catch {
                    refused = error
                    break
                }
            }
            guard case .full(let bytes, 1000) = refused else {
                Issue.record("\(String(describing: refused))")
                return
            }
            #expect(bytes > 900)
            let reader = try spool.makeReader(from: nil)
            for _ in 0..<taken { last = try reader.next(timeoutMilliseconds: 60_000)?.mark }
            spool.released(upTo: try #require(last))
            #expect(spool.statistics.unloadedBytes == 0)
            _ = try spool.appendAndWait([1]).get()
        }
    }

    /// A record can be loaded before its completion has run: its bytes do not wait any more then.
    @Test func whatIsLoadedMakesRoomBeforeItIsAnswered() throws {
        var options = SpoolTests.small()
        options.bytesMax = 1000
        try SpoolFixture().open(options) { (spool: Spool) throws in
            let large = [UInt8](repeating: 7, count: 900)
            let outcome = Mutex<Result<SpoolMark, SpoolError>?>(nil)
            let isDone = DispatchSemaphore(value: 0)
            try spool.append(large, events: 1) { first in
                do throws(SpoolError) {
                    spool.released(upTo: try first.get())
                    try spool.append(large, events: 1) { second in
                        outcome.withLock { $0 = second }
                        isDone.signal()
                    }
                } catch {
                    outcome.withLock { $0 = .failure(error) }
                    isDone.signal()
                }
            }
            isDone.wait()
            _ = try outcome.withLock { try #require($0) }.get()
        }
    }

    @Test func loadedSegmentsAreKeptForTheirTime() throws {
        let clock = TestClock()
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        let count = try fixture.segments().count
        try fixture.open(Self.options(clock)) { (spool: Spool) throws in
            spool.released(upTo: marks[19])
            #expect(spool.statistics.unloadedBytes == 0)
            clock.advance(seconds: 3599)
            spool.released(upTo: marks[19])
            #expect(try fixture.segments().count == count)
            #expect(try spool.makeReader(from: nil).all().count == 20)
            clock.advance(seconds: 2)
            spool.released(upTo: marks[19])
            // The one with the mark is never deleted.
            #expect(try fixture.segments() == [String(format: "%012d.seg", marks[19].segment)])
            #expect(spool.statistics.segments == 1)
            #expect(try spool.makeReader(from: marks[19]).all().isEmpty)
        }
    }

    @Test func loadedSegmentsAreKeptUpToTheirBytes() throws {
        let clock = TestClock()
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        try fixture.open(Self.options(clock, keepBytes: 600)) { (spool: Spool) throws in
            spool.released(upTo: marks[19])
            let kept = try fixture.segments().dropLast().map { try fixture.bytes($0).count }
            #expect(kept.count == 2)
            #expect(kept.reduce(0, +) <= 600)
        }
    }

    @Test func nothingIsDeletedThatAReaderHasStillToRead() throws {
        let clock = TestClock()
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        let count = try fixture.segments().count
        try fixture.open(Self.options(clock, keepSeconds: 0, keepBytes: 0)) {
            (spool: Spool) throws in
            var reader: SpoolReader? = try spool.makeReader(from: marks[9])
            clock.advance(seconds: 10)
            spool.released(upTo: marks[19])
            #expect(try fixture.segments().count == count - Int(marks[9].segment) + 1)
            #expect(try reader?.all().count == 10)
            reader = nil
            spool.released(upTo: marks[19])
            #expect(try fixture.segments().count == 1)
        }
    }

    @Test func nothingIsDeletedBeforeTheDatabaseHasSpoken() throws {
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        let clock = TestClock()
        let count = try fixture.segments().count
        try fixture.open(Self.options(clock)) { $0.released(upTo: marks[19]) }
        clock.advance(seconds: 1 << 20)
        try fixture.open(Self.options(clock, keepSeconds: 0, keepBytes: 0)) {
            (spool: Spool) throws in
            // What was loaded is known, so that only the rest counts as waiting.
            #expect(spool.statistics.unloadedBytes < spool.statistics.bytes / 2)
            for number in 0..<20 {
                _ = try spool.appendAndWait(SpoolFixture.payload(number)).get()
            }
            // A restored database is behind: what it needs again stays.
            spool.released(upTo: marks[5])
            #expect(try spool.makeReader(from: marks[5]).all().count == 34)
            #expect(try fixture.segments().count > count - Int(marks[5].segment))
        }
    }

    @Test func theTimeOfLoadingSurvivesARestart() throws {
        let clock = TestClock()
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        let count = try fixture.segments().count
        try fixture.open(Self.options(clock)) { $0.released(upTo: marks[19]) }
        clock.advance(seconds: 1800)
        try fixture.open(Self.options(clock)) { (spool: Spool) throws in
            spool.released(upTo: marks[19])
            #expect(try fixture.segments().count == count)
        }
        clock.advance(seconds: 1900)
        try fixture.open(Self.options(clock)) { (spool: Spool) throws in
            spool.released(upTo: marks[19])
            #expect(try fixture.segments().count == 1)
        }
    }

    @Test func aMarkAheadOfTheSpoolReleasesNothing() throws {
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        let clock = TestClock()
        try fixture.open(Self.options(clock, keepSeconds: 0, keepBytes: 0)) {
            (spool: Spool) throws in
            let before = spool.statistics
            spool.released(
                upTo: SpoolMark(segment: marks[19].segment + 1, offset: 64, chain: 0))
            #expect(spool.statistics == before)
        }
    }

    @Test func aScanBesideTheDaemonSeesAPrefix() throws {
        let fixture = try SpoolFixture()
        try fixture.open(SpoolTests.small(2000)) { (spool: Spool) throws in
            let isDone = Atomic(false)
            let thread = Thread.start(name: "append") {
                for number in 0..<400 {
                    try? spool.append(SpoolFixture.payload(number), events: 1) { _ in }
                }
                _ = try? spool.appendAndWait(SpoolFixture.payload(400))
                isDone.store(true, ordering: .releasing)
            }
            var last = 0
            repeat {
                let (payloads, scan) = try fixture.scanned()
                #expect(payloads == (0..<payloads.count).map(SpoolFixture.payload))
                #expect(payloads.count >= last)
                #expect(scan.records == payloads.count)
                #expect(scan.quarantinedRecords == 0)
                last = payloads.count
            } while !isDone.load(ordering: .acquiring)
            thread.join()
            let (payloads, scan) = try fixture.scanned()
            #expect(payloads.count == 401)
            #expect(try spool.makeReader(from: scan.end).all().isEmpty)
        }
    }

    @Test func theFirstRecordAfterEachMarkIsTheNextOne() throws {
        var options = SpoolOptions()
        options.segmentBytesMax = 200
        let fixture = try SpoolFixture.filled(20, options).fixture
        var mark: SpoolMark?
        for number in 0..<20 {
            let record = try SpoolFiles.first(directory: fixture.path, from: mark)
            #expect(record?.payload == SpoolFixture.payload(number))
            mark = record?.mark
        }
        #expect(try SpoolFiles.first(directory: fixture.path, from: mark) == nil)
    }

    /// A report looks there each time, most often when all of the spool has been loaded.
    @Test(.timeLimit(.minutes(1)))
    func nothingIsReadWhereNothingIsAfterTheMark() throws {
        let fixture = try SpoolFixture.filled(1).fixture
        let first = try #require(try SpoolFiles.first(directory: fixture.path, from: nil))
        // More than could be read in that time, and none of it takes place on the disk.
        let bytes = 1 << 38
        #expect(unsafe truncate(fixture.path + "/000000000001.seg", bytes) == 0)
        let end = SpoolMark(
            segment: first.mark.segment, offset: UInt64(bytes), chain: first.mark.chain)
        #expect(try SpoolFiles.first(directory: fixture.path, from: end) == nil)
    }
}
