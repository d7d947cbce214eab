import Glibc

/// Operations on directories.
package enum Directory {
    /// Creates a directory and the missing ones above it.
    ///
    /// - Parameter permissions: Of the created ones, less the umask.
    package static func create(
        _ path: String, permissions: UInt32 = 0o750
    ) throws(SystemError) {
        if unsafe mkdir(path, permissions) == 0 { return }
        let above = parent(of: path)
        if errno == ENOENT, above != path {
            try create(above, permissions: permissions)
            if unsafe mkdir(path, permissions) == 0 { return }
        }
        guard errno == EEXIST, isDirectory(path) else { throw .last("create directory", path) }
    }

    /// The names in a directory without `.` and `..`, sorted by their bytes.
    package static func list(_ path: String) throws(SystemError) -> [String] {
        guard let stream = unsafe opendir(path) else { throw .last("list", path) }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = unsafe readdir(stream) else { break }
            // SAFETY: d_name is NUL-terminated within the entry, which is valid until readdir.
            let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw .last("list", path) }
        return names.sorted()
    }

    /// Makes creations, renames and removals in a directory durable (fsync).
    package static func sync(_ path: String) throws(SystemError) {
        let directory = try File(path, .read)
        while fsync(directory.descriptor) != 0 {
            if errno != EINTR { throw .last("sync directory", path) }
        }
    }

    /// Bytes that may still be written to the file system of a directory.
    package static func freeBytes(_ path: String) throws(SystemError) -> Int {
        var info = statvfs()
        guard unsafe statvfs(path, &info) == 0 else { throw .last("examine", path) }
        return Int(clamping: UInt64(info.f_bavail) &* UInt64(info.f_frsize))
    }

    /// Whether the path is a directory.
    package static func isDirectory(_ path: String) -> Bool {
        var info = stat()
        return unsafe stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    /// The directory that holds a path: `a/b` gives `a`, `b` gives `.`.
    package static func parent(of path: String) -> String {
        var trimmed = Substring(path)
        while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }
}

/// An exclusive lock on a file (flock), held until the value ends or the process does.
package struct FileLock: ~Copyable, Sendable {
    private let file: File

    // A process that is being started has the descriptor, too, until it runs its program: to close it here
    // would leave the lock to that.
    deinit { flock(file.descriptor, LOCK_UN) }

    /// Takes the lock without waiting, creating the file when missing.
    ///
    /// - Returns: Nil when another holds it, in this process or another.
    /// - Throws: ``SystemError`` when the file cannot be opened or locked.
    package static func tryTake(_ path: String) throws(SystemError) -> FileLock? {
        let file = try File(path, .readWriteCreate)
        while flock(file.descriptor, LOCK_EX | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return nil }
            if errno != EINTR { throw .last("lock", path) }
        }
        return FileLock(file: file)
    }
}
