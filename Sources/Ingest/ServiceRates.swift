import Platform

/// Limits on the requests and events of each key, so that one client's storm leaves room for the others.
///
/// A token bucket each, kept as the time at which its next token would be due were all taken evenly
/// spaced (the generic cell rate algorithm, ITU-T I.371). A request is judged before its body is read;
/// its events are charged when they are known, so a bucket of events may be overdrawn by bodies that
/// were let in, and the key waits until that is paid back. Only keys that are known get here, so their
/// number is bounded.
final class ServiceRates: Sendable {
    /// What is limited.
    enum Limit: String, CaseIterable, Sendable { case requests, events }

    /// Why a request has to wait.
    struct Refusal: Equatable {
        let limit: Limit
        let perSecondMax: Int
        /// Until there is room, for this request and for those that were sent away before it.
        let waitMicroseconds: Microseconds
        /// How many were refused since this was last given, once in a while; else nil.
        let unreported: Int?
    }

    fileprivate struct Bucket {
        /// When the next token is due, by limit: nanoseconds.
        var due: [Int64] = [0, 0]
        /// Events of the last body.
        var events: Int64 = 1
        /// Until when those have been sent away that were refused: nanoseconds.
        var queueEnd: Int64 = 0
        var unreported = 0
        var reportAt: Microseconds = 0
    }

    /// Nobody is sent away for longer, however many were before: those who come back all the same push
    /// the end of the queue ahead of them.
    static let waitMicrosecondsMax: Microseconds = 30_000_000
    /// The pause between two reports of a key.
    static let reportMicroseconds: Microseconds = 60_000_000

    private let perSecondMax: [Int]
    /// Nanoseconds a token, by limit; 0 without a limit.
    private let interval: [Int64]
    private let burst: Int64
    private let buckets = Sync.Monitor<[[UInt8]: Bucket]>([:])

    /// - Parameters:
    ///   - requestsPerSecondMax: Of one key; 0 for no limit.
    ///   - eventsPerSecondMax: Of one key; 0 for no limit.
    ///   - burstMilliseconds: The time whose share of both a key may save up.
    init(requestsPerSecondMax: Int, eventsPerSecondMax: Int = 0, burstMilliseconds: Int = 1_000) {
        perSecondMax = [requestsPerSecondMax, eventsPerSecondMax]
        interval = perSecondMax.map { $0 > 0 ? max(1, 1_000_000_000 / Int64($0)) : 0 }
        burst = Int64(burstMilliseconds) * 1_000_000
    }

    private var isLimited: Bool { interval != [0, 0] }

    /// Takes a request's place.
    ///
    /// - Parameter now: Monotonic microseconds.
    /// - Returns: Nil when there is one; else why not, and no place is taken.
    func admit(_ key: [UInt8], now: Microseconds = Clock.monotonic()) -> Refusal? {
        guard isLimited else { return nil }
        return buckets.withLock { buckets in
            var bucket = buckets[key] ?? Bucket()
            defer { buckets[key] = bucket }
            let time = now * 1_000
            for limit in Limit.allCases where interval[limit.index] > 0 {
                // A bucket holds one token at least.
                let room = max(0, burst - interval[limit.index])
                let wait = bucket.due[limit.index] - time - room
                if wait > 0 { return refuse(limit, wait, &bucket, now) }
            }
            bucket.take(1, .requests, interval, time)
            return nil
        }
    }

    /// Charges the events of a body that was let in.
    func charge(_ key: [UInt8], events: Int, now: Microseconds = Clock.monotonic()) {
        guard interval[Limit.events.index] > 0, events > 0 else { return }
        buckets.withLock { buckets in
            var bucket = buckets[key] ?? Bucket()
            bucket.events = Int64(events)
            bucket.take(Int64(events), .events, interval, now * 1_000)
            buckets[key] = bucket
        }
    }

    private func refuse(
        _ limit: Limit, _ wait: Int64, _ bucket: inout Bucket, _ now: Microseconds
    ) -> Refusal {
        let time = now * 1_000
        // Each who is sent away is given a later time than the one before, or they would come back
        // together and be sent away together, over and over.
        let end = max(bucket.queueEnd, time + wait)
        let cost = limit == .events ? bucket.events : 1
        let latest = time + Self.waitMicrosecondsMax * 1_000
        bucket.queueEnd = min(latest, end + cost * interval[limit.index])
        bucket.unreported += 1
        var unreported: Int?
        if now >= bucket.reportAt {
            unreported = bucket.unreported
            bucket.unreported = 0
            bucket.reportAt = now + Self.reportMicroseconds
        }
        return Refusal(
            limit: limit, perSecondMax: perSecondMax[limit.index],
            waitMicroseconds: (min(end, latest) - time + 999) / 1_000, unreported: unreported)
    }
}

extension ServiceRates.Limit {
    /// Its place in arrays by limit.
    fileprivate var index: Int { self == .requests ? 0 : 1 }
}

extension ServiceRates.Bucket {
    fileprivate mutating func take(
        _ count: Int64, _ limit: ServiceRates.Limit, _ interval: [Int64], _ time: Int64
    ) {
        due[limit.index] = max(due[limit.index], time) + count * interval[limit.index]
    }
}
