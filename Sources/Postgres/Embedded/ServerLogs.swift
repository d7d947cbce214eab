import Glibc
import Platform

/// The log files of the embedded server.
struct ServerLogs {
    private let layout: ClusterLayout
    /// Of 16 MB each.
    private static let filesMax = 5

    init(_ layout: ClusterLayout) { self.layout = layout }

    private var names: [String] {
        ((try? Directory.list(layout.logs)) ?? []).filter {
            $0.hasPrefix("postgresql-") && $0.hasSuffix(".log")
        }
    }

    /// Removes the oldest; their names sort by time.
    func prune() {
        for name in names.dropLast(Self.filesMax) { unsafe unlink(layout.logs + "/" + name) }
    }

    /// Why the server ended, in its own words.
    var lastError: String {
        var text = tail(layout.startLog)
        if let name = names.last { text += "\n" + tail(layout.logs + "/" + name) }
        return Self.lastError(in: text)
    }

    /// The last line that tells of an error, without the time; else the last line.
    static func lastError(in output: String) -> String {
        let lines = output.split(whereSeparator: \.isNewline)
        for line in lines.reversed() {
            for mark in ["PANIC:  ", "FATAL:  ", "error: "] {
                if let range = line.firstRange(of: mark) {
                    return String(line[range.upperBound...])
                }
            }
        }
        return lines.last.map(String.init) ?? "no reason given"
    }

    private func tail(_ path: String) -> String {
        guard let file = try? File(path, .read), let size = try? file.size(),
            let bytes = try? file.read(count: min(size, 8192), at: max(0, size - 8192))
        else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }
}
