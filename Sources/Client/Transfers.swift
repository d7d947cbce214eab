internal import CCurlShim

/// An answer to one body, or why there was none.
package struct Answer: Sendable {
    /// 0 when no whole answer came.
    package let status: Int
    /// Those of the header, 0 for none.
    package let retryAfterSeconds: Int
    /// The answer's body.
    package let bytes: [UInt8]
    /// Why there was no answer.
    package let transportError: String
}

/// One body under way.
@safe
private struct Running {
    let number: Int
    // SAFETY: freed once, by the `Transfers` that holds this value.
    let transfer: OpaquePointer
}

/// Connections to one or more servers, driven from one thread.
///
/// A request is named by the number its `start` returned.
@safe
package struct Transfers: ~Copyable {
    // SAFETY: non-null from `init` to `deinit`; the transfers in `running` belong to it.
    private let set: OpaquePointer
    private var running: [Running] = []
    private var nextNumber = 0
    private let userAgent: String
    private let timeoutMilliseconds: Int

    /// - Parameters:
    ///   - connections: How many are open at most; further requests wait for one.
    ///   - userAgent: What the server sees as `User-Agent`.
    ///   - timeoutMilliseconds: One request ends after so long.
    package init(
        connections: Int, userAgent: String, timeoutMilliseconds: Int
    ) throws(ClientError) {
        guard let set = unsafe tapline_transfers_create(connections) else {
            let reason = unsafe String(cString: tapline_transfers_reason())
            throw .unavailable(
                reason: reason.isEmpty
                    ? "libcurl cannot be used" : "\(reason); install libcurl4")
        }
        unsafe self.set = set
        self.userAgent = userAgent
        self.timeoutMilliseconds = timeoutMilliseconds
    }

    deinit {
        for one in running { unsafe tapline_transfer_free(one.transfer) }
        unsafe tapline_transfers_free(set)
    }

    /// Starts to post a gzipped body; nil for a GET.
    ///
    /// - Parameter isStream: Whether the answer is taken with ``takePiece(of:)`` while it comes; it ends
    ///   when nothing has come for 15 s, whatever the time-out of a request.
    package mutating func start(
        _ body: [UInt8]?, to target: Target, isStream: Bool = false
    ) throws(ClientError) -> Int {
        // SAFETY: libcurl copies the strings and the body before the call returns.
        let transfer = unsafe target.url.withCString { url in
            unsafe userAgent.withCString { agent in
                unsafe (body ?? []).withUnsafeBufferPointer { bytes in
                    unsafe withOptionalCString(target.authorization) { authorization in
                        var request = unsafe tapline_request(
                            url: url, authorization: authorization, user_agent: agent,
                            body: body == nil ? nil : bytes.baseAddress, body_length: bytes.count,
                            connect_timeout_ms: 10_000,
                            timeout_ms: isStream ? 0 : timeoutMilliseconds,
                            stream: isStream ? 1 : 0,
                            direct: target.isLocal ? 1 : 0)
                        return unsafe tapline_transfer_start(set, &request)
                    }
                }
            }
        }
        guard let transfer = unsafe transfer else {
            throw .unavailable(reason: "libcurl refused the request")
        }
        nextNumber += 1
        running.append(unsafe Running(number: nextNumber, transfer: transfer))
        return nextNumber
    }

    /// Moves bytes, waiting at most so long for something to happen.
    package func run(timeoutMilliseconds: Int) throws(ClientError) {
        let code = unsafe tapline_transfers_run(set, Int32(timeoutMilliseconds))
        guard code == 0 else { throw .unavailable(reason: "libcurl failed with code \(code)") }
    }

    /// What has come of a stream that goes on, if it is answered with 200 so far.
    package mutating func takePiece(of number: Int) -> [UInt8] {
        guard let one = running.first(where: { $0.number == number }),
            unsafe tapline_transfer_status(one.transfer) == 200
        else { return [] }
        // SAFETY: the bytes live until they are forgotten, and are copied before that.
        var length = 0
        let bytes = unsafe tapline_transfer_answer(one.transfer, &length)
        let piece = unsafe Array(UnsafeBufferPointer(start: bytes, count: length))
        unsafe tapline_transfer_forget(one.transfer)
        return piece
    }

    /// An answer that has come, with its body's number.
    package mutating func nextAnswer() -> (number: Int, answer: Answer)? {
        guard let transfer = unsafe tapline_transfers_next_done(set),
            let index = running.firstIndex(where: { unsafe $0.transfer == transfer })
        else { return nil }
        // SAFETY: the bytes and the text live as long as the transfer and are copied here.
        var length = 0
        let bytes = unsafe tapline_transfer_answer(transfer, &length)
        let answer = unsafe Answer(
            status: tapline_transfer_status(transfer),
            retryAfterSeconds: tapline_transfer_retry_after(transfer),
            bytes: Array(UnsafeBufferPointer(start: bytes, count: length)),
            transportError: lowerCaseFirst(String(cString: tapline_transfer_error(transfer))))
        unsafe tapline_transfer_free(transfer)
        let number = running.remove(at: index).number
        return (number, answer)
    }
}

private func withOptionalCString<R>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> R) -> R {
    guard let text else { return body(nil) }
    return unsafe text.withCString { unsafe body($0) }
}

private func lowerCaseFirst(_ text: String) -> String {
    text.prefix(1).lowercased() + text.dropFirst()
}

/// Where bodies go, and with which key.
package struct Target: Equatable, Sendable {
    /// The whole URL.
    package let url: String
    /// The header's value.
    package let authorization: String?
    /// Whether it is this machine, which no proxy stands before.
    package let isLocal: Bool

    /// Another page of the same server, which needs no key: `/metrics` of `http://host:8080/v1/events`.
    package func page(_ path: String) throws(ClientError) -> Target {
        // "scheme:", "", "host:port": what stands before the third slash.
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let host = parts[2].prefix { !"?#".contains($0) }
        return try Target(url: "\(parts[0])//\(host)\(path)", key: nil)
    }

    /// Completes a base URL: `http://host:8080` means its `path`.
    package init(
        url: String, key: String?, path standard: String = "/v1/events"
    ) throws(ClientError) {
        let lower = url.lowercased()
        guard let scheme = ["http://", "https://"].first(where: lower.hasPrefix),
            lower.count > scheme.count,
            !url.unicodeScalars.contains(where: { $0.value <= 0x20 || $0.value == 0x7F })
        else { throw .badURL(url) }
        let rest = lower.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        let path = rest.dropFirst(authority.count)
        guard !authority.isEmpty, !path.contains("#") else { throw .badURL(url) }
        if path.isEmpty || path == "/" {
            self.url = url.prefix(scheme.count + authority.count) + standard
        } else {
            self.url = url
        }
        authorization = key.map { "Bearer \($0)" }
        let host = authority.split(separator: "@").last ?? ""
        isLocal =
            host.hasPrefix("127.") || host.hasPrefix("[::1]") || host == "localhost"
            || host.hasPrefix("localhost:")
    }
}
