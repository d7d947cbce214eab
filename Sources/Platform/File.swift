internal import CPlatform
import Glibc

/// An open file, closed when the value ends.
@safe
package struct File: ~Copyable, Sendable {
    /// The descriptor; valid while this value lives.
    package let descriptor: Int32
    /// The path it was opened by, for messages.
    package let path: String
    /// Whether it was opened to be read and written past the page cache (O_DIRECT): offsets and lengths are
    /// whole blocks then and bytes lie in a ``BlockBuffer``, but for ``read(count:at:)``, which takes any. What
    /// is read or written at once may still end within a block.
    package private(set) var isDirect = false

    /// How a file is opened.
    package enum Mode: Sendable {
        /// For reading; it must exist.
        case read
        /// For reading and writing; it must exist.
        case readWrite
        /// For reading and writing; created when missing.
        case readWriteCreate
        /// For reading and writing; it must not exist.
        case createNew
        /// For writing; created or emptied.
        case replace
    }

    /// Opens a file.
    ///
    /// - Parameters:
    ///   - path: Its path.
    ///   - mode: What it is opened for.
    ///   - permissions: Those of a created file, less the umask.
    ///   - isDirect: Whether to go past the page cache where the file system can, see ``isDirect``.
    /// - Throws: ``SystemError``; nothing is left open.
    package init(
        _ path: String, _ mode: Mode, permissions: UInt32 = 0o640, isDirect: Bool = false
    ) throws(SystemError) {
        let flags: Int32 =
            switch mode {
            case .read: O_RDONLY
            case .readWrite: O_RDWR
            case .readWriteCreate: O_RDWR | O_CREAT
            case .createNew: O_RDWR | O_CREAT | O_EXCL
            case .replace: O_WRONLY | O_CREAT | O_TRUNC
            }
        descriptor = unsafe open(path, flags | O_CLOEXEC, permissions)
        self.path = path
        guard descriptor >= 0 else { throw .last("open", path) }
        self.isDirect = isDirect && tapline_set_direct(descriptor, 1) == 0
    }

    /// What a failed read is thrown as: one of bytes that the disk has lost is `EIO`, as it is through the page
    /// cache; past it the kernel says in its own words what the disk said (`blk_status_to_errno`).
    package static func readError(_ error: SystemError) -> SystemError {
        guard [ENODATA, EILSEQ, EREMOTEIO].contains(error.code) else { return error }
        return SystemError(code: EIO, action: error.action, path: error.path)
    }

    /// Whether to try again what has failed just now: for a signal, or because the file system takes the flag of
    /// direct I/O and no such call. From then on all goes through the page cache, in the same blocks.
    private func canTryAgain(_ isDirect: inout Bool) -> Bool {
        if errno == EINTR { return true }
        guard errno == EINVAL, isDirect else { return false }
        isDirect = false
        return tapline_set_direct(descriptor, 0) == 0
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Reads once at an offset, without moving a position.
    ///
    /// - Parameters:
    ///   - buffer: Receives the bytes.
    ///   - offset: Where in the file.
    /// - Returns: How many bytes were read, 0 at the end of the file.
    @unsafe
    package func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int
    ) throws(SystemError) -> Int {
        var isDirect = isDirect
        while true {
            // SAFETY: the kernel writes at most the buffer's count.
            let count = unsafe pread(descriptor, buffer.baseAddress, buffer.count, offset)
            if count >= 0 { return count }
            let error = SystemError.last("read", path)
            guard canTryAgain(&isDirect) else { throw Self.readError(error) }
        }
    }

    /// Reads `count` bytes at an offset; fewer only at the end of the file.
    package func read(count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        if isDirect { return try readBlocks(count: count, at: offset) }
        var failure: SystemError?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            while initialized < count {
                do throws(SystemError) {
                    // SAFETY: the rest of the buffer, past what is filled.
                    let rest = unsafe UnsafeMutableRawBufferPointer(
                        rebasing: UnsafeMutableRawBufferPointer(buffer)[initialized...])
                    let got = try unsafe read(into: rest, at: offset + initialized)
                    if got == 0 { break }
                    initialized += got
                } catch {
                    failure = error
                    break
                }
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads the blocks that hold those bytes.
    private func readBlocks(count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        let start = BlockBuffer.roundedDown(offset)
        var blocks = BlockBuffer(capacity: offset + count - start)
        try append(to: &blocks, upTo: blocks.capacity, at: start)
        let bytes = blocks.span
        guard bytes.count > offset - start else { return [] }
        let found = bytes.extracting(offset - start..<min(bytes.count, offset - start + count))
        return unsafe found.withUnsafeBufferPointer { unsafe [UInt8]($0) }
    }

    /// Appends to a buffer what is in the file from an offset on; less than is wanted only at the end of the file.
    ///
    /// - Parameters:
    ///   - buffer: Of whole blocks, if the file is direct.
    ///   - count: How many bytes it is to have then, at most its capacity; whole blocks.
    /// - Throws: ``SystemError``; the buffer has what was read before.
    package func append(
        to buffer: inout BlockBuffer, upTo count: Int, at offset: Int
    ) throws(SystemError) {
        var offset = offset
        while buffer.count < count {
            let got = try unsafe buffer.append(upTo: count) { room throws(SystemError) in
                try unsafe read(into: room, at: offset)
            }
            offset += got
            if got == 0 { return }
            let part = isDirect ? got % BlockBuffer.blockBytes : 0
            guard part > 0 else { continue }
            // A part of a block is the end of the file, or has to be read once more.
            if try offset >= size() { return }
            guard got > part else { throw SystemError(code: EIO, action: "read", path: path) }
            buffer.truncate(to: buffer.count - part)
            offset -= part
        }
    }

    /// Writes once at an offset; the count may be short.
    ///
    /// - Returns: How many bytes were written.
    package func writeOnce(_ bytes: Span<UInt8>, at offset: Int) throws(SystemError) -> Int {
        var isDirect = isDirect
        while true {
            let count = unsafe bytes.withUnsafeBufferPointer { buffer in
                // SAFETY: the buffer is valid for the call, which only reads it.
                unsafe pwrite(descriptor, buffer.baseAddress, buffer.count, offset)
            }
            if count >= 0 { return count }
            let error = SystemError.last("write", path)
            guard canTryAgain(&isDirect) else { throw error }
        }
    }

    /// Writes all of `bytes` at an offset.
    ///
    /// - Throws: ``SystemError``; a prefix may be written.
    package func write(_ bytes: Span<UInt8>, at offset: Int) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let rest = bytes.extracting(droppingFirst: done)
            let count = try writeOnce(rest, at: offset + done)
            guard count > 0 else { throw SystemError(code: EIO, action: "write", path: path) }
            done += count
        }
    }

    /// Makes the content durable (fdatasync).
    ///
    /// - Throws: ``SystemError``; unsynced pages may be lost, and a second call must not be believed.
    package func sync() throws(SystemError) {
        while fdatasync(descriptor) != 0 {
            if errno != EINTR { throw .last("sync", path) }
        }
    }

    /// Cuts or extends the file to `count` bytes.
    package func truncate(to count: Int) throws(SystemError) {
        while ftruncate(descriptor, count) != 0 {
            if errno != EINTR { throw .last("truncate", path) }
        }
    }

    /// The size in bytes.
    package func size() throws(SystemError) -> Int { try status().size }

    /// The size and the time of the last change of the content.
    package func status() throws(SystemError) -> (size: Int, modified: Microseconds) {
        var info = stat()
        guard unsafe fstat(descriptor, &info) == 0 else { throw .last("examine", path) }
        let modified =
            Int64(info.st_mtim.tv_sec) * 1_000_000 + Int64(info.st_mtim.tv_nsec) / 1000
        return (Int(info.st_size), modified)
    }

    /// Sets the time of the last change to now.
    package func touch() throws(SystemError) {
        guard futimens(descriptor, nil) == 0 else { throw .last("touch", path) }
    }

    /// The whole content of a file.
    package static func contents(of path: String) throws(SystemError) -> [UInt8] {
        let file = try File(path, .read)
        return try file.read(count: file.size(), at: 0)
    }

    /// Replaces a file durably: temporary file, sync, rename, sync of the directory.
    ///
    /// After a crash at any moment there is the old content or the new.
    package static func replace(
        _ path: String, with bytes: Span<UInt8>, permissions: UInt32 = 0o640
    ) throws(SystemError) {
        let temporary = path + ".new"
        do {
            let file = try File(temporary, .replace, permissions: permissions)
            try file.write(bytes, at: 0)
            try file.sync()
        }
        try Failpoint.attempt("file.replace", path)
        guard unsafe rename(temporary, path) == 0 else { throw .last("replace", path) }
        try Directory.sync(Directory.parent(of: path))
    }

    /// Moves a file durably within its file system, replacing what is there.
    package static func move(_ path: String, to target: String) throws(SystemError) {
        guard unsafe rename(path, target) == 0 else { throw .last("move", path) }
        try Directory.sync(Directory.parent(of: target))
        try Directory.sync(Directory.parent(of: path))
    }

    /// Removes a file; a missing one is no error.
    package static func remove(_ path: String) throws(SystemError) {
        guard unsafe unlink(path) == 0 || errno == ENOENT else { throw .last("remove", path) }
    }
}
