import Foundation
import Glibc
import Platform
import Spool
import Testing

struct FaultTests {
    /// Runs appends under a fault, and checks that exactly the acknowledged ones are delivered.
    static func expectOnlyAcknowledged(
        _ fixture: SpoolFixture, _ acknowledged: [[UInt8]]
    ) throws {
        #expect(try fixture.scanned().payloads == acknowledged)
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads == acknowledged)
        #expect(statistics.tornTails == 0)
        #expect(statistics.quarantinedRecords == 0)
    }

    @Test(arguments: [true, false]) func shortWritesAreContinued(isDirect: Bool) throws {
        let faulty = FaultyStorage()
        faulty.faults.withLock {
            $0.writeBytesMax = 3
            $0.isDirect = isDirect
        }
        let fixture = try SpoolFixture()
        // One of several blocks, too.
        let payloads = (0..<4).map(SpoolFixture.payload) + [Array(repeating: 7, count: 20_000)]
        try fixture.open(faulty.options) { spool in
            for payload in payloads { _ = try spool.appendAndWait(payload).get() }
        }
        try Self.expectOnlyAcknowledged(fixture, payloads)
    }

    @Test(arguments: 0..<140, [true, false]) func aFullDiskRefusesAndRecoversAlone(
        step: Int, isDirect: Bool
    ) throws {
        let faulty = FaultyStorage()
        faulty.faults.withLock { $0.isDirect = isDirect }
        // Up to what five of the six appends write: a block each.
        let free = step * 5 * BlockBuffer.blockBytes / 139
        let fixture = try SpoolFixture()
        var acknowledged: [[UInt8]] = []
        try fixture.open(faulty.options) { spool in
            _ = try spool.appendAndWait([1]).get()
            acknowledged.append([1])
            faulty.faults.withLock { $0.bytesFree = free }
            for number in 0..<6 {
                let payload = SpoolFixture.payload(number)
                switch try spool.appendAndWait(payload) {
                case .success: acknowledged.append(payload)
                case .failure(.noSpace(let error)):
                    #expect(error.action == "append to spool segment")
                    #expect(spool.statistics.degradedReason?.hasSuffix("device") == true)
                case .failure(let error): Issue.record("\(error)")
                }
            }
            #expect(spool.statistics.failures > 0)
            faulty.faults.withLock { $0.bytesFree = nil }
            _ = try spool.appendAndWait([2]).get()
            acknowledged.append([2])
            #expect(spool.statistics.degradedReason == nil)
            #expect(try spool.makeReader(from: nil).all().map(\.payload) == acknowledged)
        }
        try Self.expectOnlyAcknowledged(fixture, acknowledged)
    }

    @Test func afterAFailedSyncTheSegmentIsNeverUsedAgain() throws {
        let faulty = FaultyStorage()
        let fixture = try SpoolFixture()
        try fixture.open(faulty.options) { spool in
            let before = try spool.appendAndWait([1]).get()
            faulty.faults.withLock { $0.syncFails = true }
            let failure = try spool.appendAndWait([2])
            #expect(throws: SpoolError.self) { try failure.get() }
            let syncs = faulty.faults.withLock { $0.syncs }
            #expect(throws: SpoolError.self) { try spool.appendAndWait([3]).get() }
            // The one of the new segment's header; the failed one is not repeated.
            #expect(faulty.faults.withLock { $0.syncs } == syncs + 1)
            faulty.faults.withLock { $0.syncFails = false }
            let after = try spool.appendAndWait([4]).get()
            #expect(after.segment > before.segment)
            #expect(try spool.makeReader(from: before).all().map(\.payload) == [[4]])
        }
        try Self.expectOnlyAcknowledged(fixture, [[1], [4]])
    }

    @Test func aFailedWriteFailsItsWholeGroup() throws {
        let faulty = FaultyStorage()
        faulty.faults.withLock { $0.writeFails = true }
        let fixture = try SpoolFixture()
        try fixture.open(faulty.options) { spool in
            let results = Sync.Monitor<[Bool]>([])
            for number in 0..<50 {
                try spool.append(SpoolFixture.payload(number), events: 1) { result in
                    results.withLock { $0.append((try? result.get()) != nil) }
                    results.broadcast()
                }
            }
            let all = results.wait(until: Clock.deadline(inMilliseconds: 60_000)) {
                $0.count == 50 ? $0 : nil
            }
            #expect(all?.contains(true) == false)
            #expect(spool.statistics.segments == 0)
            #expect(try fixture.segments() == [])
        }
        try Self.expectOnlyAcknowledged(fixture, [])
    }

    /// Random faults, with restarts: acknowledged records come once, in order, and nothing else but
    /// records that were appended.
    @Test(arguments: 0..<60) func anyMixOfFaultsKeepsThePromise(seed: Int) throws {
        var random = SplitMix(state: UInt64(seed))
        let faulty = FaultyStorage()
        let isDirect = seed % 2 == 0
        faulty.faults.withLock { $0.isDirect = isDirect }
        let fixture = try SpoolFixture()
        var options = faulty.options
        options.segmentBytesMax = 300
        var acknowledged: [Int] = []
        var number = 0
        for _ in 0..<4 {
            try fixture.open(options) { spool in
                for _ in 0..<Int.random(in: 0...20, using: &random) {
                    faulty.faults.withLock { faults in
                        let dice = Int.random(in: 0..<8, using: &random)
                        faults.writeFails = dice == 0
                        faults.syncFails = dice == 1
                        faults.truncateFails = dice <= 2 && Bool.random(using: &random)
                        faults.bytesFree =
                            dice == 2 ? Int.random(in: 0...2, using: &random) * 2_500 : nil
                        faults.writeBytesMax = dice == 3 ? 5 : .max
                    }
                    if case .success = try spool.appendAndWait(SpoolFixture.payload(number)) {
                        acknowledged.append(number)
                    }
                    number += 1
                }
                faulty.faults.withLock { $0 = .init(isDirect: isDirect) }
                // While it runs, exactly what is acknowledged and readable is seen.
                let seen = try spool.makeReader(from: nil).all().map(\.payload)
                #expect(acknowledged.allSatisfy { seen.contains(SpoolFixture.payload($0)) })
            }
        }
        let payloads = try fixture.delivered().payloads
        let issued = (0..<number).map(SpoolFixture.payload)
        let numbers = payloads.compactMap { issued.firstIndex(of: $0) }
        #expect(numbers.count == payloads.count)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy(<))
        #expect(Set(acknowledged).isSubset(of: numbers))
    }

    /// What replaces the file system elsewhere here is, unless it is replaced, the file system.
    @Test func theSyncOfASpoolIsThatOfTheKernel() {
        func sync(_ path: String) throws { try SpoolStorage.system.sync(File(path, .read)) }
        #expect(throws: SystemError.self) { try sync("/dev/null") }
        #expect(throws: SystemError.self) { try SpoolStorage.system.syncDirectory("/proc") }
    }

    /// Mounts a file system of 1 MiB.
    private static func mountTinyDisk(_ path: String) -> Bool {
        unsafe mount("tmpfs", path, "tmpfs", 0, "size=1m") == 0
    }

    /// Whether this machine lets us mount one.
    static let canMount: Bool = {
        guard let fixture = try? SpoolFixture(), mountTinyDisk(fixture.path) else { return false }
        unsafe umount(fixture.path)
        return true
    }()

    static func withTinyDisk(_ body: (SpoolFixture) throws -> Void) throws {
        let fixture = try SpoolFixture()
        try #require(mountTinyDisk(fixture.path))
        defer { unsafe umount(fixture.path) }
        try body(fixture)
    }

    @Test(.enabled(if: canMount, "needs the right to mount a file system"))
    func aReallyFullDiskRefusesAndRecoversAlone() throws {
        var options = SpoolTests.small(300_000)
        options.keepBytes = 0
        try Self.withTinyDisk { fixture in
            var acknowledged: [SpoolMark] = []
            try fixture.open(options) { spool in
                let payload = Array(repeating: UInt8(7), count: 90_000)
                var failures = 0
                while failures < 3 {
                    switch try spool.appendAndWait(payload) {
                    case .success(let mark): acknowledged.append(mark)
                    case .failure(.noSpace): failures += 1
                    case .failure(let error): throw error
                    }
                }
                #expect(acknowledged.count >= 8)
                let records = try spool.makeReader(from: nil).all()
                #expect(records.map(\.mark) == acknowledged)
                // Loading frees the older segments, and with them the space.
                spool.released(upTo: try #require(acknowledged.last))
                _ = try spool.appendAndWait(payload).get()
            }
        }
    }
}

/// A small generator with a seed, for tests that repeat.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
