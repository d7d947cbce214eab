import Event
import Glibc
import Platform

/// The identities of a closed segment with digests of their contents, sorted, in a file of this daemon.
///
/// It is a hint that is true where it speaks: what is found here is stored in the segment with the same
/// content, so it is a repeat, and the database need not be asked. What is not found may be stored all the
/// same, so a file may lack identities, be damaged or not be there at all. It speaks of one closing of the
/// segment only (``ClosingID``), as another history of the database may hold other events.
///
/// Format, integers as the machine has them: blocks of ``blockBytes``. The first one is the header, each that
/// follows has ``blockEntries`` entries (the identity in two words and its digest), zeros where there is none,
/// and a checksum (``checksum(_:_:_:)``). Then follows the directory: the upper half of the first word of each block.
final class IdentityFile: Sendable {
    static let blockBytes = 4096
    static let entryBytes = 20
    /// 204, and room for the checksum.
    static let blockEntries = (blockBytes - 4) / entryBytes
    private static let entriesBytes = blockEntries * entryBytes
    /// The format, and what a digest is made of.
    private static let magic: UInt64 = 0x3130_4E44_4950_4154  // "TAPIDN01"
    /// Blocks that are written at once.
    private static let blocksAtOnce = 256

    let path: String
    private let closing: ClosingID
    /// By their numbers, from the first one after the header on.
    private let directory: [UInt32]
    /// The size of the file.
    var bytes: Int { (directory.count + 1) * Self.blockBytes + directory.count * 4 }

    private init(path: String, closing: ClosingID, directory: [UInt32]) {
        self.path = path
        self.closing = closing
        self.directory = directory
    }

    // MARK: Reading

    /// Why a file is of no use.
    enum Damage: Error {
        case unreadable(SystemError)
        case checksum
        /// Of another format or another closing.
        case other

        /// Whether it says nothing of the file: there are too many open, or there is no memory.
        var isPassing: Bool {
            guard case .unreadable(let error) = self else { return false }
            return [EMFILE, ENFILE, ENOMEM].contains(error.code)
        }
    }

    /// The CRC-32C of a block or of the directory, which is no block of another closing or of another place:
    /// after a crash of the machine a file may have blocks of one that was removed.
    private static func checksum(_ bytes: Span<UInt8>, _ closing: ClosingID, _ block: Int) -> UInt32
    {
        let place = closing.high ^ closing.low &+ UInt64(block)
        return CRC32C.checksum(bytes, seed: UInt32(truncatingIfNeeded: mixed(place)))
    }

    /// Takes a file that is there; what is in its blocks is checked when they are read.
    init(path: String, of closing: ClosingID) throws(Damage) {
        let file = try Self.reading { () throws(SystemError) in try File(path, .read) }
        let header = try Self.reading { () throws(SystemError) in
            try file.read(count: Self.blockBytes, at: 0)
        }
        guard header.count == Self.blockBytes, Self.word(header, 0) == Self.magic,
            Self.word(header, 8) == closing.high, Self.word(header, 16) == closing.low
        else { throw .other }
        let blocks = Int(truncatingIfNeeded: Self.word(header, 24))
        let size = try Self.reading { () throws(SystemError) in try file.size() }
        guard blocks >= 0, blocks <= size / Self.blockBytes,
            size == (blocks + 1) * Self.blockBytes + blocks * 4
        else { throw .checksum }
        let bytes = try Self.reading { () throws(SystemError) in
            try file.read(count: blocks * 4, at: (blocks + 1) * Self.blockBytes)
        }
        guard bytes.count == blocks * 4,
            UInt64(Self.checksum(bytes.span, closing, blocks)) == Self.word(header, 32)
        else { throw .checksum }
        directory = (0..<blocks).map { Self.half(bytes, $0 * 4) }
        self.path = path
        self.closing = closing
    }

    private static func reading<T: ~Copyable>(
        _ body: () throws(SystemError) -> T
    ) throws(Damage) -> T {
        do throws(SystemError) { return try body() } catch { throw .unreadable(error) }
    }

    /// What is looked for.
    struct Wanted: BitwiseCopyable {
        let key: Identity
        let content: EventContent
        /// What the caller knows it by.
        let number: Int
    }

    /// Looks for events.
    ///
    /// - Parameter found: Called with each that is stored with the same content.
    /// - Throws: ``Damage``; what was found until then holds.
    func find(_ wanted: [Wanted], _ found: (Wanted) -> Void) throws(Damage) {
        guard !directory.isEmpty, !wanted.isEmpty else { return }
        let file = try Self.reading { () throws(SystemError) in try File(path, .read) }
        var block: [UInt8] = []
        var number = -1
        for event in wanted {
            let wantedBlock = self.block(of: event.key)
            if wantedBlock < 0 { continue }
            if wantedBlock != number {
                block = try Self.reading { () throws(SystemError) in
                    try file.read(count: Self.blockBytes, at: (wantedBlock + 1) * Self.blockBytes)
                }
                guard block.count == Self.blockBytes,
                    Self.checksum(
                        block.span.extracting(first: Self.entriesBytes), closing, wantedBlock)
                        == Self.half(block, Self.entriesBytes)
                else { throw .checksum }
                number = wantedBlock
            }
            if Self.holds(event, block) { found(event) }
        }
    }

    /// The only block that an identity may be in, as long as no two blocks begin alike; -1 for none.
    private func block(of key: Identity) -> Int {
        let half = UInt32(truncatingIfNeeded: key.high &>> 32)
        var (low, high) = (0, directory.count)
        while low < high {
            let middle = (low &+ high) / 2
            if directory[middle] <= half { low = middle &+ 1 } else { high = middle }
        }
        return low &- 1
    }

    private static func holds(_ event: Wanted, _ block: [UInt8]) -> Bool {
        var (low, high) = (0, blockEntries)
        while low < high {
            let middle = (low &+ high) / 2
            let at = middle &* entryBytes
            let key = Identity(high: word(block, at), low: word(block, at &+ 8))
            if key == event.key { return half(block, at &+ 16) == digest(of: event.content) }
            // What comes after the last entry is zeros, and no identity is.
            if key < event.key, key != Identity(high: 0, low: 0) {
                low = middle &+ 1
            } else {
                high = middle
            }
        }
        return false
    }

    private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
        precondition(offset >= 0 && offset &+ 8 <= bytes.count)
        // SAFETY: eight bytes from there are in the array.
        return unsafe bytes.span.bytes.unsafeLoadUnaligned(
            fromUncheckedByteOffset: offset, as: UInt64.self)
    }

    private static func half(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
        precondition(offset >= 0 && offset &+ 4 <= bytes.count)
        // SAFETY: four bytes from there are in the array.
        return unsafe bytes.span.bytes.unsafeLoadUnaligned(
            fromUncheckedByteOffset: offset, as: UInt32.self)
    }

    /// Half of a word over both hashes: of two contents that differ, one in four billion counts as the same.
    /// One that differs for another reason (another version made the file) only makes the database be asked.
    private static func digest(of content: EventContent) -> UInt32 {
        UInt32(
            truncatingIfNeeded: mixed(content.campaign ^ mixed(content.properties &+ 1)) &>> 32)
    }

    // MARK: Writing

    fileprivate struct Entry: BitwiseCopyable {
        let key: Identity
        let digest: UInt32
    }

    /// What a file is made of.
    struct Content: Sendable {
        fileprivate var entries: [Entry]
        /// Where the parts end that are not sorted yet.
        private var ends: [Int]

        /// The identities of a segment, sorted.
        init(_ segment: borrowing OpenSegment) {
            self.init(unsorted: segment)
            sort()
        }

        /// Identities are spread evenly, so they are dealt into parts of a few first, which ``sort()`` sorts each.
        init(unsorted segment: borrowing OpenSegment) {
            let partBits: UInt64 = 16
            var ends = [Int](repeating: 0, count: 1 << Int(partBits))
            var count = 0
            segment.forEachKey { key, _ in
                ends[Int(key.high &>> (64 &- partBits))] &+= 1
                count &+= 1
            }
            var sum = 0
            for part in ends.indices {
                sum &+= ends[part]
                ends[part] = sum &- ends[part]
            }
            let none = Entry(key: Identity(high: 0, low: 0), digest: 0)
            var entries = [Entry](repeating: none, count: count)
            segment.forEachKey { key, content in
                let part = Int(key.high &>> (64 &- partBits))
                entries[ends[part]] = Entry(key: key, digest: digest(of: content))
                ends[part] &+= 1
            }
            self.entries = entries
            self.ends = ends
        }

        /// Makes it fit to be written; does nothing the second time.
        mutating func sort() {
            var start = 0
            for end in ends {
                entries[start..<end].sort { $0.key < $1.key }
                start = end
            }
            ends = []
        }
    }

    /// Writes the identities of a segment.
    ///
    /// Nothing is synced: what a crash of the machine takes from a file is found out by its checksums.
    ///
    /// - Throws: ``SystemError``; nothing is left then.
    static func write(
        _ path: String, of closing: ClosingID, _ content: Content
    ) throws(SystemError) -> IdentityFile {
        let temporary = path + ".new"
        do throws(SystemError) {
            let directory = try write(content.entries, to: try File(temporary, .replace), closing)
            guard unsafe rename(temporary, path) == 0 else { throw .last("rename", temporary) }
            return IdentityFile(path: path, closing: closing, directory: directory)
        } catch {
            try? File.remove(temporary)
            throw error
        }
    }

    /// - Returns: The directory.
    private static func write(
        _ entries: [Entry], to file: consuming File, _ closing: ClosingID
    ) throws(SystemError) -> [UInt32] {
        var directory: [UInt32] = []
        var bytes: [UInt8] = []
        bytes.reserveCapacity(blocksAtOnce * blockBytes)
        var offset = blockBytes
        for start in stride(from: 0, to: entries.count, by: blockEntries) {
            directory.append(UInt32(truncatingIfNeeded: entries[start].key.high &>> 32))
            let block = bytes.count
            for entry in entries[start..<min(start + blockEntries, entries.count)] {
                write(entry.key.high, to: &bytes)
                write(entry.key.low, to: &bytes)
                write(entry.digest, to: &bytes)
            }
            bytes += repeatElement(0, count: block + entriesBytes - bytes.count)
            let sum = checksum(
                bytes.span.extracting(block..<block + entriesBytes), closing, directory.count - 1)
            write(sum, to: &bytes)
            bytes += repeatElement(0, count: block + blockBytes - bytes.count)
            if bytes.count >= blocksAtOnce * blockBytes {
                try file.write(bytes.span, at: offset)
                offset += bytes.count
                bytes.removeAll(keepingCapacity: true)
            }
        }
        var words: [UInt8] = []
        for first in directory { write(first, to: &words) }
        bytes += words
        try file.write(bytes.span, at: offset)
        var header: [UInt8] = []
        for word in [
            magic, closing.high, closing.low, UInt64(directory.count),
            UInt64(checksum(words.span, closing, directory.count)),
        ] { write(word, to: &header) }
        header += repeatElement(0, count: blockBytes - header.count)
        try file.write(header.span, at: 0)
        return directory
    }

    private static func write(_ value: some BitwiseCopyable, to bytes: inout [UInt8]) {
        unsafe withUnsafeBytes(of: value) { unsafe bytes.append(contentsOf: $0) }
    }
}

/// Tells one closing of a segment from every other, of this history of the database or another one.
struct ClosingID: Hashable, Sendable {
    let high: UInt64
    let low: UInt64

    static func random() -> ClosingID {
        var generator = SystemRandomNumberGenerator()
        return ClosingID(high: generator.next(), low: generator.next())
    }

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// From the binary form of uuid.
    init(uuid bytes: RawSpan) {
        let identity = Identity(uuid: bytes)
        self.init(high: identity.high, low: identity.low)
    }

    /// The 16 bytes of the uuid.
    var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }
}

extension ClosingID: CustomStringConvertible {
    /// 32 hexadecimal digits.
    var description: String { Hex.encode(bytes) }
}
