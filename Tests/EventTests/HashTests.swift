import JSONLines
import Testing

@testable import Event

struct HashTests {
    private static let text = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        var input = HashInput()
        for byte in bytes { input.append(byte) }
        input.pad()
        return Array(0..<input.rawSpan.byteCount).map { input.rawSpan.byte(at: $0) }
    }

    @Test func aDigestOfPaddedTextIsThatOfTheText() {
        for count in 0..<200 {
            let bytes = Array(Self.text.prefix(count))
            let padded = Self.padded(bytes)
            #expect(Digest(paddedBlocks: padded.rawSpan) == Digest(bytes.rawSpan), "\(count) bytes")
        }
    }

    private static func three(_ first: [UInt8], _ second: [UInt8], _ third: [UInt8]) -> [Digest] {
        let digests = Digest.three(first.rawSpan, second.rawSpan, third.rawSpan)
        return [digests.0, digests.1, digests.2]
    }

    /// One to five blocks each, so that each of the texts ends first, last or with another.
    @Test func threeDigestsAtOnceAreThoseOfEachText() {
        let texts = (0..<5).map { Array(Self.text.suffix(30 + 64 * $0)) }
        let padded = texts.map(Self.padded)
        let digests = texts.map { Digest($0.rawSpan) }
        for first in 0..<5 {
            for second in 0..<5 {
                for third in 0..<5 {
                    let found = Self.three(padded[first], padded[second], padded[third])
                    #expect(found == [digests[first], digests[second], digests[third]])
                }
            }
        }
    }

    @Test func anEmptyTextAmongThreeHarmsNoOther() {
        let bytes = Array(Self.text.prefix(100))
        let padded = Self.padded(bytes)
        let digest = Digest(bytes.rawSpan)
        #expect(Self.three(padded, [], [])[0] == digest)
        #expect(Self.three([], padded, [])[1] == digest)
        #expect(Self.three([], [], padded)[2] == digest)
    }

    /// The values are stored.
    @Test(
        arguments: [
            (0, 0x1DC9_2EC1_533D_42C1), (1, 0x92B4_CCED_580F_7159), (7, 0xC982_5E3B_7EB7_7FDC),
            (8, 0xFCD5_AB3B_45E5_F3CC), (16, 0xCE6B_7F6E_8B15_28CF), (17, 0x6A2A_DB17_7126_E095),
            (100, 0xFD03_7D79_FEC8_9C64),
        ] as [(Int, UInt64)])
    func theFastHashNeverChanges(count: Int, expected: UInt64) {
        #expect(FastHash.hash(Array(Self.text.prefix(count)).rawSpan) == expected)
    }

    @Test func everyBitMattersToTheFastHash() {
        var seen: Set<UInt64> = []
        var texts = 0
        for count in 0..<70 {
            var bytes = Array(Self.text.prefix(count))
            seen.insert(FastHash.hash(bytes.rawSpan))
            texts += 1
            for bit in 0..<8 * count {
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                seen.insert(FastHash.hash(bytes.rawSpan))
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                texts += 1
            }
        }
        #expect(seen.count == texts)
    }
}
