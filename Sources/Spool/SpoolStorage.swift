import Platform

/// The operations through which a spool changes its directory, so that tests can make them fail, and
/// lose what a power cut would.
///
/// Segments are written a few times a group, on the committer thread; the rest is rare. Reading is
/// not among them.
package struct SpoolStorage: Sendable {
    /// Creates a file that must not exist, to be written past the page cache if it can be.
    package var create: @Sendable (_ path: String) throws(SystemError) -> File = {
        (path) throws(SystemError) in try File(path, .createNew, isDirect: true)
    }
    /// Writes once at an offset; may write less than all, and says how much.
    package var write:
        @Sendable (borrowing File, Span<UInt8>, _ offset: Int) throws(SystemError) -> Int = {
            (file, bytes, offset) throws(SystemError) in try file.writeOnce(bytes, at: offset)
        }
    /// Makes the content of a file durable.
    package var sync: @Sendable (borrowing File) throws(SystemError) -> Void = {
        (file) throws(SystemError) in try file.sync()
    }
    /// Cuts a segment.
    package var truncate: @Sendable (borrowing File, _ bytes: Int) throws(SystemError) -> Void = {
        (file, bytes) throws(SystemError) in try file.truncate(to: bytes)
    }
    /// Replaces a file durably, see ``Platform/File/replace(_:with:permissions:)``.
    package var replace: @Sendable (_ path: String, Span<UInt8>) throws(SystemError) -> Void = {
        (path, bytes) throws(SystemError) in try File.replace(path, with: bytes)
    }
    /// Moves a file durably.
    package var move: @Sendable (_ path: String, _ target: String) throws(SystemError) -> Void = {
        (path, target) throws(SystemError) in try File.move(path, to: target)
    }
    /// Removes a file; a missing one is no error.
    package var remove: @Sendable (_ path: String) throws(SystemError) -> Void = {
        (path) throws(SystemError) in try File.remove(path)
    }
    /// Makes creations and removals in a directory durable.
    package var syncDirectory: @Sendable (_ path: String) throws(SystemError) -> Void = {
        (path) throws(SystemError) in try Directory.sync(path)
    }

    /// Removes a segment that never held a durable record, durably: if it came back after newer ones
    /// were made, it would pass for a damaged one.
    func discard(_ path: String) throws(SystemError) {
        try remove(path)
        try syncDirectory(Directory.parent(of: path))
    }

    /// The file system.
    package static let system = SpoolStorage()
}
