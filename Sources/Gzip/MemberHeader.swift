internal import CIsal

/// Reads the header of one gzip member (RFC 1952 §2.3), which may arrive in pieces.
///
/// | bytes | field | |
/// |---|---|---|
/// | 2 | ID | `1f 8b` |
/// | 1 | CM | 8, deflate |
/// | 1 | FLG | 1 FTEXT, 2 FHCRC, 4 FEXTRA, 8 FNAME, 16 FCOMMENT; a higher bit is an error |
/// | 6 | MTIME, XFL, OS | ignored |
/// | 2 + n | FEXTRA | little-endian length and so many bytes |
/// | n + 1 | FNAME | ends with a zero byte |
/// | n + 1 | FCOMMENT | ends with a zero byte |
/// | 2 | FHCRC | the low half of the CRC-32 of all bytes before, little-endian |
///
/// ISA-L reads headers too, but only whole ones, and it neither refuses reserved flags nor says
/// after two bytes that this is no gzip.
struct MemberHeader {
    private enum Field {
        case fixed, extraLength, extra, name, comment, checksum, end
    }

    private static let fixedBytes = 10
    private var field = Field.fixed
    /// The bytes of the present field that were read.
    private var count = 0
    private var method: UInt8 = 0
    private var flags: UInt8 = 0
    /// The number that the present field has so far: its length, or its checksum.
    private var number = 0
    private var checksum: UInt32 = 0

    /// Reads as much of the header as `input` has, from `offset` on, which moves behind it.
    ///
    /// - Returns: Whether the header is complete.
    /// - Throws: ``GzipError/corrupt(reason:)``.
    mutating func read(
        _ input: Span<UInt8>, at offset: inout Int
    ) throws(GzipError) -> Bool {
        let start = offset
        while field != .checksum, field != .end, offset < input.count {
            try take(input[offset])
            offset += 1
        }
        add(input.extracting(start..<offset))
        while field == .checksum, offset < input.count {
            try take(input[offset])
            offset += 1
        }
        return field == .end
    }

    private mutating func take(_ byte: UInt8) throws(GzipError) {
        count += 1
        switch field {
        case .fixed:
            try takeFixed(byte)
        case .extraLength:
            number |= Int(byte) << (8 * (count - 1))
            if count == 2 { enter(number == 0 ? .name : .extra) }
        case .extra:
            if count == number { enter(.name) }
        case .name:
            if byte == 0 { enter(.comment) }
        case .comment:
            if byte == 0 { enter(.checksum) }
        case .checksum:
            number |= Int(byte) << (8 * (count - 1))
            guard count == 2 else { return }
            guard number == Int(checksum & 0xFFFF) else {
                throw .corrupt(reason: "header crc mismatch")
            }
            field = .end
        case .end:
            preconditionFailure("a byte after the end of the header")
        }
    }

    private mutating func takeFixed(_ byte: UInt8) throws(GzipError) {
        switch count {
        case 1: if byte != 0x1F { throw .corrupt(reason: "incorrect header check") }
        case 2: if byte != 0x8B { throw .corrupt(reason: "incorrect header check") }
        case 3: method = byte
        case 4:
            guard method == 8 else { throw .corrupt(reason: "unknown compression method") }
            guard byte & 0xE0 == 0 else { throw .corrupt(reason: "unknown header flags set") }
            flags = byte
        case Self.fixedBytes: enter(.extraLength)
        default: break
        }
    }

    /// Begins `next`, or the first field after it that the flags announce.
    private mutating func enter(_ next: Field) {
        var next = next
        if next == .extraLength, flags & 4 == 0 { next = .name }
        if next == .name, flags & 8 == 0 { next = .comment }
        if next == .comment, flags & 16 == 0 { next = .checksum }
        if next == .checksum, flags & 2 == 0 { next = .end }
        field = next
        count = 0
        if next != .extra { number = 0 }
    }

    private mutating func add(_ bytes: Span<UInt8>) {
        // SAFETY: ISA-L reads `count` bytes and keeps nothing.
        unsafe bytes.withUnsafeBufferPointer {
            checksum = unsafe crc32_gzip_refl(checksum, $0.baseAddress, UInt64($0.count))
        }
    }
}
