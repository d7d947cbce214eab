import Client
import Glibc

/// A file of the rows that were refused: the same table with the reason before the other columns, so
/// that it can be put right and imported again.
///
/// It is made when the first row comes.
package final class Rejects {
    package let path: String
    /// How many rows it has.
    package private(set) var rows = 0
    /// Why a row could not be written.
    package private(set) var failure: String?
    private let separator: UInt8
    private var descriptor: Int32 = -1

    /// - Parameter path: Replaced if it is there.
    package init(path: String, separator: UInt8) {
        self.path = path
        self.separator = separator
    }

    /// Where the rows of a file go that are refused, if nothing else is said.
    package static func path(of file: String) -> String {
        (file == "-" ? "stdin" : file) + ".rejects"
    }

    /// Why refused rows cannot go to these files: one of them is a file that is read, or two are the same,
    /// by whatever names. The first row would empty it.
    ///
    /// - Parameters:
    ///   - paths: Where rows of the files are to go, in their order.
    ///   - files: What is imported; `-` is standard input.
    ///   - others: What else is read.
    /// - Returns: One line; nil where all is well.
    package static func conflict(
        of paths: [String], for files: [String], others: [String] = []
    ) -> String? {
        var taken: [FilePlace: String] = [:]
        for file in files + others {
            if let place = FilePlace(file == "-" ? "/dev/stdin" : file) { taken[place] = file }
        }
        for (path, file) in zip(paths, files) {
            guard let place = FilePlace(path) else { continue }
            guard let other = taken.updateValue(path, forKey: place) else { continue }
            return "refused rows of \"\(file)\" cannot go to \"\(path)\": "
                + "it is the same file as \"\(other)\""
        }
        return nil
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Adds a row.
    ///
    /// - Parameters:
    ///   - header: The names of the columns as they stand in the file; nil if it has none: then the
    ///     reasons are not in it either, and the rows are as they came.
    func add(_ raw: [UInt8], reason: String, header: [UInt8]?) {
        if rows == 0 { create(header) }
        rows += 1
        var line: [UInt8] = []
        if header != nil {
            line += "\"\(reason.replacing("\"", with: "\"\""))\"".utf8
            line.append(separator)
        }
        write(line + raw + [0x0A])
    }

    private func create(_ header: [UInt8]?) {
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        if descriptor < 0 { return fail() }
        guard let header else { return }
        write(Array(RowMapper.reasonColumn.utf8) + [separator] + header + [0x0A])
    }

    private func write(_ bytes: [UInt8]) {
        var written = 0
        while failure == nil, written < bytes.count {
            // SAFETY: the range written .. count lies inside the buffer.
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(
                    descriptor, buffer.baseAddress! + written, buffer.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return fail() }
            written += count
        }
    }

    private func fail() {
        failure = "could not write \"\(path)\": \(systemReason(errno))"
    }
}
