import Glibc
import Platform

/// The directory of the server's socket.
///
/// The address of a socket has 107 bytes, so a long DIR gets a short directory under /tmp, whose
/// name is kept in DIR/postgres.socket-dir while the server lives. So does a DIR that the server's
/// user cannot enter, and one whose name the server's own settings could not express.
///
/// The server's user owns it; besides, only the group of the caller may enter, so that root needs
/// no special capability to.
struct SocketDirectory {
    let layout: ClusterLayout
    let user: ServerUser?

    /// The longest directory: 107 less `/.s.PGSQL.5432`, and a few to spare.
    static let bytesMax = 90

    /// Makes the directory ready for a server that is about to start.
    func make(isReachable: Bool) throws(SystemError) -> String {
        let isOrdinary = layout.run.utf8.allSatisfy { byte in
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 47, 95: true
            default: false
            }
        }
        if isReachable, isOrdinary, layout.run.utf8.count <= Self.bytesMax {
            removeShort()
            if unsafe mkdir(layout.run, 0o700) != 0, errno != EEXIST {
                throw .last("create directory", layout.run)
            }
            try handOver(layout.run)
            return layout.run
        }
        if let short = short() { return short }
        var template = Array("/tmp/tapline-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw .last("create directory in", "/tmp") }
        let short = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try handOver(short)
        let text = Array(short.utf8)
        try File.replace(layout.socketRecord, with: text.span, permissions: 0o644)
        return short
    }

    /// Removes the short directory of a server that has ended.
    func removeShort() {
        guard let short = short() else { return }
        removeSocket(in: short)
        unsafe rmdir(short)
        unsafe unlink(layout.socketRecord)
    }

    /// Removes what a killed server left, which would be in the way if its number lives again.
    func removeSocket(in directory: String) {
        unsafe unlink(directory + "/.s.PGSQL.5432")
        unsafe unlink(directory + "/.s.PGSQL.5432.lock")
    }

    /// The recorded directory, if it is still what we made.
    private func short() -> String? {
        guard let bytes = try? File.contents(of: layout.socketRecord) else { return nil }
        let path = String(decoding: bytes, as: UTF8.self)
        var info = stat()
        guard path.hasPrefix("/tmp/tapline-"), unsafe lstat(path, &info) == 0,
            info.st_mode & S_IFMT == S_IFDIR, info.st_uid == user?.uid ?? geteuid()
        else { return nil }
        return path
    }

    private func handOver(_ path: String) throws(SystemError) {
        guard let user else { return }
        guard unsafe lchown(path, user.uid, getegid()) == 0, unsafe chmod(path, 0o710) == 0 else {
            throw .last("hand over directory", path)
        }
    }
}
