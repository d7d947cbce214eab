/// Why the server could not start.
package enum HTTPServerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The listen address is not `ADDRESS:PORT`.
    case malformedAddress(String)
    /// The listen address has no meaning on this machine; `reason` is the resolver's.
    case couldNotResolve(String, reason: String)
    /// Another process, or another server of this one, listens there.
    case addressInUse(String)
    /// The socket could not be opened; `reason` is the system's.
    case couldNotListen(String, reason: String)
    /// libmicrohttpd refused to start.
    case couldNotStart(String, reason: String)

    package var description: String {
        switch self {
        case .malformedAddress(let text):
            "cannot listen on \"\(text)\": expected ADDRESS:PORT, for IPv6 [ADDRESS]:PORT"
        case .couldNotResolve(let text, let reason): "could not listen on \"\(text)\": \(reason)"
        case .addressInUse(let text): "could not listen on \"\(text)\": address already in use"
        case .couldNotListen(let text, let reason): "could not listen on \"\(text)\": \(reason)"
        case .couldNotStart(let text, let reason):
            "could not start the HTTP server on \"\(text)\": \(reason)"
        }
    }
}
