import Event
import Platform

/// The directory of the identity files of a daemon: a cache, which may be deleted at any time.
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

    var keepsAny: Bool { bytesMax > 0 }

    private func name(_ segment: Int, _ closing: ClosingID) -> String {
        "\(segment)-\(closing)\(Self.ending)"
    }

    /// Opens the files of closings, as far as there are some.
    ///
    /// - Parameter isFirst: Whether these are all closings that there are: the files of others are removed.
    func open(_ closings: [Int: ClosingID], isFirst: Bool) -> [Int: IdentityFile] {
        var files: [Int: IdentityFile] = [:]
        // Those that are there: of most closings of other daemons none is.
        guard let names = try? Set(Directory.list(directory)) else { return [:] }
        for (segment, closing) in closings {
            let name = name(segment, closing)
            guard names.contains(name) else { continue }
            let path = directory + "/" + name
            do throws(IdentityFile.Damage) {
                files[segment] = try IdentityFile(path: path, of: closing)
            } catch {
                drop(path, error)
            }
        }
        if isFirst {
            // Of another history, or what a crash has left.
            let known = Set(closings.map { name($0, $1) })
            for name in names where name.contains(Self.ending) && !known.contains(name) {
                try? File.remove(directory + "/" + name)
            }
        }
        return files
    }

    /// Writes the file of a segment that was closed.
    ///
    /// - Returns: Nil if that is not possible, which is said once, or not wanted, as on a disk that is nearly
    ///   full.
    func write(
        _ content: IdentityFile.Content, _ segment: Int, _ closing: ClosingID
    ) -> IdentityFile? {
        guard keepsAny else { return nil }
        do throws(SystemError) {
            try Directory.create(directory)
            guard try hasSpace() else { return nil }
            let path = directory + "/" + name(segment, closing)
            let file = try IdentityFile.write(path, of: closing, content)
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

    private func hasSpace() throws(SystemError) -> Bool {
        try Directory.freeBytes(directory) >= Self.freeBytesMin
    }

    /// Removes the files of the oldest segments until the others fit, and while the disk is nearly full.
    func makeRoom(_ files: inout [Int: IdentityFile]) {
        var bytes = files.values.reduce(0) { $0 + $1.bytes }
        for segment in files.keys.sorted() {
            if bytes <= bytesMax, (try? hasSpace()) ?? true { break }
            guard let file = files.removeValue(forKey: segment) else { continue }
            bytes -= file.bytes
            remove(file)
        }
    }

    func remove(_ file: IdentityFile) { try? File.remove(file.path) }

    /// Removes a file that is of no use any more.
    func drop(_ path: String, _ damage: IdentityFile.Damage) {
        switch damage {
        case .unreadable(let error) where error.isNotFound: Log.debug("\(path) was removed")
        case .unreadable(let error): Log.warn("cannot use a file of identities: \(error)")
        case .checksum:
            Log.warn("\(path) is damaged, removed", hint: "The database is asked instead.")
        case .other: Log.debug("\(path) is of another version, removed")
        }
        try? File.remove(path)
    }
}
