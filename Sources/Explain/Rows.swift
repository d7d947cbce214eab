import Event
import Glibc
import Postgres

extension EventRow {
    /// The row of a result in binary format whose first columns are those of ``EventColumn``.
    init(_ result: borrowing PostgresResult, _ row: Int) {
        var bytes: [UInt8] = [0, UInt8(EventColumn.count)]
        for column in 0..<EventColumn.count {
            let value = result.array(row, column)
            let count = value.map { Int32($0.count) } ?? -1
            for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
            bytes += value ?? []
        }
        self.init(checked: bytes, 0..<bytes.count)
    }
}

/// All units of a message, as a range of `unit`.
enum MessageRange {
    /// SQL that is true for units of messages.
    ///
    /// - Parameter messages: The message halves, 16 hexadecimal digits each.
    static func sql(_ messages: some Sequence<String>, _ column: String) -> String {
        let ranges = messages.map { half in
            precondition(half.utf8.count == 16, "half of a unit of \(half.utf8.count) digits")
            let zeros = String(repeating: "0", count: 16)
            let ones = String(repeating: "f", count: 16)
            return "(\(column) >= '\(half)\(zeros)'::uuid AND \(column) <= '\(half)\(ones)'::uuid)"
        }
        return "(\(ranges.joined(separator: " OR ")))"
    }

    /// SQL that is true for events that name inbox messages.
    ///
    /// - Parameter segments: Those whose events may name any; the others have no index for it.
    static func inbox(_ messages: some Sequence<String>, in segments: [Int64]) -> String {
        let list = segments.map(String.init).joined(separator: ",")
        return "(e.segment = ANY ('{\(list)}') AND \(sql(messages, "e.inbox_unit")))"
    }
}

extension [UInt8] {
    /// Whether some bytes are among these, one after the other.
    func contains(bytes pattern: [UInt8]) -> Bool {
        guard let first = pattern.first else { return true }
        return unsafe withUnsafeBytes { text in
            guard let start = text.baseAddress else { return false }
            // SAFETY: what is searched and compared is inside the two arrays.
            return unsafe pattern.withUnsafeBytes { pattern in
                var index = 0
                while index + pattern.count <= text.count {
                    let rest = text.count - pattern.count - index + 1
                    guard let next = unsafe memchr(start + index, Int32(first), rest) else {
                        return false
                    }
                    if unsafe memcmp(next, pattern.baseAddress!, pattern.count) == 0 { return true }
                    unsafe index = UnsafeRawPointer(next) - start + 1
                }
                return false
            }
        }
    }
}
