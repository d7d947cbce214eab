import Platform

/// The names of a spool's files.
struct SpoolDirectory: Sendable {
    let path: String

    var lock: String { path + "/lock" }
    var identity: String { path + "/identity" }
    var released: String { path + "/released" }
    var quarantine: String { path + "/quarantine" }

    static func name(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 12 - digits.count)) + digits + ".seg"
    }

    func segment(_ number: UInt64) -> String { path + "/" + Self.name(number) }

    /// The numbers of the segments on disk, rising.
    func segments() throws(SystemError) -> [UInt64] {
        try Directory.list(path).compactMap { name in
            guard name.hasSuffix(".seg"), let number = UInt64(name.dropLast(4)), number > 0,
                Self.name(number) == name
            else { return nil }
            return number
        }.sorted()
    }
}

/// Who the spool is. The database keeps a checkpoint for each id, fenced by the epoch.
///
/// The file has 52 bytes: magic "TAPSPLID", version (4, = 1), id (16), epoch (16), zero (4), and
/// the checksum (4) of all before it. It is replaced whole.
struct SpoolIdentity: Equatable {
    var id: SpoolID
    var epoch: SpoolID

    static let magic = Array("TAPSPLID".utf8)

    func encoded() -> [UInt8] {
        var bytes = Self.magic
        bytes.append(littleEndian: UInt32(1))
        bytes += id.bytes + epoch.bytes
        bytes.append(littleEndian: UInt32(0))
        bytes.append(littleEndian: CRC32C.checksum(bytes.span))
        return bytes
    }

    init(id: SpoolID, epoch: SpoolID) {
        self.id = id
        self.epoch = epoch
    }

    init?(decoding bytes: [UInt8]) {
        guard bytes.count == 52, bytes.starts(with: Self.magic),
            bytes.span.littleEndian(at: 8) as UInt32 == 1,
            CRC32C.checksum(bytes.span.extracting(0..<48)) == bytes.span.littleEndian(at: 48)
        else { return nil }
        id = SpoolID(bytes: Array(bytes[12..<28]))
        epoch = SpoolID(bytes: Array(bytes[28..<44]))
    }

    /// Reads the file; nil when there is none or it is damaged.
    static func load(_ path: String) throws(SystemError) -> SpoolIdentity? {
        do throws(SystemError) {
            return SpoolIdentity(decoding: try File.contents(of: path))
        } catch {
            if error.isNotFound { return nil }
            throw error
        }
    }

    func save(_ path: String, _ storage: SpoolStorage) throws(SystemError) {
        try storage.replace(path, encoded().span)
    }
}

/// The number of the segment up to which all are loaded, so that a start with the database down
/// knows what still waits. It is advice: a lost one costs space, never a record.
///
/// The file has 12 bytes: the number (8) and the checksum (4) of it.
enum ReleasedFile {
    static func load(_ path: String) -> UInt64 {
        guard let bytes = try? File.contents(of: path), bytes.count == 12,
            CRC32C.checksum(bytes.span.extracting(0..<8)) == bytes.span.littleEndian(at: 8)
        else { return 0 }
        return bytes.span.littleEndian(at: 0)
    }

    static func save(
        _ number: UInt64, _ path: String, _ storage: SpoolStorage
    ) throws(SystemError) {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: number)
        bytes.append(littleEndian: CRC32C.checksum(bytes.span))
        try storage.replace(path, bytes.span)
    }
}
