import Platform

// The spool on disk, format 1. Integers are little-endian; checksums are CRC-32C (Castagnoli).
//
// DIR/lock                 empty; flock'ed by the daemon that owns the spool
// DIR/identity             spool id and epoch, see SpoolIdentity
// DIR/released             what is loaded, see ReleasedFile; advice only
// DIR/NNNNNNNNNNNN.seg     segments, numbered in decimal, never reused; gaps are normal
// DIR/quarantine/          records that could not be read, see Quarantine
//
// A segment is written in whole blocks of 4096 bytes, past the page cache where the file system can:
// zeros fill the last one, and what follows is written over them. They are cut off when the segment
// is complete; until then, and where the writer was killed or a power cut undid that, the size of the
// file is a multiple of 4096, and fewer than 4096 zeros at its end are neither damage nor a torn
// tail. Before them is a header of 64 bytes, and then records without gaps:
//
//   offset  width  field
//        0      8  magic, "TAPSPOOL"
//        8      4  format version, 1
//       12      4  zero
//       16     16  spool id
//       32      8  number of this segment
//       40      8  number of the segment before it, 0 if none was there
//       48     12  random nonce; its first 8 bytes are this segment's record marker
//       60      4  checksum of bytes 0..<60
//
// A record is a header of 24 bytes and its payload:
//
//        0      8  the segment's record marker
//        8      4  payload length in bytes
//       12      4  number of events in the payload, for counting what cannot be read
//       16      4  chain before: the checksum of the record before, of the header if first
//       20      4  checksum of bytes 8..<16 and the payload, seeded with the chain before
//       24      n  payload
//
// So the checksum of a record vouches for all before it, and a mark (segment, offset, chain) can
// only match the very bytes that it was made from. The marker is random and never leaves the
// machine: no client can forge a record inside its payload, and after a damaged record the reader
// finds the next one by searching for the marker. As a record carries the chain before it, one
// damaged record costs no other.
//
// A torn tail is invalid bytes, but for such zeros, at the end of the newest segment with no valid record
// after them: it was never acknowledged, and is cut off at start. Anything else that is invalid is
// damage: it is copied to the quarantine and counted, and all other records are delivered.
//
// Test vector: id 00 01 … 0f, segment 1, no segment before, nonce 10 11 … 1b has the header
// checksum 0x67EAAAFF; the first record with payload "tapline" and 1 event then has the
// checksum 0x383B47C7.

/// The header of a segment file.
struct SegmentHeader: Equatable {
    static let bytes = 64
    static let version: UInt32 = 1
    static let magic = Array("TAPSPOOL".utf8)

    let id: SpoolID
    let number: UInt64
    let previous: UInt64
    let nonce: [UInt8]

    /// What each record of the segment starts with.
    var marker: [UInt8] { Array(nonce.prefix(8)) }

    func encoded() -> [UInt8] {
        var bytes = Self.magic
        bytes.append(littleEndian: Self.version)
        bytes.append(littleEndian: UInt32(0))
        bytes += id.bytes
        bytes.append(littleEndian: number)
        bytes.append(littleEndian: previous)
        bytes += nonce
        bytes.append(littleEndian: CRC32C.checksum(bytes.span))
        return bytes
    }

    /// The checksum that seeds the chain.
    static func checksum(of encoded: [UInt8]) -> UInt32 { encoded.span.littleEndian(at: 60) }

    /// Why bytes are no header.
    enum Failure: Error, Equatable {
        case damaged
        case version(UInt32)
    }

    static func decode(_ bytes: [UInt8]) -> Result<SegmentHeader, Failure> {
        guard bytes.count >= Self.bytes else { return .failure(.damaged) }
        let span = bytes.span.extracting(0..<60)
        guard CRC32C.checksum(span) == bytes.span.littleEndian(at: 60) as UInt32,
            bytes.starts(with: magic)
        else { return .failure(.damaged) }
        let version: UInt32 = span.littleEndian(at: 8)
        guard version == Self.version else { return .failure(.version(version)) }
        return .success(
            SegmentHeader(
                id: SpoolID(bytes: Array(bytes[16..<32])), number: span.littleEndian(at: 32),
                previous: span.littleEndian(at: 40), nonce: Array(bytes[48..<60])))
    }
}

/// The header of a record.
struct RecordHeader: Equatable {
    static let bytes = 24

    let length: Int
    let events: UInt32
    let chainBefore: UInt32
    let checksum: UInt32

    /// Appends the header of a record.
    ///
    /// - Returns: The record's checksum: the chain before the next one.
    static func append(
        to bytes: inout [UInt8], marker: [UInt8], payload: [UInt8], events: UInt32,
        chainBefore: UInt32
    ) -> UInt32 {
        let start = bytes.count
        bytes += marker
        bytes.append(littleEndian: UInt32(payload.count))
        bytes.append(littleEndian: events)
        let seed = CRC32C.checksum(bytes.span.extracting((start + 8)...), seed: chainBefore)
        let checksum = CRC32C.checksum(payload.span, seed: seed)
        bytes.append(littleEndian: chainBefore)
        bytes.append(littleEndian: checksum)
        return checksum
    }

    /// The fields after the marker of a header that starts at `offset`.
    init(_ bytes: Span<UInt8>, at offset: Int) {
        length = Int(bytes.littleEndian(at: offset + 8) as UInt32)
        events = bytes.littleEndian(at: offset + 12)
        chainBefore = bytes.littleEndian(at: offset + 16)
        checksum = bytes.littleEndian(at: offset + 20)
    }

    /// Whether the whole record that starts at `offset` has the checksum it carries.
    func matches(_ bytes: Span<UInt8>, at offset: Int) -> Bool {
        let seed = CRC32C.checksum(
            bytes.extracting(offset + 8..<offset + 16), seed: chainBefore)
        let payload = bytes.extracting(
            offset + Self.bytes..<offset + Self.bytes + length)
        return CRC32C.checksum(payload, seed: seed) == checksum
    }
}

extension Span<UInt8> {
    func littleEndian<Value: FixedWidthInteger>(at offset: Int) -> Value {
        var value: Value = 0
        for index in (0..<Value.bitWidth / 8).reversed() {
            value = value << 8 | Value(truncatingIfNeeded: self[offset + index])
        }
        return value
    }
}

extension [UInt8] {
    mutating func append(littleEndian value: some FixedWidthInteger) {
        for shift in stride(from: 0, to: value.bitWidth, by: 8) {
            append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }
}
