import Platform

/// 128 random bits: the id of a spool, or its epoch.
package struct SpoolID: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// An id of 16 bytes.
    package init(bytes: [UInt8]) {
        precondition(bytes.count == 16, "an id of \(bytes.count) bytes")
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The id of a UUID's text, in either case; nil when it is none.
    package init?(_ text: String) {
        let digits = text.filter { $0 != "-" }
        guard text.utf8.count == 36, digits.utf8.count == 32, let bytes = Hex.decode(digits)
        else { return nil }
        self.init(bytes: bytes)
    }

    /// A new id that no other spool has.
    package static func random() -> SpoolID { SpoolID(bytes: Random.bytes(16)) }

    /// The 16 bytes.
    package var bytes: [UInt8] {
        [high, low].flatMap { half in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> $0) }
        }
    }

    /// The text of a UUID in lower case.
    package var description: String {
        let text = Hex.encode(bytes)
        var parts: [Substring] = []
        var rest = text[...]
        for count in [8, 4, 4, 4, 12] {
            parts.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        return parts.joined(separator: "-")
    }
}

/// A position after a record. Its chain proves that the record is the one it was made from.
package struct SpoolMark: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number of the segment.
    package let segment: UInt64
    /// The offset in the segment, in bytes, where the record ends.
    package let offset: UInt64
    /// The checksum chained over all records of the segment so far.
    package let chain: UInt32

    /// A mark as it was kept in the database.
    package init(segment: UInt64, offset: UInt64, chain: UInt32) {
        self.segment = segment
        self.offset = offset
        self.chain = chain
    }

    /// By segment, then by offset.
    package static func < (left: SpoolMark, right: SpoolMark) -> Bool {
        (left.segment, left.offset) < (right.segment, right.offset)
    }

    /// `42:1064:e3069283`: segment, offset and chain.
    package var description: String {
        let digits = String(chain, radix: 16)
        return "\(segment):\(offset):" + String(repeating: "0", count: 8 - digits.count) + digits
    }
}

/// A record as it was appended.
package struct SpoolRecord: Equatable, Sendable {
    /// What was appended.
    package let payload: [UInt8]
    /// How many events the appender said it holds.
    package let events: Int
    /// The position after it.
    package let mark: SpoolMark

    package init(payload: [UInt8], events: Int, mark: SpoolMark) {
        self.payload = payload
        self.events = events
        self.mark = mark
    }
}

/// Why the spool could not do what was asked.
package enum SpoolError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another daemon owns the directory.
    case locked(directory: String)
    /// Too much waits to be loaded; it passes when the database takes it.
    case full(bytes: Int, limit: Int)
    /// The disk is full; it passes when space is freed.
    case noSpace(SystemError)
    /// A file could not be read or written.
    case failed(SystemError)
    /// The spool is being closed, or is.
    case closing
    /// The payload is larger than a record may be.
    case tooLarge(bytes: Int, limit: Int)
    /// The mark is not of this spool's records: it is ahead, or of another lineage.
    case notThisSpool(SpoolMark)
    /// A segment was written by a newer program.
    case unsupportedVersion(UInt32, path: String)
    /// Nothing of a segment can be read: its header is damaged, and no record is found without.
    case unreadable(path: String)

    init(_ error: SystemError) {
        self = error.isOutOfSpace ? .noSpace(error) : .failed(error)
    }

    /// One line: what, on which object, actual and limit.
    package var description: String {
        switch self {
        case .locked(let directory): "cannot open spool \"\(directory)\": another daemon holds it"
        case .full(let bytes, let limit):
            "could not append to spool: \(bytes) bytes wait to be loaded, limit is \(limit)"
        case .noSpace(let error), .failed(let error): "\(error)"
        case .closing: "could not use spool: it is closing"
        case .tooLarge(let bytes, let limit):
            "cannot append to spool: record is \(bytes) bytes, limit is \(limit)"
        case .notThisSpool(let mark): "cannot read spool from \(mark): it has no such record"
        case .unsupportedVersion(let version, let path):
            "cannot read spool segment \"\(path)\": format is \(version), "
                + "limit is \(SegmentHeader.version)"
        case .unreadable(let path):
            "cannot read spool segment \"\(path)\": its header and all of its records are damaged"
        }
    }
}

/// Runs `body` with its system errors as the spool's.
func rethrow<Result: ~Copyable>(
    _ body: () throws(SystemError) -> Result
) throws(SpoolError) -> Result {
    do throws(SystemError) {
        return try body()
    } catch {
        throw SpoolError(error)
    }
}

/// Settings of a spool.
package struct SpoolOptions: Sendable {
    /// A segment that would grow over it is followed by a new one.
    package var segmentBytesMax = 64 << 20
    /// The most bytes that wait to be loaded; over it, appending is refused.
    package var bytesMax = 8 << 30
    /// How long loaded segments are kept, for a replay after a database restore.
    package var keepSeconds = 24 * 3600
    /// The most bytes of loaded segments that are kept.
    package var keepBytes = 4 << 30
    /// The largest payload.
    package var recordBytesMax = 256 << 20
    /// How segments are written; replaced by tests.
    package var storage = SpoolStorage.system
    /// The wall clock by which loaded segments age; replaced by tests.
    package var now: @Sendable () -> Microseconds = { Clock.now() }
    /// Told of each group after its sync: the seconds it took and its records.
    package var didSync: @Sendable (_ seconds: Double, _ records: Int) -> Void = { _, _ in }

    /// The defaults.
    package init() {}
}

/// Numbers of a spool since it was opened, but for sizes and the quarantine, which are of the disk.
package struct SpoolStatistics: Equatable, Sendable {
    /// Bytes of all segments, loaded ones included.
    package var bytes = 0
    /// Bytes that wait to be loaded.
    package var unloadedBytes = 0
    /// Segments on disk.
    package var segments = 0
    /// Records taken for appending.
    package var pushedRecords: UInt64 = 0
    /// Records whose appending ended, well or not.
    package var poppedRecords: UInt64 = 0
    /// Records made durable.
    package var syncedRecords: UInt64 = 0
    /// Events of the records made durable.
    package var syncedEvents: UInt64 = 0
    /// Bytes of the records made durable, with their headers.
    package var syncedBytes: UInt64 = 0
    /// Groups made durable: one sync each.
    package var syncs: UInt64 = 0
    /// Writes and syncs that failed.
    package var failures: UInt64 = 0
    /// Records that could not be read and were set aside.
    package var quarantinedRecords = 0
    /// Events of those records, as far as they still say.
    package var quarantinedEvents = 0
    /// Bytes set aside.
    package var quarantinedBytes = 0
    /// Torn tails cut off, which were never acknowledged.
    package var tornTails = 0
    /// Bytes of torn tails.
    package var tornTailBytes = 0
    /// Segments that were there and are gone.
    package var missingSegments = 0
    /// Why the last append failed; nil after one that succeeded.
    package var degradedReason: String?
}
