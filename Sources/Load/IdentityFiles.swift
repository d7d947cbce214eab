import Event
import Platform

/// The directory of the identity files of a daemon: a cache, which may be deleted whenever the daemon is
/// stopped.
package final class IdentityFiles: Sendable {
    private let directory: String
    /// The newest segments are kept, up to so many bytes.
    private let bytesMax: Int
    private let isFailing = Sync.Monitor(false)
    private static let ending = ".identities"
    /// What is left to the spool, and to the database if it is on the same disk.
    private static let freeBytesMin = 1 << 30

    /// - Parameters:
    ///   - directory: Is made when it is needed.
    ///   - bytesMax: Of all files together; 0 keeps none.
    package init(directory: String, bytesMax: Int) {
        self.directory = directory
        self.bytesMax = bytesMax
    }

    private func name(_ segment: Int, _ closing: ClosingID) -> String {
        "\(segment)-\(closing)\(Self.ending)"
    }

    /// Opens the files of segments, as far as there are some and there is room for them.
    ///
    /// - Parameter closings: Those of all closed segments; other files are removed.
    func open(_ closings: [Int: ClosingID]) -> [Int: IdentityFile] {
        let names: [String]
        do throws(SystemError) {
            names = try Directory.list(directory)
        } catch {
            return [:]
        }
        var segments: [String: (segment: Int, closing: ClosingID)] = [:]
        for (segment, closing) in closings {
            segments[name(segment, closing)] = (segment, closing)
        }
        var files: [Int: IdentityFile] = [:]
        for name in names {
            let path = directory + "/" + name
            guard let (segment, closing) = segments[name] else {
                // Of another history, or what a crash has left.
                if name.contains(Self.ending) { try? File.remove(path) }
                continue
            }
            do throws(IdentityFile.Damage) {
                files[segment] = try IdentityFile(path: path, of: closing)
            } catch {
                drop(path, error)
            }
        }
        makeRoom(&files)
        return files
    }

    /// Writes the file of a segment that is being closed.
    ///
    /// - Returns: Nil if that is not possible, which is said once, or not wanted, as on a disk that is nearly
    ///   full.
    func write(_ segment: borrowing OpenSegment, _ closing: ClosingID) -> IdentityFile? {
        guard bytesMax > 0 else { return nil }
        do throws(SystemError) {
            try Directory.create(directory)
            guard try Directory.freeBytes(directory) >= Self.freeBytesMin else { return nil }
            let path = directory + "/" + name(segment.number, closing)
            let file = try IdentityFile.write(path, of: closing, segment)
            isFailing.withLock { $0 = false }
            return file
        } catch {
            let isNews = isFailing.withLock { isFailing in
                defer { isFailing = true }
                return !isFailing
            }
            if isNews {
                Log.warn(
                    "cannot write the identities of a closed segment: \(error)",
                    hint: "Nothing is lost: the database is asked for what is sent again, which "
                        + "takes longer. Setting load.identity_files_bytes_max bounds these files, "
                        + "0 turns them off.")
            }
            return nil
        }
    }

    /// Removes the files of the oldest segments until the others fit.
    func makeRoom(_ files: inout [Int: IdentityFile]) {
        var bytes = files.values.reduce(0) { $0 + $1.bytes }
        for segment in files.keys.sorted() where bytes > bytesMax {
            guard let file = files.removeValue(forKey: segment) else { continue }
            bytes -= file.bytes
            remove(file)
        }
    }

    func remove(_ file: IdentityFile) { try? File.remove(file.path) }

    /// Removes a file that is of no use any more.
    func drop(_ path: String, _ damage: IdentityFile.Damage) {
        switch damage {
        case .unreadable(let error): Log.warn("cannot use a file of identities: \(error)")
        case .checksum:
            Log.warn("\(path) is damaged, removed", hint: "The database is asked instead.")
        case .other: Log.debug("\(path) is of another version, removed")
        }
        try? File.remove(path)
    }
}
