import Gzip
import Testing

@Suite struct GzipTests {
    static let text = Array("tap tap tap, one line of text\nand another\n".utf8)
    static let member = try! Gzip.compress(text)

    /// Inflates `body` handed over in pieces of `piece` bytes, and asked back for `step` bytes at a time.
    static func inflate(
        _ body: [UInt8], limit: Int = 1 << 20, piece: Int = .max, step: Int = 1 << 40
    ) throws(GzipError) -> [UInt8] {
        var stream = try InflateStream(limit: limit)
        var output: [UInt8] = []
        var start = 0
        while start < body.count {
            let end = start + min(piece, body.count - start)
            let part = Array(body[start..<end])
            var used = 0
            repeat {
                let countMax = output.count + step
                used += try stream.push(
                    part.span.extracting(used...), into: &output, upTo: countMax)
                #expect(output.count <= countMax)
                #expect(used == part.count || stream.isPaused)
            } while used < part.count || stream.isPaused
            start = end
        }
        try stream.finish()
        return output
    }

    @Test(arguments: [1, 2, 3, 7, 64, Int.max])
    func roundTripInPiecesOfAnySize(piece: Int) throws {
        #expect(try Self.inflate(Self.member, piece: piece) == Self.text)
    }

    @Test(arguments: [1, 2, 3, 7, 64]) func roundTripInStepsOfAnySize(step: Int) throws {
        #expect(try Self.inflate(Self.member, step: step) == Self.text)
        #expect(try Self.inflate(Self.member, piece: 1, step: step) == Self.text)
        let limit = Self.text.count - 1
        #expect(throws: GzipError.tooLarge(limit: limit)) {
            try Self.inflate(Self.member, limit: limit, step: step)
        }
    }

    @Test(arguments: 1...9) func everyLevelRoundTrips(level: Int) throws {
        let input = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5) }
        #expect(try Self.inflate(try Gzip.compress(input, level: level)) == input)
    }

    @Test func emptyInputMakesAMemberOfNoBytes() throws {
        let empty = try Gzip.compress([])
        let marked = Gzip.isGzip(empty.span)
        #expect(marked)
        #expect(try Self.inflate(empty) == [])
    }

    @Test(arguments: 0..<Self.member.count) func everyTruncationIsRejected(count: Int) {
        let error: GzipError = count == 0 ? .notGzip : .truncated
        #expect(throws: error) { try Self.inflate(Array(Self.member.prefix(count))) }
        #expect(throws: error) { try Self.inflate(Array(Self.member.prefix(count)), piece: 1) }
    }

    @Test(arguments: 0..<Self.member.count) func everyFlippedBitIsDetectedOrHarmless(index: Int) {
        for bit in 0..<8 {
            var damaged = Self.member
            damaged[index] ^= 1 << UInt8(bit)
            if let output = try? Self.inflate(damaged) {
                // The time and system in the header, and the bits between the end of the data
                // and the checksum, carry nothing.
                #expect(output == Self.text)
                #expect(index < 10 || index == Self.member.count - 9)
            }
        }
    }

    @Test(arguments: 0...Self.text.count) func membersMayMeetAnywhere(cut: Int) throws {
        let body =
            try Gzip.compress(Array(Self.text.prefix(cut)))
            + Gzip.compress(Array(Self.text.dropFirst(cut)))
        #expect(try Self.inflate(body) == Self.text)
        #expect(try Self.inflate(body, piece: 1) == Self.text)
    }

    @Test(arguments: 1..<Self.member.count) func aTruncatedSecondMemberIsRejected(count: Int) {
        #expect(throws: GzipError.truncated) {
            try Self.inflate(Self.member + Self.member.prefix(count))
        }
    }

    @Test(arguments: [1, 2, 511, 100_000]) func zeroPaddingIsIgnored(count: Int) throws {
        let body = Self.member + [UInt8](repeating: 0, count: count)
        #expect(try Self.inflate(body) == Self.text)
        #expect(try Self.inflate(body, piece: 1) == Self.text)
    }

    @Test func garbageAfterAMemberIsRejected() {
        for garbage: [UInt8] in [[1], [0x8B], [0, 1], [0, 0x1F, 0x8B], Array("x".utf8)] {
            #expect(throws: GzipError.trailingGarbage) {
                try Self.inflate(Self.member + garbage)
            }
        }
        #expect(throws: GzipError.self) { try Self.inflate(Self.member + [0x1F, 0x8C]) }
    }

    @Test func plainTextIsNotGzip() {
        #expect(throws: GzipError.notGzip) { try Self.inflate(Self.text) }
        #expect(throws: GzipError.notGzip) { try Self.inflate([0]) }
    }

    @Test func theLimitItselfFitsAndOneByteLessDoesNot() throws {
        let count = Self.text.count
        #expect(try Self.inflate(Self.member, limit: count) == Self.text)
        #expect(throws: GzipError.tooLarge(limit: count - 1)) {
            try Self.inflate(Self.member, limit: count - 1)
        }
        #expect(throws: GzipError.tooLarge(limit: 0)) { try Self.inflate(Self.member, limit: 0) }
    }

    @Test func membersCountTogetherAgainstTheLimit() throws {
        let body = Self.member + Self.member
        let count = Self.text.count
        #expect(try Self.inflate(body, limit: 2 * count).count == 2 * count)
        #expect(throws: GzipError.tooLarge(limit: 2 * count - 1)) {
            try Self.inflate(body, limit: 2 * count - 1)
        }
    }

    @Test func aBombStopsAtTheLimit() throws {
        let bomb = try Gzip.compress([UInt8](repeating: 0, count: 64 << 20), level: 9)
        #expect(bomb.count < 100_000)
        var stream = try InflateStream(limit: 1 << 20)
        var output: [UInt8] = []
        #expect(throws: GzipError.tooLarge(limit: 1 << 20)) {
            try stream.push(bomb.span, into: &output)
        }
        #expect(output.count <= 1 << 20)
    }
}
