import JSONLines
import Testing

@testable import Event

struct HashTests {
    private static let text = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }

    @Test func aDigestOfPaddedTextIsThatOfTheText() {
        for count in 0..<200 {
            let bytes = Array(Self.text.prefix(count))
            var input = HashInput()
            for byte in bytes { input.append(byte) }
            #expect(input.digest() == Digest(bytes.rawSpan), "\(count) bytes")
            #expect(input.digest() == Digest(bytes.rawSpan), "\(count) bytes again")
        }
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
