import Glibc
import Platform

/// Which file a path means, whatever it is called.
struct FilePlace: Hashable {
    private let device: UInt
    private let inode: UInt
    /// Of a file that is not there yet: its name in that directory.
    private let name: String?

    /// - Returns: Nil for what writing does not empty, such as a pipe, and for what cannot be there.
    init?(_ path: String) {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFREG else { return nil }
            name = nil
        } else {
            guard unsafe stat(Directory.parent(of: path), &status) == 0 else { return nil }
            name = path.split(separator: "/").last.map(String.init)
        }
        device = status.st_dev
        inode = status.st_ino
    }
}
