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
        unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            for _ in 0..<FilterEntry.probes {
                let bit = place.next()
                // SAFETY: a place is less than the number of bits.
                unsafe bytes[bit >> 3] |= 1 &<< UInt8(truncatingIfNeeded: bit & 7)
            }
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
/// one entry costs the same few cache lines for up to 64 segments, and the answer is one word.
struct FilterStack: ~Copyable {
    private(set) var slices: [FilterSlice] = []
    /// How many segments there are filters of.
    private(set) var count = 0

    /// Adds the filter of a segment.
    mutating func add(_ filter: SegmentFilter, segment: Int) { add([(segment, filter)]) }

    /// Adds the filters of some segments; up to eight of one size at once take as long as one.
    ///
    /// - Parameter ahead: How many more will follow: room for them is made at once.
    mutating func add(_ filters: [(segment: Int, filter: SegmentFilter)], ahead: Int = 0) {
        var rest = filters[...]
        while let first = rest.first {
            let bytes = first.filter.bytes.count
            var index = slices.firstIndex { $0.bits == bytes * 8 && $0.segments.count < 64 }
            if index == nil {
                index = slices.count
                slices.append(FilterSlice(bits: bytes * 8, segments: rest.count + ahead))
            }
            let slice = slices[index!]
            // What ends in the byte of each word that the first one is in.
            let run = rest.prefix(8 - slice.segments.count % 8)
                .prefix { $0.filter.bytes.count == bytes }
            slice.add(run)
            count += run.count
            rest = rest.dropFirst(run.count)
        }
    }

    /// The numbers of the segments.
    var all: [Int] { slices.flatMap { $0.segments } }

    func contains(segment: Int) -> Bool { slices.contains { $0.segments.contains(segment) } }

    /// The numbers of the segments that may hold `entry`; never short of one that does.
    func segments(holding entry: FilterEntry) -> [Int] {
        var found: [Int] = []
        for slice in slices { slice.forEach(in: slice.mask(of: entry)) { found.append($0) } }
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
}

/// Up to 64 filters of one size.
@safe
final class FilterSlice {
    let bits: Int
    private(set) var segments: [Int] = []
    /// Bytes of a word: 1, 2, 4 or 8.
    private var width = 1
    // SAFETY: `bits * width` bytes and 8 more, so that each word can be read as eight bytes.
    private var words: UnsafeMutableRawPointer

    /// - Parameter segments: How many filters there will be, as far as that is known.
    init(bits: Int, segments: Int = 1) {
        self.bits = bits
        while width < 8, segments > width * 8 { width *= 2 }
        unsafe words = Self.allocate(bits * width)
    }

    deinit { unsafe tapline_free_zeroed(words, bits * width + 8) }

    private static func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
        guard let block = unsafe tapline_allocate_zeroed(bytes + 8) else {
            fatalError("out of memory for filters of \(bytes) bytes")
        }
        return unsafe block
    }

    /// Adds filters of this size, as many as there are bits left in one byte of each word.
    fileprivate func add(_ filters: ArraySlice<(segment: Int, filter: SegmentFilter)>) {
        if segments.count == width * 8 { widen() }
        let (byte, bit) = (segments.count / 8, segments.count % 8)
        precondition(bit + filters.count <= 8)
        for (_, filter) in filters { precondition(filter.bytes.count * 8 == bits) }
        var rows = InlineArray<8, UInt64>(repeating: 0)
        for start in stride(from: 0, to: bits / 8, by: 8) {
            for (row, entry) in filters.enumerated() {
                // SAFETY: a filter has a multiple of eight bytes, and `bits / 8` of them.
                rows[bit &+ row] = unsafe entry.filter.bytes.span.bytes.unsafeLoadUnaligned(
                    fromUncheckedByteOffset: start, as: UInt64.self
                ).littleEndian
            }
            var at = start &* 8 &* width &+ byte
            for index in 0..<8 {
                var matrix: UInt64 = 0
                for row in 0..<8 {
                    matrix |= (rows[row] &>> UInt64(index &* 8) & 0xFF) &<< UInt64(row &* 8)
                }
                var columns = transposed(matrix)
                if width == 1 {
                    // SAFETY: the bytes of eight words, which are less than `bits`.
                    let old = unsafe words.load(fromByteOffset: at, as: UInt64.self)
                    unsafe words.storeBytes(
                        of: old | columns.littleEndian, toByteOffset: at, as: UInt64.self)
                    at = at &+ 8
                    continue
                }
                for _ in 0..<8 {
                    // SAFETY: the byte of a word that is less than `bits`, and byte < width.
                    let old = unsafe words.load(fromByteOffset: at, as: UInt8.self)
                    unsafe words.storeBytes(
                        of: old | UInt8(truncatingIfNeeded: columns), toByteOffset: at,
                        as: UInt8.self)
                    columns = columns &>> 8
                    at = at &+ width
                }
            }
        }
        segments += filters.map(\.segment)
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

    /// Asks memory for what an answer about `entry` needs.
    ///
    /// - Parameter places: How many places of the entry: a few are enough for what is rarely held.
    func prefetch(_ entry: FilterEntry, places: Int = FilterEntry.probes / 3 * 2) {
        var place = entry.places(bits: bits)
        for _ in 0..<places {
            // SAFETY: a place is less than `bits`.
            unsafe tapline_prefetch(words + place.next() &* width)
        }
    }

    /// A bit for each of ``segments`` that may hold `entry`.
    ///
    /// - Parameter segments: Which of them are asked.
    func mask(of entry: FilterEntry, among segments: UInt64 = .max) -> UInt64 {
        let count = UInt64(self.segments.count)
        var mask = segments & (count == 64 ? .max : 1 << count - 1)
        var place = entry.places(bits: bits)
        for _ in 0..<FilterEntry.probes / 4 {
            if mask == 0 { break }
            // SAFETY: a place is less than `bits`; eight bytes from there are in the block.
            for _ in 0..<4 {
                mask &= unsafe UInt64(
                    littleEndian: words.loadUnaligned(
                        fromByteOffset: place.next() &* width, as: UInt64.self))
            }
        }
        return mask
    }

    /// Calls `body` with the number of each segment that has a bit in `mask`.
    func forEach(in mask: UInt64, _ body: (Int) -> Void) {
        var rest = mask
        while rest != 0 {
            body(segments[rest.trailingZeroBitCount])
            rest &= rest &- 1
        }
    }
}

/// Transposes a matrix of 8 by 8 bits: bit `c` of byte `r` becomes bit `r` of byte `c` (H. S. Warren,
/// Hacker's Delight, 7-3).
func transposed(_ matrix: UInt64) -> UInt64 {
    func swapping(_ matrix: UInt64, _ shift: UInt64, _ part: UInt64) -> UInt64 {
        let swapped = (matrix ^ matrix &>> shift) & part
        return matrix ^ swapped ^ swapped &<< shift
    }
    let small = swapping(matrix, 7, 0x00AA_00AA_00AA_00AA)
    let middle = swapping(small, 14, 0x0000_CCCC_0000_CCCC)
    return swapping(middle, 28, 0x0000_0000_F0F0_F0F0)
}
