import Foundation
import Platform
import Spool
import Testing

/// Cuts and flips of a spool of 20 records, against what must be delivered.
struct DamageTests {
    static let count = 20
    static let all = (0..<count).map(SpoolFixture.payload)

    /// The number of the record that holds a byte; nil is the header.
    static func record(at offset: Int, _ marks: [SpoolMark]) -> Int? {
        offset < 64 ? nil : marks.firstIndex { offset < Int($0.offset) }
    }

    @Test func aCutAtEachByteCostsOnlyWhatItCuts() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count)
        let name = "000000000001.seg"
        let whole = try fixture.bytes(name)
        let ends = marks.map { Int($0.offset) }
        for cut in Array(0...110) + Array(ends[16]...whole.count) {
            let copy = try SpoolFixture(copying: fixture)
            try copy.write(name, Array(whole.prefix(cut)))
            let kept = ends.filter { $0 <= cut }.count
            let expected = Array(Self.all.prefix(kept))
            #expect(try copy.scanned().payloads == expected, "cut at \(cut)")
            let (payloads, statistics) = try copy.delivered()
            #expect(payloads == expected, "cut at \(cut)")
            #expect(statistics.quarantinedRecords == 0)
            #expect(statistics.tornTails == (cut == 64 || ends.contains(cut) ? 0 : 1))
            // The spool goes on, and the next start finds no tail.
            try copy.open { _ = try $0.appendAndWait([9]).get() }
            let (after, again) = try copy.delivered()
            #expect(after == expected + [[9]])
            #expect(again.tornTails == 0)
        }
    }

    @Test func aFlipOfEachByteCostsOnlyItsRecord() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count)
        let name = "000000000001.seg"
        let whole = try fixture.bytes(name)
        let ends = marks.map { Int($0.offset) }
        for place in Array(0..<ends[1]) + Array(ends[15]..<whole.count) {
            // Each bit of the last record and of the header, one of each other byte.
            let isWhole = place < 64 || place >= ends[18]
            for bit in isWhole ? Array(0..<8) : [place % 8] {
                let copy = try SpoolFixture(copying: fixture)
                var bytes = whole
                bytes[place] ^= 1 << UInt8(bit)
                try copy.write(name, bytes)
                var expected = Self.all
                let lost = Self.record(at: place, marks)
                if let lost { expected.remove(at: lost) }
                // The last record cannot be told from a torn tail.
                let isTorn = lost == Self.count - 1
                let quarantined = lost == nil || isTorn ? 0 : 1
                let (scanned, scan) = try copy.scanned()
                #expect(scanned == expected, "flip at \(place)")
                #expect(scan.quarantinedRecords == quarantined)
                let (payloads, statistics) = try copy.delivered()
                #expect(payloads == expected, "flip at \(place)")
                #expect(statistics.tornTails == (isTorn ? 1 : 0))
                #expect(statistics.quarantinedRecords == quarantined)
                #expect(copy.quarantined().count == quarantined)
            }
        }
    }

    @Test func aFlipInASealedSegmentIsNeverATail() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        let name = "000000000002.seg"
        let whole = try fixture.bytes(name)
        let numbers = marks.indices.filter { marks[$0].segment == 2 }
        for place in 64..<whole.count {
            let copy = try SpoolFixture(copying: fixture)
            var bytes = whole
            bytes[place] ^= 0x10
            try copy.write(name, bytes)
            let lost = try #require(numbers.first { place < Int(marks[$0].offset) })
            var expected = Self.all
            expected.remove(at: lost)
            #expect(try copy.scanned().payloads == expected)
            #expect(try copy.scanned().1.quarantinedRecords == 1)
            for _ in 0..<2 {
                // Read twice, it is counted once.
                let (payloads, statistics) = try copy.delivered()
                #expect(payloads == expected, "flip at \(place)")
                #expect(statistics.quarantinedRecords == 1)
                #expect(statistics.tornTails == 0)
            }
            #expect(try copy.scanned().1.quarantinedRecords == 1)
            // A mark after the damage still holds.
            let last = marks[numbers.last!]
            if lost != numbers.last {
                try copy.open { spool in _ = try spool.makeReader(from: last) }
            }
        }
    }

    @Test func aCutSealedSegmentIsSetAsideOnceAndTheRestDelivered() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        let whole = try fixture.bytes("000000000002.seg")
        for cut in 64..<whole.count {
            let copy = try SpoolFixture(copying: fixture)
            try copy.write("000000000002.seg", Array(whole.prefix(cut)))
            let expected = marks.indices.filter {
                marks[$0].segment != 2 || Int(marks[$0].offset) <= cut
            }.map { Self.all[$0] }
            #expect(try copy.delivered().payloads == expected)
        }
    }

    @Test(arguments: [1, 23, 24, 100, 5000])
    func aTailOfZerosIsCutOff(zeros: Int) throws {
        let (fixture, _) = try SpoolFixture.filled(Self.count)
        let whole = try fixture.bytes("000000000001.seg")
        try fixture.write("000000000001.seg", whole + Array(repeating: 0, count: zeros))
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads == Self.all)
        #expect(statistics.tornTails == 1)
        #expect(statistics.tornTailBytes == zeros)
        #expect(try fixture.bytes("000000000001.seg") == whole)
    }

    /// A writer fills the last block with zeros, and whoever kills it leaves them.
    @Test func zerosThatFillABlockAreNoTailAndNoDamage() throws {
        let (fixture, _) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        let names = try fixture.segments()
        let whole = try names.map { try fixture.bytes($0) }
        for (name, bytes) in zip(names, whole) {
            let padding = BlockBuffer.roundedUp(bytes.count) - bytes.count
            try fixture.write(name, bytes + Array(repeating: 0, count: padding))
        }
        let (scanned, scan) = try fixture.scanned()
        #expect(scanned == Self.all && scan.quarantinedRecords == 0)
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads == Self.all)
        #expect(statistics.tornTails == 0 && statistics.quarantinedRecords == 0)
        #expect(try fixture.bytes(names.last!) == whole.last!)
    }

    /// A block more of zeros, or one that is not to its end, is a tail.
    @Test(arguments: [-1, 1, 4096])
    func zerosThatDoNotFillABlockAreATail(more: Int) throws {
        let (fixture, _) = try SpoolFixture.filled(Self.count)
        let whole = try fixture.bytes("000000000001.seg")
        let zeros = BlockBuffer.roundedUp(whole.count) - whole.count + more
        try fixture.write("000000000001.seg", whole + Array(repeating: 0, count: zeros))
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads == Self.all)
        #expect(statistics.tornTails == 1 && statistics.tornTailBytes == zeros)
    }

    /// It was being created when the power went.
    @Test(arguments: [0, 10, 63])
    func aBlockWithoutAWholeHeaderHoldsNothing(cut: Int) throws {
        let (fixture, _) = try SpoolFixture.filled(1)
        let header = try fixture.bytes("000000000001.seg").prefix(cut)
        try fixture.write(
            "000000000002.seg", header + Array(repeating: 0, count: BlockBuffer.blockBytes - cut))
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads == [SpoolFixture.payload(0)])
        #expect(statistics.tornTails == 1)
        #expect(statistics.quarantinedRecords == 0 && statistics.missingSegments == 0)
    }

    /// The size of a file may be durable when the last of its bytes are not.
    @Test func zerosInPlaceOfTheLastBytesCostOnlyTheirRecords() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count)
        let name = "000000000001.seg"
        let whole = try fixture.bytes(name)
        let ends = marks.map { Int($0.offset) }
        for place in ends[16]..<whole.count {
            let copy = try SpoolFixture(copying: fixture)
            let zeros = Array(repeating: UInt8(0), count: whole.count - place)
            try copy.write(name, whole.prefix(place) + zeros)
            // A record that ends with zeros of its own may be whole.
            let kept = ends.filter { $0 <= place || whole[place..<$0].allSatisfy { $0 == 0 } }
            let expected = Array(Self.all.prefix(kept.count))
            #expect(try copy.scanned().payloads == expected, "zeros from \(place)")
            let (payloads, statistics) = try copy.delivered()
            #expect(payloads == expected, "zeros from \(place)")
            #expect(statistics.quarantinedRecords == 0)
            #expect(statistics.tornTailBytes == whole.count - (ends.last { $0 <= place } ?? 64))
        }
    }

    @Test func severalDamagedRecordsAreCountedOneByOneWithTheirEvents() throws {
        let fixture = try SpoolFixture()
        let marks = try fixture.open { spool in
            try Self.all.map { try spool.appendAndWait($0, events: 5).get() }
        }
        var bytes = try fixture.bytes("000000000001.seg")
        for number in [4, 5, 6, 12] { bytes[Int(marks[number].offset) - 1] ^= 1 }
        try fixture.write("000000000001.seg", bytes)
        let (payloads, statistics) = try fixture.delivered()
        #expect(
            payloads
                == Self.all.indices.filter { ![4, 5, 6, 12].contains($0) }.map { Self.all[$0] })
        #expect(statistics.quarantinedRecords == 4)
        #expect(statistics.quarantinedEvents == 20)
        #expect(statistics.quarantinedBytes > 100)
        let scan = try fixture.scanned().1
        #expect(scan.quarantinedRecords == 4)
        #expect(scan.quarantinedEvents == 20)
        #expect(scan.events == 80)
    }

    @Test func aForgedRecordInsideADamagedOneIsNotDelivered() throws {
        let fixture = try SpoolFixture()
        // A client that knows the format, but not the marker of the segment.
        let forged = Array(FormatTests.vector()[64...])
        try fixture.open { spool in
            _ = try spool.appendAndWait(forged + forged).get()
            _ = try spool.appendAndWait([7]).get()
        }
        var bytes = try fixture.bytes("000000000001.seg")
        bytes[64 + 8] ^= 1
        try fixture.write("000000000001.seg", bytes)
        #expect(try fixture.delivered().payloads == [[7]])
    }

    @Test func garbageInTheMiddleNeverStopsTheReader() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count)
        var bytes = try fixture.bytes("000000000001.seg")
        let range = Int(marks[3].offset)..<Int(marks[9].offset) - 5
        for place in range { bytes[place] = UInt8.random(in: 0...255) }
        try fixture.write("000000000001.seg", bytes)
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads == Array(Self.all[...3] + Self.all[10...]))
        #expect(statistics.quarantinedRecords == 1)
    }

    @Test func aSegmentOfGarbageIsSetAsideWhole() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        try fixture.write("000000000003.seg", Random.bytes(4000))
        let expected = marks.indices.filter { marks[$0].segment != 3 }.map { Self.all[$0] }
        #expect(try fixture.scanned().payloads == expected)
        for _ in 0..<2 {
            let (payloads, statistics) = try fixture.delivered()
            #expect(payloads == expected)
            #expect(statistics.quarantinedRecords == 1)
            #expect(statistics.quarantinedBytes == 4000)
        }
        #expect(try !fixture.segments().contains("000000000003.seg"))
    }

    // MARK: Whole files

    @Test func aDeletedSegmentCostsItsRecordsAndIsNoticed() throws {
        let (fixture, marks) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        let names = try fixture.segments()
        for (place, name) in names.enumerated() {
            let copy = try SpoolFixture(copying: fixture)
            try copy.remove(name)
            let expected = marks.indices.filter { Int(marks[$0].segment) != place + 1 }
                .map { Self.all[$0] }
            let (payloads, statistics) = try copy.delivered()
            #expect(payloads == expected)
            // The oldest may have been loaded and the newest never have been.
            let isMiddle = place > 0 && place < names.count - 1
            #expect(statistics.missingSegments == (isMiddle ? 1 : 0))
            let lost = try #require(marks.last { Int($0.segment) == place + 1 })
            try copy.open { spool in
                _ = try spool.appendAndWait([1]).get()
                #expect(throws: SpoolError.notThisSpool(lost)) { try spool.makeReader(from: lost) }
            }
        }
    }

    @Test func aCopiedSegmentIsDeliveredOnce() throws {
        let (fixture, _) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        // Of the oldest, of one in the middle and of the newest; as the newest, and twice.
        for name in try fixture.segments() {
            for copies in [["000000000077.seg"], ["000000000077.seg", "000000000078.seg"]] {
                let copy = try SpoolFixture(copying: fixture)
                for other in copies { try copy.write(other, fixture.bytes(name)) }
                #expect(try copy.delivered().payloads == Self.all, "\(name) as \(copies)")
            }
        }
    }

    @Test func aForeignFileIsLeftAlone() throws {
        let (fixture, _) = try SpoolFixture.filled(3)
        try fixture.write("1.seg", [1])
        try fixture.write("notes.txt", [2])
        #expect(try fixture.delivered().payloads.count == 3)
        #expect(try fixture.bytes("1.seg") == [1])
    }

    @Test func olderSegmentsAreNotReadAtTheStart() throws {
        let (fixture, _) = try SpoolFixture.filled(Self.count, SpoolTests.small())
        try fixture.write("000000000001.seg", Random.bytes(300))
        try fixture.open { #expect($0.statistics.quarantinedRecords == 0) }
        #expect(try fixture.segments().contains("000000000001.seg"))
    }

    /// Where the writer was killed: only the last block may be one that is being written.
    @Test(arguments: [true, false])
    func aScanCountsDamageBeforeTheLastBlock(isBefore: Bool) throws {
        let (fixture, marks) = try SpoolFixture.filled(400)
        let name = "000000000001.seg"
        var bytes = try fixture.bytes(name)
        bytes += Array(repeating: 0, count: BlockBuffer.roundedUp(bytes.count) - bytes.count)
        let last = bytes.count - BlockBuffer.blockBytes
        // In the block before the last one, or in that one.
        let start = isBefore ? last - 2_000 : last + 500
        let lost = try #require(marks.firstIndex { Int($0.offset) > start })
        bytes[Int(marks[lost].offset) - 1] ^= 1
        try fixture.write(name, bytes)
        let scan = try fixture.scanned().1
        #expect(scan.quarantinedRecords == (isBefore ? 1 : 0))
        #expect(scan.records == (isBefore ? marks.count - 1 : lost))
        // A daemon sets it aside in either case, and loads what follows.
        let (payloads, statistics) = try fixture.delivered()
        #expect(payloads.count == marks.count - 1 && statistics.quarantinedRecords == 1)
    }
}
