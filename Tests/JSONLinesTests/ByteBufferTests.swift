import JSONLines
import Testing

struct ByteBufferTests {
    /// Short texts are copied by words from both ends.
    @Test func appendedBytesAreThoseGiven() {
        let source = (0..<140).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ 5) }
        for count in 0...130 {
            for start in [0, 1, 7] {
                var buffer = ByteBuffer(capacity: 1)
                buffer.append(0xEE)
                buffer.append(source.rawSpan, start..<start + count)
                buffer.append(zeros: count & 63)
                buffer.append(littleEndian: 0x0807_0605_0403_0201)
                let zeros = [UInt8](repeating: 0, count: count & 63)
                #expect(
                    buffer.array == [0xEE] + source[start..<start + count] + zeros
                        + [1, 2, 3, 4, 5, 6, 7, 8], "\(count) bytes from \(start)")
            }
        }
    }
}
