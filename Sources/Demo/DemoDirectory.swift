import Glibc
internal import Options

/// The directory of a demo: the user's, or one that goes away with the demo.
struct DemoDirectory {
    let path: String
    /// Whether it was made for this demo and goes away.
    let isTemporary: Bool

    /// Takes or makes the directory.
    init(path: String?, isKept: Bool) throws(DemoError) {
        if let path {
            self.path = path
            isTemporary = false
            try DemoDirectory.create(path)
            return
        }
        // Short, because the database's socket has its path in here.
        // SAFETY: mkdtemp changes the six letters in place; strdup's copy is freed here.
        let template = unsafe strdup("/tmp/tapline-demo-XXXXXX")
        defer { unsafe free(template) }
        guard let template = unsafe template, let made = unsafe mkdtemp(template) else {
            throw DemoError("could not make a directory in \"/tmp\": \(errorText(errno))")
        }
        self.path = unsafe String(cString: made)
        isTemporary = !isKept
        // A database started by root runs as another user, who has to pass through.
        if geteuid() == 0 { unsafe chmod(self.path, 0o755) }
    }

    /// Makes a directory and those above it.
    private static func create(_ path: String) throws(DemoError) {
        var made = path.hasPrefix("/") ? "" : "."
        for part in path.split(separator: "/") {
            made += "/\(part)"
            if unsafe mkdir(made, 0o755) != 0, errno != EEXIST {
                throw DemoError("could not make directory \"\(made)\": \(errorText(errno))")
            }
        }
    }

    /// Removes it with all that is in it, if it was made for this demo.
    func removeIfTemporary() {
        guard isTemporary else { return }
        DemoDirectory.remove(path)
    }

    /// Removes a file, or a directory with all that is in it; links are not followed.
    private static func remove(_ path: String) {
        if unsafe unlink(path) == 0 { return }
        guard let directory = unsafe opendir(path) else { return }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            // SAFETY: the name ends with a zero inside the entry, which lives until the next call.
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        unsafe closedir(directory)
        for name in names { remove("\(path)/\(name)") }
        _ = unsafe rmdir(path)
    }
}
