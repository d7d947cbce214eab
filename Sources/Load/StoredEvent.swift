import Event

/// What conflicts and dead letters keep of a row.
struct StoredEvent {
    let key: [UInt8]
    let app: [UInt8]
    /// The event as a JSON object.
    let body: [UInt8]
    /// Microseconds since 1970 UTC.
    let receivedAt: Int64
    /// 16 bytes that differ between two contents of one key.
    let content: [UInt8]

    init(_ row: EventRow, _ content: EventContent) {
        key = row.key.bytes
        app = row.field(.app).map { Array(row.payload[$0]) } ?? []
        body = row.json()
        receivedAt = row.receivedAt
        self.content = content.campaign.bigEndianBytes + content.properties.bigEndianBytes
    }
}

extension Identity {
    /// The 16 bytes of the uuid.
    package var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }

    /// The identity in the binary form of uuid: 16 bytes.
    init(uuid bytes: RawSpan) {
        precondition(bytes.byteCount == 16, "a uuid of \(bytes.byteCount) bytes")
        // SAFETY: 16 bytes, checked above.
        unsafe self.init(
            high: UInt64(
                bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self)),
            low: UInt64(
                bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
}

extension FixedWidthInteger {
    /// The bytes of the value, most significant first.
    package var bigEndianBytes: [UInt8] {
        (0..<Self.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
    }
}
