import CPlatform
import Event
import Glibc

/// A Bloom filter over what one closed segment holds (``FilterEntry``).
///
/// It never says no to an entry that was added. To another one it says yes in (1 − e^(−12/n))^12 of all
/// cases, for n bits an entry (B. H. Bloom, 1970, with 12 bits set): once in about 2000 for an entry a row
/// at the least of 16 bits. A row may bring more entries than one, which makes it err more often.
struct SegmentFilter: Sendable {
    /// The bits, a power of two of them; bit `n` is bit `n % 8` of byte `n / 8`.
    private(set) var bytes: [UInt8]

    /// A filter for a segment of about `rows` rows.
    init(rows: Int) {
        var count = 64
        while count < rows * 2 { count *= 2 }
        bytes = [UInt8](repeating: 0, count: count)
    }

    /// The filter with these bits; nil if their number is not that of a filter.
    init?(bytes: [UInt8]) {
        guard bytes.count >= 64, bytes.count & (bytes.count - 1) == 0 else { return nil }
        self.bytes = bytes
    }

    mutating func insert(_ entry: FilterEntry) {
        var place = entry.places(bits: bytes.count * 8)
        for _ in 0..<FilterEntry.probes {
            let bit = place.next()
            bytes[bit >> 3] |= 1 << UInt8(bit & 7)
        }
    }
}

/// Something that a segment holds, as two independent hashes.
struct FilterEntry {
    private let start: UInt64
    private let step: UInt64

    /// Bits that an entry sets.
    static let probes = 12

    private init(_ left: UInt64, _ right: UInt64, _ kind: UInt64) {
        start = mixed(left ^ kind &* 0x9E37_79B9_7F4A_7C15)
        step = mixed(right &+ kind) | 1
    }

    /// A message of which the segment has events.
    static func message(_ message: UInt64) -> FilterEntry { .init(message, message, 1) }
    /// A message of which the segment has several units; only of these the next three are added too.
    static func several(_ message: UInt64) -> FilterEntry { .init(message, message, 2) }
    /// A unit of a message with several.
    static func unit(_ unit: Unit) -> FilterEntry { .init(unit.message, unit.device, 3) }
    /// A message of which the segment has a `sent` with a campaign.
    static func sender(_ message: UInt64) -> FilterEntry { .init(message, message, 4) }
    /// A message with a unit that named no campaign when it was new.
    static func orphan(_ message: UInt64) -> FilterEntry { .init(message, message, 5) }
    /// A message with events without a device.
    static func loose(_ message: UInt64) -> FilterEntry { .init(message, message, 6) }
    /// A unit that an event of the segment names as that of its inbox message.
    static func named(_ unit: Unit) -> FilterEntry { .init(unit.message, unit.device, 7) }
    /// The identity of an event without a message.
    static func key(_ key: Identity) -> FilterEntry { .init(key.high, key.low, 8) }

    /// The bits of the entry in a filter of `bits` bits, a power of two.
    func places(bits: Int) -> Places {
        Places(hash: start, step: step, shift: UInt64(bits.leadingZeroBitCount + 1))
    }

    struct Places {
        var hash: UInt64
        let step: UInt64
        let shift: UInt64

        mutating func next() -> Int {
            defer { hash = hash &+ step }
            return Int(truncatingIfNeeded: hash &>> shift)
        }
    }
}

/// The filters of all closed segments, asked all at once.
///
/// Filters of one size are kept sliced: for each bit place one word with a bit for each segment. So
/// one entry costs the same few cache lines for up to 64 segments.
struct FilterStack: ~Copyable {
    private var slices: [Slice] = []

    /// Adds the filter of a segment.
    mutating func add(_ filter: SegmentFilter, segment: Int) {
        if let index = slices.firstIndex(where: {
            $0.bits == filter.bytes.count * 8 && $0.segments.count < 64
        }) {
            slices[index].add(filter, segment)
        } else {
            let slice = Slice(bits: filter.bytes.count * 8)
            slice.add(filter, segment)
            slices.append(slice)
        }
    }

    /// How many segments there are filters of.
    var count: Int { slices.reduce(0) { $0 + $1.segments.count } }

    /// The numbers of the segments.
    var all: [Int] { slices.flatMap { $0.segments } }

    func contains(segment: Int) -> Bool { slices.contains { $0.segments.contains(segment) } }

    /// The numbers of the segments that may hold `entry`; never short of one that does.
    func segments(holding entry: FilterEntry) -> [Int] {
        var found: [Int] = []
        for slice in slices {
            var mask = slice.mask(of: entry)
            while mask != 0 {
                found.append(slice.segments[mask.trailingZeroBitCount])
                mask &= mask &- 1
            }
        }
        return found
    }

    /// Asks memory for what `entry` needs first.
    func prefetch(_ entry: FilterEntry) {
        for slice in slices { slice.prefetch(entry) }
    }

    /// Whether any segment may hold `entry`.
    func mayHold(_ entry: FilterEntry) -> Bool {
        for slice in slices where slice.mask(of: entry) != 0 { return true }
        return false
    }

    /// Up to 64 filters of one size.
    @safe
    private final class Slice {
        let bits: Int
        private(set) var segments: [Int] = []
        /// Bytes of a word: 1, 2, 4 or 8.
        private var width = 1
        // SAFETY: `bits * width` bytes and 8 more, so that each word can be read as eight bytes.
        private var words: UnsafeMutableRawPointer

        init(bits: Int) {
            self.bits = bits
            unsafe words = Self.allocate(bits)
        }

        deinit { unsafe tapline_free_zeroed(words, bits * width + 8) }

        private static func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
            guard let block = unsafe tapline_allocate_zeroed(bytes + 8) else {
                fatalError("out of memory for filters of \(bytes) bytes")
            }
            return unsafe block
        }

        func add(_ filter: SegmentFilter, _ segment: Int) {
            if segments.count == width * 8 { widen() }
            let (byte, bit) = (segments.count / 8, UInt8(segments.count % 8))
            segments.append(segment)
            unsafe filter.bytes.withUnsafeBufferPointer { bytes in
                for index in bytes.indices {
                    let eight = unsafe bytes[index]
                    if eight == 0 { continue }
                    for place in 0..<8 where eight >> UInt8(place) & 1 != 0 {
                        // SAFETY: index < bits / 8 and byte < width.
                        let at = (index * 8 + place) * width + byte
                        let old = unsafe words.load(fromByteOffset: at, as: UInt8.self)
                        unsafe words.storeBytes(
                            of: old | 1 << bit, toByteOffset: at, as: UInt8.self)
                    }
                }
            }
        }

        private func widen() {
            let wide = unsafe Self.allocate(bits * width * 2)
            for place in 0..<bits {
                // SAFETY: both within their block.
                unsafe (wide + place * width * 2).copyMemory(
                    from: words + place * width, byteCount: width)
            }
            unsafe tapline_free_zeroed(words, bits * width + 8)
            unsafe words = wide
            width *= 2
        }

        func prefetch(_ entry: FilterEntry) {
            var place = entry.places(bits: bits)
            for _ in 0..<FilterEntry.probes / 3 * 2 {
                // SAFETY: a place is less than `bits`.
                unsafe tapline_prefetch(words + place.next() &* width)
            }
        }

        /// A bit for each of `segments` that may hold `entry`.
        func mask(of entry: FilterEntry) -> UInt64 {
            var mask: UInt64 = segments.count == 64 ? .max : 1 << UInt64(segments.count) - 1
            var place = entry.places(bits: bits)
            for _ in 0..<FilterEntry.probes / 4 {
                // SAFETY: a place is less than `bits`; eight bytes from there are in the block.
                for _ in 0..<4 {
                    mask &= unsafe UInt64(
                        littleEndian: words.loadUnaligned(
                            fromByteOffset: place.next() &* width, as: UInt64.self))
                }
                if mask == 0 { break }
            }
            return mask
        }
    }
}
