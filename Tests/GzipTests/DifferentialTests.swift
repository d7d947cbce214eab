import Gzip
import GzipOracle
import Testing

/// `InflateStream` against zlib over random bodies. The seed is the argument of the test.
@Suite struct DifferentialTests {
    static let limit = 1 << 20

    /// Noise, zeros, few letters, or event-like lines.
    static func payload(_ random: inout Random) -> [UInt8] {
        let bounds = [1, 64, 3_000, 70_000, 200_000]
        let count = random.below(bounds[random.below(bounds.count)])
        switch random.below(4) {
        case 0: return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        case 1: return [UInt8](repeating: 0, count: count)
        case 2: return (0..<count).map { _ in UInt8(97 + random.below(1 + random.below(20))) }
        default:
            var lines: [UInt8] = []
            while lines.count < count {
                lines += Array(
                    "{\"type\":\"clicked\",\"device_id\":\"\(random.next())\"}\n".utf8)
            }
            return lines
        }
    }

    static func body(_ random: inout Random) -> (payload: [UInt8], body: [UInt8]) {
        var whole: [UInt8] = []
        var body: [UInt8] = []
        for _ in 0..<[1, 1, 1, 2, 4][random.below(5)] {
            let part = payload(&random)
            whole += part
            body += ZlibOracle.member(part, .random(&random))
        }
        if random.below(4) == 0 { body += [UInt8](repeating: 0, count: random.below(600)) }
        return (whole, body)
    }

    static func pieceBytes(_ random: inout Random, of body: [UInt8]) -> Int {
        [body.count < 20_000 ? 1 : 997, 1 + random.below(40), 1460, 16_384, .max][random.below(5)]
    }

    static func verdict(
        _ body: [UInt8], limit: Int = limit, piece: Int = .max, step: Int = 1 << 40
    ) -> Result<[UInt8], GzipError> {
        Result { () throws(GzipError) in
            try GzipTests.inflate(body, limit: limit, piece: piece, step: step)
        }
    }

    @Test(arguments: 0..<150 as Range<UInt64>) func validBodiesInflateAsWithZlib(seed: UInt64) {
        var random = Random(state: seed)
        let (payload, body) = Self.body(&random)
        #expect(ZlibOracle.inflate(body, limit: Self.limit) == .success(payload))
        let piece = Self.pieceBytes(&random, of: body)
        #expect(Self.verdict(body, piece: piece) == .success(payload))
        let step = max(random.below(40_000), payload.count / 500 + 1)
        #expect(Self.verdict(body, piece: piece, step: step) == .success(payload))
        #expect(Self.verdict(body, limit: payload.count, piece: piece) == .success(payload))
        guard payload.count > 0 else { return }
        let less = random.below(payload.count)
        #expect(Self.verdict(body, limit: less, piece: piece) == .failure(.tooLarge(limit: less)))
    }

    @Test(arguments: 1000..<1150 as Range<UInt64>)
    func damagedBodiesGetTheVerdictOfZlib(seed: UInt64) {
        var random = Random(state: seed)
        let (_, whole) = Self.body(&random)
        for _ in 0..<10 {
            var body = whole
            for _ in 0...random.below(3) where !body.isEmpty {
                let index = random.below(body.count)
                switch random.below(5) {
                case 0: body.removeLast(body.count - index)
                case 1: body.remove(at: index)
                case 2: body.insert(UInt8(truncatingIfNeeded: random.next()), at: index)
                // Damage near the front hits the headers of the member and of its first block.
                case 3: body[min(index, random.below(80))] ^= 1 << UInt8(random.below(8))
                default: body[index] ^= 1 << UInt8(random.below(8))
                }
            }
            let piece = Self.pieceBytes(&random, of: body)
            let ours = Self.verdict(body, piece: piece)
            switch ZlibOracle.inflate(body, limit: Self.limit) {
            case .success(let output): #expect(ours == .success(output))
            // Which error is up to the library: each finds a damage at another byte.
            case .failure: #expect((try? ours.get()) == nil)
            }
        }
    }

    // MARK: - Member headers

    static let text = Array("a line of text\n".utf8)
    /// The deflate data and the trailer of `text`.
    static let data = ZlibOracle.member(text, .init()).dropFirst(10)

    /// A header with the fields that `flags` announces, and a right checksum.
    static func header(flags: UInt8, extraBytes: Int = 300) -> [UInt8] {
        var header: [UInt8] = [0x1F, 0x8B, 8, flags, 1, 2, 3, 4, 2, 3]
        if flags & 4 != 0 {
            header += [UInt8(extraBytes & 0xFF), UInt8(extraBytes >> 8)]
            header += (0..<extraBytes).map { UInt8(truncatingIfNeeded: $0) }
        }
        if flags & 8 != 0 { header += Array("events.ndjson".utf8) + [0] }
        if flags & 16 != 0 { header += Array("nightly export".utf8) + [0] }
        if flags & 2 != 0 {
            let checksum = ZlibOracle.crc(header)
            header += [UInt8(checksum & 0xFF), UInt8(checksum >> 8 & 0xFF)]
        }
        return header
    }

    @Test(arguments: 0...255 as ClosedRange<UInt8>)
    func everySetOfHeaderFlagsIsReadAsByZlib(flags: UInt8) {
        let body = Self.header(flags: flags) + Self.data
        let expected: Result<[UInt8], GzipError> =
            flags < 32
            ? .success(Self.text) : .failure(.corrupt(reason: "unknown header flags set"))
        #expect(ZlibOracle.inflate(body, limit: 100) == expected)
        for piece in [1, 2, 3, 7, 11, 64, .max] {
            #expect(Self.verdict(body, piece: piece) == expected)
        }
    }

    @Test(arguments: [0, 1, 65_535]) func anExtraFieldMayHaveAnyLength(count: Int) {
        let body = Self.header(flags: 4, extraBytes: count) + Self.data
        #expect(Self.verdict(body) == .success(Self.text))
        #expect(Self.verdict(body, piece: 1) == .success(Self.text))
    }

    @Test func everyTruncatedHeaderIsTruncated() {
        let header = Self.header(flags: 31)
        for count in 1...header.count {
            let body = Array(header.prefix(count))
            #expect(Self.verdict(body) == .failure(.truncated))
            #expect(Self.verdict(body, piece: 1) == .failure(.truncated))
        }
    }

    @Test func everyFlippedBitOfAHeaderWithAChecksumGetsTheErrorOfZlib() {
        let header = Self.header(flags: 31, extraBytes: 9)
        for index in header.indices {
            for bit in 0..<8 {
                var body = header + Self.data
                body[index] ^= 1 << UInt8(bit)
                let expected = ZlibOracle.inflate(body, limit: 100)
                #expect((try? expected.get()) == nil)
                #expect(Self.verdict(body) == expected, "byte \(index) bit \(bit)")
                #expect(Self.verdict(body, piece: 1) == expected, "byte \(index) bit \(bit)")
            }
        }
    }

    @Test func aWrongChecksumOrLengthInTheTrailerIsCorrupt() {
        let body = ZlibOracle.member(Self.text, .init())
        for index in body.count - 8..<body.count {
            var damaged = body
            damaged[index] &+= 1
            for piece in [1, 5, .max] {
                #expect(
                    Self.verdict(damaged, piece: piece)
                        == .failure(.corrupt(reason: "incorrect data check")))
            }
        }
    }
}
