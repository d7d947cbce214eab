import JSONLines

/// The payload of one spool record: what a body was, and its accepted events as rows.
///
/// All integers are little-endian:
/// ```
/// u8  version, 1        u32 received: lines with an event, good or bad
/// u8  flags, 0          u32 rejected
/// u16 bytes of app      u32 rows
///                       i64 received_at, microseconds since 1970 UTC
/// app, then each row: u32 bytes, EventRow
/// ```
/// `received = rejected + rows`, so a body of nothing but bad lines is a record too.
package struct BodyRecord: Sendable {
    package static let version: UInt8 = 1
    package static let headerBytes = 24

    /// Why a payload is not a record.
    package enum Failure: Error, Equatable, Sendable {
        /// It is of a version that this program does not know.
        case version(UInt8)
        /// It is not what its own lengths and counts say, at this byte.
        case malformed(offset: Int)
    }

    /// Lines with an event, good or bad.
    package let received: Int
    /// Lines that were rejected.
    package let rejected: Int
    /// When the body came, in microseconds since 1970 UTC.
    package let receivedAt: Int64
    /// The bytes of the app that sent the body, as UTF-8.
    private let appRange: Range<Int>
    /// How many accepted events there are.
    private let count: Int
    private let payload: [UInt8]

    /// Reads the head of a payload.
    package init(payload: [UInt8]) throws(Failure) {
        guard payload.count >= Self.headerBytes else { throw .malformed(offset: payload.count) }
        guard payload[0] == Self.version else { throw .version(payload[0]) }
        func integer(_ offset: Int, _ count: Int) -> UInt64 {
            var value: UInt64 = 0
            for index in (0..<count).reversed() {
                value = value &<< 8 | UInt64(payload[offset + index])
            }
            return value
        }
        let appEnd = Self.headerBytes + Int(integer(2, 2))
        received = Int(integer(4, 4))
        rejected = Int(integer(8, 4))
        count = Int(integer(12, 4))
        receivedAt = Int64(bitPattern: integer(16, 8))
        guard payload[1] == 0, received == rejected + count else { throw .malformed(offset: 1) }
        guard appEnd <= payload.count else { throw .malformed(offset: 2) }
        appRange = Self.headerBytes..<appEnd
        self.payload = payload
    }

    /// The app that sent the body, as UTF-8.
    package var app: [UInt8] { Array(payload[appRange]) }

    /// Reads the accepted events in the order of their lines, and checks all lengths.
    ///
    /// - Parameter body: Takes an event and where in the payload its row is.
    package func forEachEvent(
        _ body: (UnitEvent, Range<Int>) -> Void
    ) throws(Failure) {
        let bytes = payload.rawSpan
        var index = appRange.upperBound
        for _ in 0..<count {
            guard payload.count &- index >= 4 else { throw .malformed(offset: index) }
            let start = index &+ 4
            let end = start &+ Int(bytes.halfWord(at: index))
            guard end <= payload.count, end &- start >= EventRow.bytesMin,
                bytes.byte(at: start) == 0, bytes.byte(at: start &+ 1) == EventRow.fieldCount,
                let event = UnitEvent(row: bytes.extracting(start..<end))
            else { throw .malformed(offset: index) }
            body(event, start..<end)
            index = end
        }
        guard index == payload.count else { throw .malformed(offset: index) }
    }

    /// The accepted events, in the order of their lines.
    package func rows() throws(Failure) -> [EventRow] {
        var rows: [EventRow] = []
        try forEachEvent { _, range in rows.append(EventRow(checked: payload, range)) }
        return rows
    }
}

extension BodyRecord {
    /// Builds a payload row by row.
    package struct Builder {
        /// Physically larger than `used`, so that rows are written without a check a byte.
        private var storage: [UInt8]
        private var used: Int
        private let receivedAt: Int64
        private let appBytes: Int
        /// Events appended.
        package private(set) var rows = 0
        /// Lines counted as rejected.
        package private(set) var rejected = 0

        /// - Parameters:
        ///   - app: At most 65 535 bytes of UTF-8.
        ///   - receivedAt: When the body came, in microseconds since 1970 UTC.
        ///   - capacity: Bytes to begin with; about the size of the inflated body.
        package init(app: [UInt8], receivedAt: Int64, capacity: Int = 4096) {
            precondition(app.count <= Int(UInt16.max), "app of \(app.count) bytes")
            appBytes = app.count
            self.receivedAt = receivedAt
            used = BodyRecord.headerBytes + app.count
            storage = Self.unwritten(max(capacity, used))
            for index in 0..<app.count { storage[BodyRecord.headerBytes + index] = app[index] }
        }

        /// Bytes of the payload so far.
        package var bytes: Int { used }

        /// Counts a line that was rejected.
        package mutating func countRejected() { rejected += 1 }

        /// Appends a row of `count` bytes, which `body` writes all.
        @inline(__always)
        mutating func appendRow(_ count: Int, _ body: (inout RowWriter) -> Void) {
            let end = used + 4 + count
            if storage.count - end < RowWriter.slackBytes { grow(to: end + RowWriter.slackBytes) }
            unsafe storage.withUnsafeMutableBytes { buffer in
                let size = UInt32(count).littleEndian
                unsafe buffer.storeBytes(of: size, toByteOffset: used, as: UInt32.self)
                let row = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[used + 4..<end])
                var writer = unsafe RowWriter(row)
                body(&writer)
                precondition(writer.isFull, "a row of another size than was computed")
            }
            used = end
            rows += 1
        }

        /// An array whose bytes are all written before they are read: zeros would be the dearest of
        /// all that a row is given.
        private static func unwritten(_ count: Int) -> [UInt8] {
            // SAFETY: any bits are a UInt8, and `finish` cuts off what was not written.
            unsafe [UInt8](unsafeUninitializedCapacity: count) { _, initialized in
                initialized = count
            }
        }

        @inline(never)
        private mutating func grow(to end: Int) {
            var larger = Self.unwritten(max(end, storage.count + storage.count / 2))
            unsafe storage.withUnsafeBytes { old in
                unsafe larger.withUnsafeMutableBytes { new in
                    let written = unsafe UnsafeRawBufferPointer(rebasing: old[0..<used])
                    unsafe new.copyMemory(from: written)
                }
            }
            swap(&storage, &larger)
        }

        /// The payload; the builder is of no further use.
        package mutating func finish() -> [UInt8] {
            var payload: [UInt8] = []
            swap(&payload, &storage)
            payload.removeLast(payload.count - used)
            func put(_ value: UInt64, _ offset: Int, _ count: Int) {
                for index in 0..<count {
                    payload[offset + index] = UInt8(truncatingIfNeeded: value &>> UInt64(8 * index))
                }
            }
            put(UInt64(BodyRecord.version), 0, 2)
            put(UInt64(appBytes), 2, 2)
            put(UInt64(rejected + rows), 4, 4)
            put(UInt64(rejected), 8, 4)
            put(UInt64(rows), 12, 4)
            put(UInt64(bitPattern: receivedAt), 16, 8)
            return payload
        }
    }
}

/// Writes the fields of one row in the binary format of COPY; integers are big-endian.
@safe
struct RowWriter {
    // SAFETY: lives only inside `appendRow`, which owns the memory and `slackBytes` behind it; each
    // field checks the bounds.
    private let row: UnsafeMutableRawBufferPointer
    private var index = 0

    /// What may be written behind a row, before the next one is.
    static let slackBytes = 64

    init(_ row: UnsafeMutableRawBufferPointer) { unsafe self.row = row }

    /// Whether the row is written to its last byte.
    var isFull: Bool { unsafe index == row.count }

    /// Makes sure of `count` more bytes, which `store` then writes.
    @inline(__always)
    private func reserve(_ count: Int) { unsafe precondition(row.count &- index >= count) }

    @inline(__always)
    private mutating func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value) {
        unsafe row.baseAddress!.storeBytes(
            of: value.bigEndian, toByteOffset: index, as: Value.self)
        index &+= MemoryLayout<Value>.size
    }

    /// The number of fields, with which a row begins.
    @inline(__always)
    mutating func begin(fields count: Int16) {
        reserve(2)
        store(count)
    }

    /// A field of a fixed width, or null.
    @inline(__always)
    mutating func field<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value?) {
        guard let value else { return null() }
        reserve(4 &+ MemoryLayout<Value>.size)
        store(Int32(MemoryLayout<Value>.size))
        store(value)
    }

    /// A boolean field, or null.
    @inline(__always)
    mutating func field(_ value: Bool?) {
        if let value { field(UInt8(value ? 1 : 0)) } else { null() }
    }

    /// A uuid.
    @inline(__always)
    mutating func field(_ high: UInt64, _ low: UInt64) {
        reserve(20)
        store(Int32(16))
        store(high)
        store(low)
    }

    /// A text field.
    @inline(__always)
    mutating func field(_ bytes: RawSpan) {
        let count = bytes.byteCount
        reserve(4 &+ count)
        store(Int32(truncatingIfNeeded: count))
        unsafe bytes.withUnsafeBytes { source in
            guard let base = source.baseAddress else { return }
            unsafe ShortCopy.copy(base, to: row.baseAddress! + index, count: count)
        }
        index &+= count
    }

    @inline(__always)
    mutating func null() {
        reserve(4)
        store(Int32(-1))
    }

    /// So many fields that are null, at most 16.
    @inline(__always)
    mutating func nulls(_ count: Int) {
        reserve(4 &* count)
        precondition(count <= Self.slackBytes / 4)
        // All 16 at once; what is too much is written over, or is behind the row.
        unsafe row.baseAddress!.storeBytes(
            of: SIMD8<UInt64>(repeating: .max), toByteOffset: index, as: SIMD8<UInt64>.self)
        index &+= 4 &* count
    }
}
