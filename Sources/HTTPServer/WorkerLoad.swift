/// How many connections each of the server's threads has.
///
/// A thread keeps a connection as long as it is open, so the one that has the fewest gets the next.
struct WorkerLoad {
    private var open: [Int]
    /// The threads of the connections that were handed over and have not been seen since, by their
    /// sockets.
    private var placed: [Int32: (worker: Int, network: ClientAddress)] = [:]
    private var placedByNetwork: [ClientAddress: Int] = [:]

    init(workers: Int) { open = Array(repeating: 0, count: workers) }

    /// How many were handed over and have not been seen since.
    var placedCount: Int { placed.count }

    /// Those of a network among them.
    func placedCount(from address: ClientAddress) -> Int {
        placedByNetwork[address.network, default: 0]
    }

    /// Chooses the thread for a connection.
    mutating func place(_ socket: Int32, from address: ClientAddress) -> Int {
        // The last one of this number was closed before its thread could begin with it.
        unplace(socket)
        let worker = open.indices.min { open[$0] < open[$1] }!
        open[worker] += 1
        placed[socket] = (worker, address.network)
        placedByNetwork[address.network, default: 0] += 1
        return worker
    }

    /// Forgets a connection that no thread has begun with.
    mutating func unplace(_ socket: Int32) {
        if placed[socket] != nil { end(on: begin(socket)) }
    }

    /// The thread that was chosen for a connection, which begins with it.
    mutating func begin(_ socket: Int32) -> Int {
        let (worker, network) = placed.removeValue(forKey: socket)!
        let count = placedByNetwork[network, default: 1] - 1
        placedByNetwork[network] = count > 0 ? count : nil
        return worker
    }

    /// A connection of a thread has ended.
    mutating func end(on worker: Int) { open[worker] -= 1 }
}
