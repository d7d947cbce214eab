import Platform

/// The operations through which segments are written, so that tests can make them fail.
///
/// They are called a few times a group, on the committer thread.
package struct SpoolStorage: Sendable {
    /// Writes once at an offset; may write less than all, and says how much.
    package var write:
        @Sendable (borrowing File, Span<UInt8>, _ offset: Int) throws(SystemError) -> Int
    /// Makes a segment durable.
    package var sync: @Sendable (borrowing File) throws(SystemError) -> Void
    /// Cuts a segment.
    package var truncate: @Sendable (borrowing File, _ bytes: Int) throws(SystemError) -> Void

    /// Storage of given operations.
    package init(
        write:
            @escaping @Sendable (borrowing File, Span<UInt8>, Int) throws(SystemError) -> Int,
        sync: @escaping @Sendable (borrowing File) throws(SystemError) -> Void,
        truncate: @escaping @Sendable (borrowing File, Int) throws(SystemError) -> Void
    ) {
        self.write = write
        self.sync = sync
        self.truncate = truncate
    }

    /// The file system.
    package static let system = SpoolStorage(
        write: { (file, bytes, offset) throws(SystemError) in
            try file.writeOnce(bytes, at: offset)
        },
        sync: { (file) throws(SystemError) in try file.sync() },
        truncate: { (file, bytes) throws(SystemError) in try file.truncate(to: bytes) })
}
