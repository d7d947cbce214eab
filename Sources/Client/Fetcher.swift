import Platform

/// Gets one page of a daemon, as often as is asked, over one connection.
package struct Fetcher: ~Copyable {
    private let target: Target
    private var transfers: Transfers

    /// - Parameters:
    ///   - url: Where the daemon is, without a path for `path`.
    ///   - timeoutMilliseconds: For each get.
    /// - Throws: ``ClientError/badURL(_:)``, ``ClientError/unavailable(reason:)``.
    package init(
        url: String, path: String, userAgent: String, timeoutMilliseconds: Int = 5_000
    ) throws(ClientError) {
        let target = try Target(url: url, key: nil, path: path)
        let transfers = try Transfers(
            connections: 1, userAgent: userAgent, timeoutMilliseconds: timeoutMilliseconds)
        self.target = target
        self.transfers = transfers
    }

    /// The body of an answer of 200; blocks until it is there.
    ///
    /// - Throws: ``ClientError/notAnswered(url:reason:)`` for everything else.
    package mutating func get() throws(ClientError) -> [UInt8] {
        _ = try transfers.start(nil, to: target)
        while true {
            try transfers.run(timeoutMilliseconds: 1_000)
            guard let (_, answer) = transfers.nextAnswer() else { continue }
            guard answer.status == 200 else {
                let reason = answer.status == 0 ? answer.transportError : "\(answer.status)"
                throw .notAnswered(url: target.url, reason: reason)
            }
            return answer.bytes
        }
    }
}
