import Glibc
import Platform

/// A file that is there to be locked (flock), shared or exclusively.
///
/// A lock belongs to the open file: a child that inherits the descriptor holds it too, and it ends
/// when the last of them has closed it or died. So it is never unlocked where a child may hold it.
final class LockFile: Sendable {
    let descriptor: Int32
    private let path: String

    /// Opens the file, creating it for the owner of the directory it is in.
    init(_ path: String) throws(SystemError) {
        self.path = path
        let isNew = unsafe access(path, F_OK) != 0
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .last("open", path) }
        if isNew, geteuid() == 0 {
            // Root may be first in a directory of the user that the daemon runs as.
            var info = stat()
            if unsafe stat(Directory.parent(of: path), &info) == 0 {
                _ = fchown(descriptor, info.st_uid, info.st_gid)
            }
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Takes the exclusive lock if nobody holds any.
    func tryExclusive() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

    /// Whether nobody holds any lock.
    func isFree() -> Bool {
        guard tryExclusive() else { return false }
        release()
        return true
    }

    /// Gives up a lock that no child has inherited.
    func release() { _ = flock(descriptor, LOCK_UN) }

    /// Takes a shared lock; waits while somebody holds the exclusive one.
    func takeShared() throws(SystemError) {
        while flock(descriptor, LOCK_SH) != 0 {
            if errno != EINTR { throw .last("lock", path) }
        }
    }
}
