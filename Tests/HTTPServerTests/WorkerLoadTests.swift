import HTTPTestClient
import Testing

@testable import HTTPServer

@Suite struct WorkerLoadTests {
    /// How many of the clients each thread serves.
    private static func shares(_ clients: [RawClient]) throws -> [String: Int] {
        var shares: [String: Int] = [:]
        for client in clients {
            client.send("GET /thread HTTP/1.1\r\nHost: a\r\n\r\n")
            shares[try client.answer().body, default: 0] += 1
        }
        return shares
    }

    @Test(arguments: [1, 2, 3]) func threadsShareConnectionsEvenly(threads: Int) throws {
        let server = try TestServer { $0.threads = threads }
        let clients = try (0..<4 * threads).map { _ in try server.client() }
        var shares = try Self.shares(clients)
        #expect(shares.count == threads && shares.values.allSatisfy { $0 == 4 }, "\(shares)")
        // All clients of one thread leave, with a storm of others that say nothing.
        let name = try #require(shares.keys.first)
        for client in clients where try Self.shares([client])[name] == 1 { client.close() }
        for _ in 0..<200 { try server.client().reset() }
        let all = 4 * threads + 200
        #expect(
            server.wait { $0.connectionsAccepted == all && $0.connections == 4 * (threads - 1) })
        let next = try (0..<4).map { _ in try server.client() }
        shares = try Self.shares(next)
        #expect(shares == [name: 4])
        for client in clients { client.close() }
        server.server.stop(drainSeconds: 1)
    }

    private static func address(_ number: UInt64) -> ClientAddress {
        ClientAddress(high: 0, low: 0xFFFF_0A00_0000 + number)
    }

    @Test func theThreadWithTheFewestGetsTheNext() {
        var load = WorkerLoad(workers: 3)
        let placed = (0..<6).map { load.place($0, from: Self.address(1)) }
        #expect(placed == [0, 1, 2, 0, 1, 2])
        let begun = (0..<6).map { load.begin($0) }
        #expect(begun == placed)
        load.end(on: 1)
        let next = (10..<14).map { load.place($0, from: Self.address(1)) }
        #expect(next == [1, 0, 1, 2])
    }

    @Test func aConnectionThatNoThreadBeganWithIsForgottenWithItsSocket() {
        var load = WorkerLoad(workers: 2)
        // Closed each time before its thread saw it: the kernel gives the number again.
        for _ in 0..<100 { _ = load.place(7, from: Self.address(7)) }
        #expect(load.placedCount == 1)
        #expect(load.placedCount(from: Self.address(7)) == 1)
        // And one that could not be handed over at all.
        _ = load.place(8, from: Self.address(8))
        load.unplace(8)
        #expect(load.placedCount == 1)
        #expect(load.placedCount(from: Self.address(8)) == 0)
        let begun = load.begin(7)
        #expect(load.placedCount(from: Self.address(7)) == 0)
        let next = (10..<13).map { load.place($0, from: Self.address(1)) }
        #expect(begun == 0 && next == [1, 0, 1])
        #expect(load.placedCount == 3)
    }
}
