import Platform

/// A limit on the requests of each key, so that one client's storm leaves room for the others.
///
/// A key may save up one second's worth of requests. Kept as the time at which its next request
/// would be due were they evenly spaced (the generic cell rate algorithm, ITU-T I.371). Only keys
/// that are known get here, so their number is bounded.
final class ServiceRates: Sendable {
    private let interval: Microseconds
    private let due = Sync.Monitor<[[UInt8]: Microseconds]>([:])

    /// - Parameter requestsPerSecondMax: Of one key; 0 for no limit.
    init(requestsPerSecondMax: Int) {
        interval = requestsPerSecondMax > 0 ? max(1, 1_000_000 / Int64(requestsPerSecondMax)) : 0
    }

    /// Takes a request's place.
    ///
    /// - Parameter now: Monotonic microseconds.
    /// - Returns: Nil when there is one; else the microseconds until there is.
    func wait(_ key: [UInt8], now: Microseconds = Clock.monotonic()) -> Microseconds? {
        guard interval > 0 else { return nil }
        return due.withLock { due in
            let next = max(due[key] ?? 0, now)
            let ahead = next - now
            guard ahead <= 1_000_000 - interval else { return ahead - (1_000_000 - interval) }
            due[key] = next + interval
            return nil
        }
    }
}
