import Glibc

/// Server-sent events of a daemon, which is waited for when it goes away.
package struct EventStream: ~Copyable {
    /// One event.
    package struct Event: Equatable, Sendable {
        /// `message` where the server does not say.
        package let name: String
        package let data: String

        package init(name: String, data: String) {
            self.name = name
            self.data = data
        }
    }

    private let target: Target
    private var transfers: Transfers
    private var number: Int?
    private var attempt = 0
    private var notBefore: Int64 = 0
    private var parser = EventParser()
    /// Why there is no connection, while there is none.
    package private(set) var trouble: String?

    /// - Parameters:
    ///   - url: Where the daemon is, without a path for `path`.
    ///   - path: With its query.
    /// - Throws: ``ClientError/badURL(_:)``, ``ClientError/unavailable(reason:)``.
    package init(
        url: String, key: String?, path: String, userAgent: String
    ) throws(ClientError) {
        let target = try Target(url: url, key: key, path: path)
        let transfers = try Transfers(
            connections: 1, userAgent: userAgent, timeoutMilliseconds: 10_000)
        self.target = target
        self.transfers = transfers
    }

    /// The events that have come, after at most so long; blocks.
    ///
    /// - Throws: ``ClientError/notAnswered(url:reason:)`` when the server refuses for good.
    package mutating func next(timeoutMilliseconds: Int) throws(ClientError) -> [Event] {
        let now = monotonicMicroseconds()
        if number == nil {
            guard now >= notBefore else {
                usleep(UInt32(min(Int64(timeoutMilliseconds) * 1000, notBefore - now)))
                return []
            }
            parser = EventParser()
            number = try transfers.start(nil, to: target, isStream: true)
        }
        try transfers.run(timeoutMilliseconds: timeoutMilliseconds)
        var events: [Event] = []
        if let number {
            let piece = transfers.takePiece(of: number)
            if !piece.isEmpty {
                trouble = nil
                attempt = 0
                events = parser.take(piece)
            }
        }
        while let (_, answer) = transfers.nextAnswer() {
            number = nil
            if answer.status == 200 { events += parser.take(answer.bytes) }
            try wait(after: answer)
        }
        return events
    }

    private mutating func wait(after answer: Answer) throws(ClientError) {
        attempt += 1
        var seconds: Double?
        switch outcome(
            status: answer.status == 200 ? 0 : answer.status,
            retryAfterSeconds: answer.retryAfterSeconds, bytes: answer.bytes,
            transportError: answer.transportError)
        {
        case .retry(let reason, let after):
            trouble = reason
            seconds = after
        case .tooLarge(let reason), .refused(let reason, _):
            throw .notAnswered(url: target.url, reason: reason)
        case .verdicts: break
        }
        notBefore =
            monotonicMicroseconds()
            + backoff(
                attempt: attempt, retryAfterSeconds: seconds, random: Double.random(in: 0..<1),
                longestSeconds: 5)
    }
}

/// Cuts a stream of server-sent events into events.
package struct EventParser {
    private var buffer: [UInt8] = []
    private var name = "message"
    private var data: String?

    package init() {}

    /// Takes a piece, which may end anywhere.
    package mutating func take(_ piece: [UInt8]) -> [EventStream.Event] {
        buffer += piece
        var events: [EventStream.Event] = []
        var start = 0
        while let end = buffer[start...].firstIndex(of: 0x0A) {
            let line = String(decoding: buffer[start..<end], as: UTF8.self)
            start = end + 1
            if line.isEmpty {
                if let data { events.append(EventStream.Event(name: name, data: data)) }
                name = "message"
                data = nil
            } else if line.hasPrefix("event: ") {
                name = String(line.dropFirst(7))
            } else if line.hasPrefix("data: ") {
                data = (data.map { $0 + "\n" } ?? "") + line.dropFirst(6)
            }
        }
        buffer.removeFirst(start)
        return events
    }
}
