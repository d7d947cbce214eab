import Foundation
import Platform
import Spool
import Synchronization
import Testing

struct SpoolTests {
    static func small(_ bytes: Int = 256) -> SpoolOptions {
        var options = SpoolOptions()
        options.segmentBytesMax = bytes
        return options
    }

    @Test func recordsAreReadInTheOrderOfTheirAppending() throws {
        let fixture = try SpoolFixture()
        try fixture.open { spool in
            var marks: [SpoolMark] = []
            for number in 0..<20 {
                marks.append(try spool.appendAndWait(SpoolFixture.payload(number), events: 3).get())
            }
            let records = try spool.makeReader(from: nil).all()
            #expect(records.map(\.payload) == (0..<20).map(SpoolFixture.payload))
            #expect(records.map(\.mark) == marks)
            #expect(marks == marks.sorted())
            #expect(records.allSatisfy { $0.events == 3 })
            let statistics = spool.statistics
            #expect(statistics.pushedRecords == 20)
            #expect(statistics.syncedRecords == 20)
            #expect(statistics.syncedEvents == 60)
            #expect(statistics.segments == 1)
            #expect(statistics.bytes == Int(marks[19].offset))
        }
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 1 << 20, 3 << 20])
    func aRecordOfAnySizeSurvives(count: Int) throws {
        let fixture = try SpoolFixture()
        let payloads = [Random.bytes(count), Random.bytes(7), Random.bytes(count)]
        try fixture.open { spool in
            for payload in payloads { _ = try spool.appendAndWait(payload).get() }
        }
        #expect(try fixture.delivered().payloads == payloads)
    }

    @Test func aRecordOverTheLimitIsRefused() throws {
        var options = SpoolOptions()
        options.recordBytesMax = 10
        try SpoolFixture().open(options) { spool in
            _ = try spool.appendAndWait(Array(repeating: 1, count: 10)).get()
            #expect(throws: SpoolError.tooLarge(bytes: 11, limit: 10)) {
                try spool.append(Array(repeating: 1, count: 11), events: 1) { _ in }
            }
        }
    }

    @Test func aFullSegmentIsFollowedByANewOne() throws {
        let (fixture, marks) = try SpoolFixture.filled(30, Self.small())
        #expect(try fixture.segments().count > 4)
        #expect(try Set(marks.map(\.segment)).count == fixture.segments().count)
        for name in try fixture.segments() { #expect(try fixture.bytes(name).count <= 256) }
        #expect(try fixture.delivered().payloads == (0..<30).map(SpoolFixture.payload))
    }

    @Test func aRecordLargerThanASegmentGetsItsOwn() throws {
        let fixture = try SpoolFixture()
        let payloads = [[1], Array(repeating: 2, count: 1000), [3]] as [[UInt8]]
        let marks = try fixture.open(Self.small()) { spool in
            try payloads.map { try spool.appendAndWait($0).get() }
        }
        #expect(marks.map(\.segment) == [1, 2, 3])
        #expect(try fixture.delivered().payloads == payloads)
    }

    @Test func eachStartWritesToANewSegment() throws {
        let fixture = try SpoolFixture()
        for number in 0..<3 {
            try fixture.open { _ = try $0.appendAndWait(SpoolFixture.payload(number)).get() }
        }
        try fixture.open { _ in }
        #expect(try fixture.segments().count == 3)
        #expect(try fixture.delivered().payloads == (0..<3).map(SpoolFixture.payload))
    }

    @Test func aReaderWaitsForWhatIsNotYetThere() throws {
        try SpoolFixture().open(Self.small()) { spool in
            let reader = try spool.makeReader(from: nil)
            #expect(try reader.next(timeoutMilliseconds: 1) == nil)
            let thread = Thread.start(name: "append") {
                for number in 0..<50 { _ = try? spool.appendAndWait(SpoolFixture.payload(number)) }
            }
            for number in 0..<50 {
                let record = try reader.next(timeoutMilliseconds: 60_000)
                #expect(record?.payload == SpoolFixture.payload(number))
            }
            thread.join()
        }
    }

    @Test func aHurriedReaderTakesWhatIsThereAndWaitsNoMore() throws {
        try SpoolFixture().open(Self.small()) { spool in
            let reader = try spool.makeReader(from: nil)
            let other = try spool.makeReader(from: nil)
            let number = reader.reader
            let thread = Thread.start(name: "hurry") { spool.hurry(reader: number) }
            // Would else wait for much longer than a test may take.
            #expect(try reader.next(timeoutMilliseconds: 86_400_000) == nil)
            thread.join()
            for number in 0..<9 { _ = try spool.appendAndWait(SpoolFixture.payload(number)).get() }
            for number in 0..<9 {
                let record = try reader.next(timeoutMilliseconds: 86_400_000)
                #expect(record?.payload == SpoolFixture.payload(number))
            }
            #expect(try reader.next(timeoutMilliseconds: 86_400_000) == nil)
            // The others do not know of it.
            #expect(try other.next(timeoutMilliseconds: 0) != nil)
        }
    }

    @Test func appendsThatGatherDuringASyncShareTheNext() throws {
        let gate = Sync.Monitor(false)
        var options = SpoolOptions()
        let syncs = Atomic(0)
        let system = options.storage
        options.storage.sync = { file throws(SystemError) in
            _ = gate.wait(until: Clock.deadline(inMilliseconds: 60_000)) { $0 ? true : nil }
            syncs.wrappingAdd(1, ordering: .relaxed)
            try system.sync(file)
        }
        let fixture = try SpoolFixture()
        try fixture.open(options) { spool in
            let done = Sync.Monitor(0)
            for number in 0..<500 {
                try spool.append(SpoolFixture.payload(number), events: 1) { result in
                    #expect((try? result.get()) != nil)
                    done.withLock { $0 += 1 }
                    done.broadcast()
                }
            }
            gate.withLock { $0 = true }
            gate.broadcast()
            let deadline = Clock.deadline(inMilliseconds: 60_000)
            #expect(done.wait(until: deadline) { $0 == 500 ? true : nil } == true)
            // The header, then at most two groups: those before and those during its sync.
            #expect(syncs.load(ordering: .relaxed) <= 3)
            #expect(spool.statistics.syncs <= 2)
        }
        #expect(try fixture.delivered().payloads == (0..<500).map(SpoolFixture.payload))
    }

    @Test func closingEndsWhatIsQueuedAndRefusesTheRest() throws {
        let fixture = try SpoolFixture()
        let spool = try Spool(directory: fixture.path)
        let reader = try spool.makeReader(from: nil)
        let synced = Atomic(0)
        for number in 0..<100 {
            try spool.append(SpoolFixture.payload(number), events: 1) { result in
                if (try? result.get()) != nil { synced.wrappingAdd(1, ordering: .relaxed) }
            }
        }
        spool.close()
        #expect(synced.load(ordering: .relaxed) == 100)
        #expect(throws: SpoolError.closing) { try spool.append([1], events: 1) { _ in } }
        for _ in 0..<100 { #expect(try reader.next(timeoutMilliseconds: 0) != nil) }
        #expect(throws: SpoolError.closing) { try reader.next(timeoutMilliseconds: 60_000) }
    }

    @Test func aSecondDaemonIsRefused() throws {
        let fixture = try SpoolFixture()
        try fixture.open { _ in
            #expect(throws: SpoolError.locked(directory: fixture.path)) {
                try Spool(directory: fixture.path)
            }
        }
        try fixture.open { _ in }
    }

    // MARK: Identity

    @Test func theIdentityIsKept() throws {
        let fixture = try SpoolFixture()
        let (id, epoch) = try fixture.open { ($0.id, $0.epoch) }
        let wanted = SpoolID.random()
        try fixture.open { spool in
            #expect(spool.id == id)
            #expect(spool.epoch == epoch)
            try spool.setEpoch(wanted)
            try spool.resetID()
            #expect(spool.id != id)
        }
        let found = try SpoolFiles.identity(directory: fixture.path)
        try fixture.open { spool in
            #expect(spool.epoch == wanted)
            #expect(spool.id != id)
            #expect(found?.id == spool.id)
        }
    }

    @Test func aNewIDIsInTheHeadersThatFollow() throws {
        let fixture = try SpoolFixture()
        let id = try fixture.open { (spool: Spool) throws in
            _ = try spool.appendAndWait([1]).get()
            try spool.resetID()
            _ = try spool.appendAndWait([2]).get()
            return spool.id
        }
        #expect(try Array(fixture.bytes("000000000002.seg")[16..<32]) == id.bytes)
        #expect(try fixture.delivered().payloads == [[1], [2]])
    }

    @Test func aDeletedGrowingSegmentIsAnErrorAndNoEndlessLoop() throws {
        let fixture = try SpoolFixture()
        try fixture.open { (spool: Spool) throws in
            _ = try spool.appendAndWait([1]).get()
            try fixture.remove("000000000001.seg")
            let reader = try spool.makeReader(from: nil)
            #expect(throws: SpoolError.self) { try reader.next(timeoutMilliseconds: 0) }
            try spool.resetID()
            _ = try spool.appendAndWait([2]).get()
            #expect(try reader.next(timeoutMilliseconds: 0)?.payload == [2])
            #expect(spool.statistics.missingSegments > 0)
        }
    }

    @Test func aLostIdentityKeepsTheIDAndChangesTheEpoch() throws {
        let (fixture, _) = try SpoolFixture.filled(3)
        let old = try SpoolFiles.identity(directory: fixture.path)
        var bytes = try fixture.bytes("identity")
        bytes[20] ^= 1
        try fixture.write("identity", bytes)
        #expect(try SpoolFiles.identity(directory: fixture.path) == nil)
        try fixture.open { spool in
            #expect(spool.id == old?.id)
            #expect(spool.epoch != old?.epoch)
        }
    }

    @Test func anIDIsTheTextOfAUUID() throws {
        let id = SpoolID(bytes: Array(0..<16))
        #expect("\(id)" == "00010203-0405-0607-0809-0a0b0c0d0e0f")
        #expect(SpoolID("00010203-0405-0607-0809-0A0B0C0D0E0F") == id)
        #expect(SpoolID("00010203-0405-0607-0809-0a0b0c0d0e0g") == nil)
        #expect(SpoolID("000102030405060708090a0b0c0d0e0f") == nil)
    }

    /// Records of all sizes beside the ends of blocks, of the writer's buffer and of the reader's window: who
    /// follows the writer sees each at once, and so does who reads beside the daemon.
    @Test(arguments: [true, false]) func whoFollowsTheWriterReadsEachRecord(isDirect: Bool) throws {
        let faulty = FaultyStorage()
        faulty.faults.withLock { $0.isDirect = isDirect }
        var options = faulty.options
        options.segmentBytesMax = 3 << 20
        let fixture = try SpoolFixture()
        var random = SplitMix(state: 7)
        let sizes =
            (4_040...4_100).map { $0 } + [1 << 20, (1 << 20) - 64 - 24, 2_500_000, 1, 0]
            + (0..<60).map { _ in Int.random(in: 0...9_000, using: &random) } + [1_500_000, 5]
        try fixture.open(options) { spool in
            let reader = try spool.makeReader(from: nil)
            var payloads: [[UInt8]] = []
            for size in sizes {
                let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* size) }
                payloads.append(payload)
                let mark = try spool.appendAndWait(payload).get()
                let record = try #require(try reader.next(timeoutMilliseconds: 0))
                #expect(record.payload == payload && record.mark == mark, "\(size) bytes")
                #expect(try reader.next(timeoutMilliseconds: 0) == nil)
                // The end is known without a walk over all before it.
                #expect(try spool.makeReader(from: mark).next(timeoutMilliseconds: 0) == nil)
                #expect(try SpoolFiles.first(directory: fixture.path, from: mark) == nil)
            }
            #expect(spool.statistics.segments > 2)
            #expect(try fixture.scanned().payloads == payloads)
            #expect(try fixture.scanned().1.quarantinedRecords == 0)
            #expect(try spool.makeReader(from: nil).all().map(\.payload) == payloads)
            #expect(spool.statistics.quarantinedRecords == 0)
        }
    }

    /// A mark that only looks like the end is of no history.
    @Test func theEndIsKnownByItsChain() throws {
        let fixture = try SpoolFixture()
        try fixture.open { spool in
            let mark = try spool.appendAndWait([1]).get()
            let other = SpoolMark(
                segment: mark.segment, offset: mark.offset, chain: mark.chain ^ 1)
            #expect(throws: SpoolError.notThisSpool(other)) { try spool.makeReader(from: other) }
        }
    }
}
