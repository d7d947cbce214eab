/// Why a file could not be sent, or not to its end.
package enum ClientError: Error, Equatable, Sendable {
    /// The file is not there or cannot be opened or read.
    case unreadable(file: String, reason: String)
    /// The gzip data end too early; the lines before that have been sent.
    case truncatedGzip(file: String)
    /// The gzip data are wrong; the lines before that have been sent.
    case corruptGzip(file: String)
    /// The URL is not one to send to.
    case badURL(String)
    /// Memory is short, or libcurl does not work.
    case unavailable(reason: String)
    /// What was asked for was not answered with 200.
    case notAnswered(url: String, reason: String)

    /// One line, as it goes to stderr.
    package var message: String {
        switch self {
        case .unreadable(let file, let reason): "could not read \"\(file)\": \(reason)"
        case .truncatedGzip(let file): "could not read \"\(file)\": gzip data are truncated"
        case .corruptGzip(let file): "could not read \"\(file)\": gzip data are corrupt"
        case .badURL(let url): "cannot send to \"\(url)\": expected http:// or https://"
        case .notAnswered(let url, let reason): "could not get \"\(url)\": \(reason)"
        case .unavailable(let reason): "could not send: \(reason)"
        }
    }
}
