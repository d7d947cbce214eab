import Foundation
import Platform
import Spool
import Testing

struct FormatTests {
    static func littleEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// The test vector of SpoolFormat.swift, made here by hand.
    static func vector(version: UInt8 = 1) -> [UInt8] {
        var bytes = Array("TAPSPOOL".utf8) + [version] + Array(repeating: 0, count: 7)
        bytes += Array(0..<16)
        bytes += [1] + Array(repeating: 0, count: 15)
        bytes += Array(0x10..<0x1C)
        let header = CRC32C.checksum(bytes.span)
        bytes += littleEndian(header)
        let lengths = littleEndian(7) + littleEndian(1)
        let payload = Array("tapline".utf8)
        let seed = CRC32C.checksum(lengths.span, seed: header)
        bytes += Array(0x10..<0x18) + lengths + littleEndian(header)
        return bytes + littleEndian(CRC32C.checksum(payload.span, seed: seed)) + payload
    }

    @Test func theVectorHasItsChecksums() {
        let bytes = Self.vector()
        #expect(bytes.count == 95)
        #expect(Array(bytes[60..<64]) == Self.littleEndian(0x67EA_AAFF))
        #expect(Array(bytes[84..<88]) == Self.littleEndian(0x383B_47C7))
    }

    @Test func theVectorIsRead() throws {
        let fixture = try SpoolFixture()
        try fixture.write("000000000001.seg", Self.vector())
        var records: [SpoolRecord] = []
        try SpoolFiles.scan(directory: fixture.path) { records.append($0) }
        #expect(records.map(\.payload) == [Array("tapline".utf8)])
        #expect(records.map(\.mark) == [SpoolMark(segment: 1, offset: 95, chain: 0x383B_47C7)])
        #expect("\(records[0].mark)" == "1:95:383b47c7")
        try fixture.open { #expect($0.id == SpoolID(bytes: Array(0..<16))) }
    }

    @Test func aNewerFormatIsRefusedAndLeftAlone() throws {
        let fixture = try SpoolFixture()
        let path = fixture.path + "/000000000001.seg"
        try fixture.write("000000000001.seg", Self.vector(version: 2))
        let expected = SpoolError.unsupportedVersion(2, path: path)
        #expect(throws: expected) { try Spool(directory: fixture.path) }
        #expect(throws: expected) { try fixture.scanned() }
        #expect(try fixture.bytes("000000000001.seg") == Self.vector(version: 2))
    }

    // MARK: Lineage

    @Test func aReaderGoesOnFromEveryMark() throws {
        let (fixture, marks) = try SpoolFixture.filled(20, SpoolTests.small())
        try fixture.open { spool in
            for (number, mark) in marks.enumerated() {
                let rest = try spool.makeReader(from: mark).all().map(\.payload)
                #expect(rest == (number + 1..<20).map(SpoolFixture.payload))
                #expect(try fixture.scanned(from: mark).payloads == rest)
            }
        }
    }

    @Test func aMarkThatIsNotOfARecordIsRefused() throws {
        let (fixture, marks) = try SpoolFixture.filled(5)
        let last = try #require(marks.last)
        let middle = marks[2]
        let wrong = [
            SpoolMark(segment: 1, offset: last.offset, chain: last.chain ^ 1),
            SpoolMark(segment: 1, offset: middle.offset, chain: middle.chain ^ 1),
            SpoolMark(segment: 1, offset: middle.offset + 1, chain: middle.chain),
            SpoolMark(segment: 1, offset: last.offset + 1, chain: last.chain),
            SpoolMark(segment: 1, offset: .max, chain: last.chain),
            SpoolMark(segment: 1, offset: 0, chain: last.chain),
            SpoolMark(segment: 2, offset: last.offset, chain: last.chain),
            SpoolMark(segment: 0, offset: last.offset, chain: last.chain),
        ]
        try fixture.open { spool in
            for mark in wrong {
                #expect(throws: SpoolError.notThisSpool(mark)) { try spool.makeReader(from: mark) }
                #expect(throws: SpoolError.notThisSpool(mark)) { try fixture.scanned(from: mark) }
            }
        }
    }

    @Test func theSameRecordsInAnotherSpoolAreAnotherLineage() throws {
        let (_, marks) = try SpoolFixture.filled(5)
        let (other, _) = try SpoolFixture.filled(5)
        try other.open { spool in
            for mark in marks {
                #expect(throws: SpoolError.notThisSpool(mark)) { try spool.makeReader(from: mark) }
            }
        }
    }

    @Test func aRestoredSnapshotDoesNotMatchALaterMark() throws {
        let (fixture, marks) = try SpoolFixture.filled(5)
        let snapshot = try SpoolFixture(copying: fixture)
        let ahead = try fixture.open { try $0.appendAndWait([1]).get() }
        try snapshot.open { spool in
            #expect(throws: SpoolError.notThisSpool(ahead)) { try spool.makeReader(from: ahead) }
            _ = try spool.appendAndWait([1]).get()
            #expect(throws: SpoolError.notThisSpool(ahead)) { try spool.makeReader(from: ahead) }
            #expect(try spool.makeReader(from: marks[4]).all().map(\.payload) == [[1]])
        }
    }
}
