import Glibc
import Platform

/// All open connections, and the thread that cuts off slow ones.
///
/// libmicrohttpd itself only ends a connection on which nothing happens at all; a client that sends
/// a byte a second keeps it for ever. So every connection is written down here with its phase, and
/// a thread shuts the sockets of those that take too long. libmicrohttpd then sees the end of the
/// stream and frees the connection. It tells us before it closes a socket, and ``remove(_:)`` takes
/// the lock, so a socket that is shut under the lock is never another connection's.
final class ConnectionRegistry: Sendable {
    private struct State {
        var connections: [ObjectIdentifier: Connection] = [:]
        var load: WorkerLoad
        var countsByAddress: [ClientAddress: Int] = [:]
        var lingering: [Lingering] = []
        var recent: [Recent] = []
        var rates: ConnectionRates
        var refusals = RefusalLog()
        var busyCount = 0
        var isDraining = false
        var isStopping = false
        var isReaperDone = false
        var statistics = HTTPStatistics()

        mutating func refuse(_ limit: ConnectionLimit, _ address: ClientAddress) {
            statistics.connectionsRefused[limit, default: 0] += 1
            refusals.note(limit, of: address)
        }
    }
    /// A socket that libmicrohttpd has closed and whose client may still be sending. Were the last
    /// descriptor closed with bytes unread, the kernel would reset the connection and the client
    /// would lose the answer.
    private struct Lingering {
        var socket: Int32
        var deadline: Microseconds
    }
    /// A connection of the last second. Those that come in storms and go at once are found soon, or they
    /// would use up the limits of connections; to look at all as often would cost more than the storm.
    private struct Recent {
        let connection: Connection
        var pause: Microseconds = 10_000
        var nextLook: Microseconds
    }
    /// How many sockets are looked at with the lock held.
    private static let looksMax = 100
    private static let lingeringMax = 256
    private static let lingeringTime: Microseconds = 2_000_000

    private let monitor: Sync.Monitor<State>
    private let timeouts: Timeouts
    private let connectionsMax: Int
    private let connectionsPerAddressMax: Int
    private let addressConnectionsPerSecondMax: Int
    /// How many connections over the limit are answered 503; more are closed at once.
    private let reserve: Int
    /// The same of one address. They have places that others need, so there are few of them.
    private static let addressReserve = 4

    init(_ configuration: HTTPServerConfiguration) {
        timeouts = Timeouts(configuration)
        connectionsMax = configuration.connectionsMax
        connectionsPerAddressMax = configuration.connectionsPerAddressMax
        addressConnectionsPerSecondMax = configuration.addressConnectionsPerSecondMax
        monitor = Sync.Monitor(
            State(
                load: WorkerLoad(workers: configuration.threads),
                rates: ConnectionRates(
                    perSecondMax: addressConnectionsPerSecondMax,
                    burst: max(connectionsPerAddressMax, addressConnectionsPerSecondMax))))
        reserve = max(16, configuration.connectionsMax / 20)
    }

    /// The most connections that are ever open.
    var hardLimit: Int { connectionsMax + reserve }

    // MARK: Calls of the server's threads

    /// Chooses the thread that serves one more connection, before anything is made for it.
    ///
    /// - Returns: Nil when it may not be taken.
    func place(_ socket: Int32, _ address: ClientAddress) -> Int? {
        let now = Clock.monotonic()
        return monitor.withLock { state in
            guard !state.isDraining else { return nil }
            guard state.connections.count + state.load.placedCount < hardLimit else {
                state.refuse(.all, address)
                return nil
            }
            let countOfAddress =
                state.countsByAddress[address.network, default: 0]
                + state.load.placedCount(from: address)
            guard countOfAddress < connectionsPerAddressMax + Self.addressReserve else {
                state.refuse(.address, address)
                return nil
            }
            guard state.rates.admit(address, now: now) else {
                state.refuse(.rate, address)
                return nil
            }
            return state.load.place(socket, from: address)
        }
    }

    /// Takes back what ``place(_:_:)`` has chosen, for a connection that its thread could not be given.
    func unplace(_ socket: Int32) { monitor.withLock { $0.load.unplace(socket) } }

    private func value(_ limit: ConnectionLimit) -> Int {
        switch limit {
        case .all: connectionsMax
        case .address: connectionsPerAddressMax
        case .rate: addressConnectionsPerSecondMax
        }
    }

    func add(socket: Int32, address: ClientAddress) -> Connection {
        let now = Clock.monotonic()
        let (connection, isFirst) = monitor.withLock { state in
            let countOfAddress = state.countsByAddress[address.network, default: 0]
            var exceeded: ConnectionLimit?
            if state.connections.count >= connectionsMax {
                exceeded = .all
            } else if countOfAddress >= connectionsPerAddressMax {
                exceeded = .address
            }
            let connection = Connection(
                socket: socket, worker: state.load.begin(socket), address: address,
                limitExceeded: exceeded.map(value), now: now)
            state.connections[ObjectIdentifier(connection)] = connection
            state.countsByAddress[address.network] = countOfAddress + 1
            state.statistics.connectionsAccepted += 1
            if let exceeded { state.refuse(exceeded, address) }
            if state.isDraining { Self.cut(connection) }
            state.recent.append(Recent(connection: connection, nextLook: now + 10_000))
            return (connection, state.recent.count == 1)
        }
        if isFirst { monitor.broadcast() }
        return connection
    }

    /// Forgets a connection whose socket is about to be closed.
    func remove(_ connection: Connection) {
        let now = Clock.monotonic()
        // Nobody is woken for each connection of a storm: the thread that cuts off slow ones waits for the
        // first that lingers, and the end of the server for the last that is busy.
        let wakes = monitor.withLock { state in
            guard state.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else {
                return false
            }
            state.load.end(on: connection.worker)
            let wasLingering = !state.lingering.isEmpty
            let count = state.countsByAddress[connection.address.network, default: 1] - 1
            state.countsByAddress[connection.address.network] = count > 0 ? count : nil
            if connection.phase.isBusy { state.busyCount -= 1 }
            connection.phase = .idle
            connection.exchange = nil
            connection.stream = nil
            if connection.lingers, !connection.isCut, state.lingering.count < Self.lingeringMax {
                let socket = fcntl(connection.socket, F_DUPFD_CLOEXEC, 0)
                if socket >= 0 {
                    shutdown(socket, Int32(SHUT_WR))
                    let deadline = now + Self.lingeringTime
                    state.lingering.append(Lingering(socket: socket, deadline: deadline))
                }
            }
            return state.isDraining || !wasLingering && !state.lingering.isEmpty
        }
        if wakes { monitor.broadcast() }
    }

    /// Moves a connection to its next phase.
    ///
    /// - Returns: False when it was cut off meanwhile; then nothing may be written to it.
    func move(_ connection: Connection, to phase: Connection.Phase) -> Bool {
        let now = Clock.monotonic()
        let (mayGoOn, isLast) = monitor.withLock { state in
            if connection.phase.isBusy != phase.isBusy {
                state.busyCount += phase.isBusy ? 1 : -1
            }
            connection.phase = phase
            connection.since = now
            connection.goneSince = nil
            if phase == .body { connection.bodyCount = 0 }
            if phase == .idle {
                connection.exchange = nil
                connection.stream = nil
                if state.isDraining { Self.cut(connection) }
            }
            return (!connection.isCut, state.isDraining && state.busyCount == 0)
        }
        if isLast { monitor.broadcast() }
        return mayGoOn
    }

    /// Counts bytes of a body.
    ///
    /// - Returns: False when the connection was cut off meanwhile.
    func countBody(_ connection: Connection, _ count: Int) -> Bool {
        monitor.withLock { state in
            connection.bodyCount += count
            state.statistics.bodyBytes += count
            return !connection.isCut
        }
    }

    func begin(_ exchange: Exchange, on connection: Connection) {
        monitor.withLock { state in
            connection.exchange = exchange
            state.statistics.requests += 1
        }
    }

    /// Notes what a connection's answer is written from; at the end of the server it ends.
    func begin(_ stream: ResponseStream, on connection: Connection) {
        let isDraining = monitor.withLock { state in
            connection.stream = stream
            return state.isDraining
        }
        if isDraining { stream.finish() }
    }

    /// Writes a whole answer past libmicrohttpd and cuts the connection off.
    func cut(_ connection: Connection, writing answer: [UInt8]) {
        monitor.withLock { state in
            guard state.connections[ObjectIdentifier(connection)] != nil else { return }
            state.statistics.connectionsCut += 1
            unsafe answer.withUnsafeBytes { bytes in
                _ = unsafe send(
                    connection.socket, bytes.baseAddress, bytes.count,
                    Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if connection.lingers {
                shutdown(connection.socket, Int32(SHUT_WR))
            } else {
                Self.cut(connection)
            }
        }
    }

    var isDraining: Bool { monitor.withLock { $0.isDraining } }
    var isStopping: Bool { monitor.withLock { $0.isStopping } }

    var statistics: HTTPStatistics {
        monitor.withLock { state in
            var statistics = state.statistics
            statistics.connections = state.connections.count
            statistics.requestsInFlight = state.busyCount
            return statistics
        }
    }

    private static func cut(_ connection: Connection) {
        connection.isCut = true
        shutdown(connection.socket, Int32(SHUT_RDWR))
    }

    // MARK: The end

    /// Asks every connection to end after its current request, and ends idle ones and streams; a
    /// stream's client that does not read is not waited for.
    func drain() {
        let streams = monitor.withLock { state in
            state.isDraining = true
            for connection in state.connections.values {
                let isStalled = connection.stream != nil && connection.phase == .writing
                if isStalled || !connection.phase.isBusy { Self.cut(connection) }
            }
            return state.connections.values.compactMap(\.stream)
        }
        for stream in streams { stream.finish() }
        monitor.broadcast()
    }

    /// Waits until no request is under way.
    ///
    /// - Returns: False when the deadline passed first.
    func waitForRequests(until deadline: Microseconds) -> Bool {
        monitor.wait(until: deadline) { $0.busyCount == 0 ? true : nil } ?? false
    }

    /// Lets nothing be suspended any more, cuts off the clients that still send, and answers what
    /// the handler has not answered yet.
    func stop(answer: (Exchange) -> Response) {
        let exchanges = monitor.withLock { state in
            state.isStopping = true
            for connection in state.connections.values
            where connection.phase == .head || connection.phase == .body {
                Self.cut(connection)
            }
            return state.connections.values.compactMap(\.exchange)
        }
        for exchange in exchanges { exchange.respond(answer(exchange)) }
    }

    // MARK: The thread

    /// Ends the thread that runs ``reap(_:)``.
    func endReaping() {
        monitor.withLock { $0.isReaperDone = true }
        monitor.broadcast()
    }

    /// Cuts off slow connections until ``endReaping()``.
    ///
    /// - Parameters:
    ///   - answer: The bytes of the answer to a failure.
    ///   - say: Is told what was refused.
    func reap(answer: (HTTPFailure) -> [UInt8], say: (RefusedConnections) -> Void) {
        // Sockets that linger and new connections are looked at often; all connections, of which there may
        // be thousands, only at each tick, however many linger.
        var nextTick = Clock.deadline(inMilliseconds: timeouts.tickMilliseconds)
        while true {
            let (hasLingering, hasRecent) = monitor.withLock {
                (!$0.lingering.isEmpty, !$0.recent.isEmpty)
            }
            let pause = hasLingering ? 5 : hasRecent ? 10 : timeouts.tickMilliseconds
            let next = min(nextTick, Clock.deadline(inMilliseconds: pause))
            let isDone = monitor.wait(until: next) { state in
                if state.isReaperDone { return true }
                if hasLingering || hasRecent { return nil }
                return state.lingering.isEmpty && state.recent.isEmpty ? nil : false
            }
            drainLingering(all: isDone == true)
            if isDone == true { return }
            for connection in recentThatHaveLeft(now: Clock.monotonic()) {
                cut(connection, writing: [])
            }
            guard Clock.monotonic() >= nextTick else { continue }
            nextTick = Clock.deadline(inMilliseconds: timeouts.tickMilliseconds)
            let now = Clock.monotonic()
            let refusals = monitor.withLock { $0.refusals.take(now: now, value: value) }
            for connections in refusals { say(connections) }
            for (connection, failure) in slowConnections(now: now) {
                cut(connection, writing: failure.map(answer) ?? [])
            }
        }
    }

    private func recentThatHaveLeft(now: Microseconds) -> [Connection] {
        let all = monitor.withLock { state in
            defer { state.recent = [] }
            return state.recent
        }
        var (left, kept): ([Connection], [Recent]) = ([], [])
        var start = 0
        while start < all.count {
            let end = min(start + Self.looksMax, all.count)
            monitor.withLock { state in
                for var recent in all[start..<end] {
                    let connection = recent.connection
                    guard !connection.isCut,
                        state.connections[ObjectIdentifier(connection)] != nil
                    else { continue }
                    if now >= recent.nextLook {
                        state.statistics.looks += 1
                        if Self.hasLeft(connection, now) {
                            connection.isCut = true
                            left.append(connection)
                            continue
                        }
                        recent.pause *= 2
                        if recent.pause > 1_000_000 { continue }
                        recent.nextLook = now + recent.pause
                    }
                    kept.append(recent)
                }
            }
            start = end
            Thread.standBack()
        }
        monitor.withLock { $0.recent += kept }
        return left
    }

    /// The lock and the processor are let go after each hundred: to look at ten thousand sockets takes
    /// milliseconds, which every request would wait for.
    private func slowConnections(now: Microseconds) -> [(Connection, HTTPFailure?)] {
        var slow: [(Connection, HTTPFailure?)] = []
        let all = monitor.withLock { Array($0.connections.values) }
        var start = 0
        while start < all.count {
            let end = min(start + Self.looksMax, all.count)
            monitor.withLock { state in
                state.statistics.looks += end - start
                for connection in all[start..<end] where !connection.isCut {
                    guard state.connections[ObjectIdentifier(connection)] != nil else { continue }
                    let verdict = timeouts.verdict(
                        connection.phase, elapsed: now - connection.since,
                        bodyCount: connection.bodyCount)
                    switch verdict {
                    case .keep:
                        guard Self.hasLeft(connection, now) else { continue }
                        slow.append((connection, nil))
                    case .close: slow.append((connection, nil))
                    case .refuse(let failure): slow.append((connection, failure))
                    }
                    // From here on the server's thread writes nothing to it.
                    connection.isCut = true
                }
            }
            start = end
            Thread.standBack()
        }
        return slow
    }

    /// Whether a client that should send can send no more.
    ///
    /// libmicrohttpd waits for edges: when the end of the stream comes together with the last bytes
    /// there is no second edge, and it would wait for ever. The end has to be seen twice, so that a
    /// thread that has just read the last bytes can move on.
    private static func hasLeft(_ connection: Connection, _ now: Microseconds) -> Bool {
        switch connection.phase {
        case .waiting, .writing: return false
        case .fresh, .idle, .head, .body: break
        }
        var byte: UInt8 = 0
        let count = unsafe recv(connection.socket, &byte, 1, Int32(MSG_DONTWAIT | MSG_PEEK))
        guard count == 0 || count < 0 && errno != EAGAIN && errno != EINTR else { return false }
        guard let since = connection.goneSince else {
            connection.goneSince = now
            return false
        }
        return now - since >= 5_000
    }

    private func drainLingering(all: Bool) {
        let now = Clock.monotonic()
        monitor.withLock { state in
            state.lingering.removeAll { lingering in
                let isOver = all || now > lingering.deadline || Self.discard(lingering.socket)
                if isOver { close(lingering.socket) }
                return isOver
            }
        }
    }

    /// Reads what has arrived and throws it away.
    ///
    /// - Returns: Whether the client has ended its side.
    private static func discard(_ socket: Int32) -> Bool {
        var count = 0
        while count < 64 {
            // MSG_TRUNC on TCP drops the bytes in the kernel instead of copying them.
            let received = recv(socket, nil, 1 << 20, Int32(MSG_DONTWAIT | MSG_TRUNC))
            if received == 0 { return true }
            if received < 0 { return errno != EAGAIN && errno != EINTR }
            count += 1
        }
        return false
    }
}

/// Counts since the start, and the present.
package struct HTTPStatistics: Equatable, Sendable {
    /// Connections that are open.
    package var connections = 0
    /// Requests between their request line and the end of their answer.
    package var requestsInFlight = 0
    /// Connections taken since the start.
    package var connectionsAccepted = 0
    /// Connections over a limit, answered 503 or closed.
    package var connectionsRefused: [ConnectionLimit: Int] = [:]
    /// Connections cut off because the client was too slow or sent too much.
    package var connectionsCut = 0
    /// Looks of the thread that cuts off slow ones, each at one connection.
    package var looks = 0
    /// Requests whose head was read.
    package var requests = 0
    /// Bytes of bodies, as sent.
    package var bodyBytes = 0
}
