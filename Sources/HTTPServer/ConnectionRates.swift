import Platform

/// How fast clients of one network may open connections.
///
/// A token bucket each, kept as the time at which its next token would be due were all taken evenly
/// spaced (the generic cell rate algorithm, ITU-T I.371). To take a connection costs memory and system
/// calls before a byte of it is read, so a storm of them is refused here, before anything is made.
struct ConnectionRates {
    /// Nanoseconds a token; 0 without a limit.
    private let interval: Int64
    private let room: Int64
    /// When the next token of a network is due: nanoseconds. One that is due counts as absent.
    private var due: [ClientAddress: Int64] = [:]
    private var sweepCount = Self.sweepCountMin
    private static let sweepCountMin = 1024

    /// - Parameters:
    ///   - perSecondMax: New connections of one network; 0 for no limit.
    ///   - burst: How many it may open at once.
    init(perSecondMax: Int, burst: Int) {
        interval = perSecondMax > 0 ? max(1, 1_000_000_000 / Int64(perSecondMax)) : 0
        room = interval * Int64(max(0, burst - 1))
    }

    /// Takes a token.
    ///
    /// - Parameter now: Monotonic microseconds.
    /// - Returns: False when there is none; then none is taken.
    mutating func admit(_ address: ClientAddress, now: Microseconds) -> Bool {
        guard interval > 0 else { return true }
        let (network, time) = (address.network, now * 1_000)
        let next = max(due[network] ?? 0, time)
        guard next - time <= room else { return false }
        due[network] = next + interval
        if due.count >= sweepCount { sweep(time) }
        return true
    }

    /// How many networks are remembered.
    var count: Int { due.count }

    /// Forgets those whose bucket is full. What is left has opened a connection in the last
    /// `burst` intervals, so that the number is bounded by what can be accepted in that time.
    private mutating func sweep(_ time: Int64) {
        due = due.filter { $0.value > time }
        sweepCount = max(Self.sweepCountMin, 2 * due.count)
    }
}

/// Why a connection was not taken, or its first request refused.
package enum ConnectionLimit: String, CaseIterable, Sendable {
    /// As many are open as may be in all.
    case all
    /// As many are open from this address.
    case address
    /// This network opens them too fast.
    case rate
}

/// What was refused for one limit since this was last said.
package struct RefusedConnections: Equatable, Sendable {
    package let limit: ConnectionLimit
    /// The limit's value.
    package let value: Int
    /// One of those who were refused.
    package let address: ClientAddress
    package let count: Int
}

/// Counts what is refused, and says so once a minute for each limit.
struct RefusalLog {
    private struct Entry {
        var count = 0
        var address: ClientAddress?
        var sayAt: Microseconds = 0
    }
    static let pause: Microseconds = 60_000_000
    private var entries: [ConnectionLimit: Entry] = [:]

    mutating func note(_ limit: ConnectionLimit, of address: ClientAddress) {
        entries[limit, default: Entry()].count += 1
        entries[limit]?.address = address
    }

    /// What is to be said now.
    mutating func take(now: Microseconds, value: (ConnectionLimit) -> Int) -> [RefusedConnections] {
        var taken: [RefusedConnections] = []
        for limit in ConnectionLimit.allCases {
            guard let entry = entries[limit], let address = entry.address, now >= entry.sayAt else {
                continue
            }
            taken.append(
                RefusedConnections(
                    limit: limit, value: value(limit), address: address, count: entry.count))
            entries[limit] = Entry(sayAt: now + Self.pause)
        }
        return taken
    }
}
