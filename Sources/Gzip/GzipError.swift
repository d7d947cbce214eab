/// Why a gzip body could not be read, or could not be made.
package enum GzipError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The body does not begin with the two gzip bytes `1f 8b`.
    case notGzip
    /// The body ends inside a member.
    case truncated
    /// The body is damaged; `reason` says what is wrong, in zlib's words where it has any.
    case corrupt(reason: String)
    /// Something other than zero bytes or a further member follows a member.
    case trailingGarbage
    /// The inflated body would be longer than `limit` bytes.
    case tooLarge(limit: Int)
    /// There was no memory for the state of zlib or ISA-L.
    case outOfMemory

    package var description: String {
        switch self {
        case .notGzip: "cannot inflate body: it does not begin with a gzip header"
        case .truncated: "cannot inflate body: it ends inside a gzip member"
        case .corrupt(let reason): "cannot inflate body: \(reason)"
        case .trailingGarbage: "cannot inflate body: data after the last gzip member"
        case .tooLarge(let limit): "cannot inflate body: more than \(limit) bytes inflated"
        case .outOfMemory: "could not inflate body: out of memory"
        }
    }
}
