import Client
import Platform

/// Clients that are not polite: each sends the newest body again as soon as it has an answer, whatever
/// the answer says of waiting.
struct Storm {
    /// How many.
    let clients: Int
    private var newest: [UInt8] = []
    private var running: Set<Int> = []
    private var notBefore: Microseconds = 0
    private var next = 0

    /// Without a connection a client would only burn the machine that measures.
    static let pauseMicroseconds: Microseconds = 10_000

    init(clients: Int) { self.clients = clients }

    /// Remembers a body to send.
    mutating func learn(_ compressed: [UInt8]) {
        if clients > 0 { newest = compressed }
    }

    /// Lets each client send that has nothing under way.
    mutating func send(
        _ now: Microseconds, _ targets: [Target], _ transfers: inout Transfers
    ) throws(ClientError) {
        guard !newest.isEmpty, now >= notBefore else { return }
        while running.count < clients {
            next = (next + 1) % targets.count
            running.insert(try transfers.start(newest, to: targets[next]))
        }
    }

    /// Takes an answer.
    ///
    /// - Returns: Whether it was to one of these clients.
    mutating func take(_ number: Int, _ outcome: Outcome) -> Bool {
        guard running.remove(number) != nil else { return false }
        // No Retry-After and no status: nobody listens.
        if case .retry(_, afterSeconds: nil) = outcome {
            notBefore = Clock.monotonic() + Self.pauseMicroseconds
        }
        return true
    }
}
