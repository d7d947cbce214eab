import JSONLines
import Testing

@testable import Ingest

struct LoweredUUIDTests {
    private func lowered(_ text: [UInt8]) -> [UInt8]? {
        var output = ByteBuffer()
        guard let uuid = LoweredUUID(folding: text.rawSpan) else { return nil }
        uuid.append(to: &output)
        return output.array
    }

    /// At each place each byte: it stays a UUID or it is none.
    @Test func everyByteAtEveryPlaceIsJudged() {
        let upper = Array("0123ABCD-EF45-6789-A0B1-C2D3E4F5ABCF".utf8)
        let digits = Array("0123456789abcdefABCDEF".utf8)
        #expect(lowered(upper) == Array("0123abcd-ef45-6789-a0b1-c2d3e4f5abcf".utf8))
        for place in 0..<36 {
            let isHyphen = [8, 13, 18, 23].contains(place)
            for byte in UInt8.min...UInt8.max {
                var text = upper
                text[place] = byte
                let isUUID = isHyphen ? byte == 0x2D : digits.contains(byte)
                let expected = text.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 }
                #expect(lowered(text) == (isUUID ? expected : nil), "\(byte) at \(place)")
            }
        }
    }

    @Test func whatIsInLowerCaseIsLeft() {
        #expect(lowered(Array("0123abcd-ef45-6789-a0b1-c2d3e4f5abcf".utf8)) == nil)
    }
}
