import Foundation
import Glibc
import Platform
import Spool

/// A directory whose unsynced changes a power cut loses, and whose operations fail when told to.
///
/// Every change is made to real files at once, which the spool reads, and noted here until it is
/// synced. ``afterPowerCut(_:)`` is what may be left of it.
final class FakeDisk: Sendable {
    /// What goes wrong during one operation of a test; steps are counted from 0.
    struct Fault: Equatable, Sendable {
        /// Steps that fail with EIO: a write after half of its bytes, a sync with some of the file.
        var failing: [Int] = []
        /// The step before which the power goes.
        var cut: Int?
        /// The step before which the process is killed.
        var kill: Int?
        /// Bytes that still fit on the disk.
        var bytesFree: Int?
        /// The most bytes that one write takes.
        var writeBytesMax: Int?
    }

    /// How unsynced writes reach the disk by themselves.
    enum Order: Sendable {
        /// In order, and the last one torn at any byte, maybe with zeros after it.
        case inOrder
        /// Each piece of 64 bytes, or not.
        case any
    }

    enum Change {
        case write(offset: Int, [UInt8])
        case truncate(Int)
    }

    struct Node {
        var durable: [UInt8] = []
        var pending: [Change] = []
    }

    enum Entry {
        case link(String, Int)
        case unlink(String)
        case rename(String, String, Int)
    }

    struct State {
        var nodes: [Int: Node] = [:]
        var lastNode = 0
        /// Names as they are now, and as they would be after a power cut with none of `entries`.
        var names: [String: Int] = [:]
        var durableNames: [String: Int] = [:]
        var entries: [Entry] = []
        var fault = Fault()
        var steps = 0
        var isOff = false
        var isHolding = false
        var isHeld = false
        var random: SplitMix
        /// Nodes of which a sync failed.
        var failedSyncs: Set<Int> = []
        var hasSyncFailed = false
        var hasCleanupFailed = false
    }

    /// Where there is a file system in memory, the tests are several times as fast.
    private static let memory = Directory.isDirectory("/dev/shm") ? "/dev/shm" : "/tmp"

    let fixture: SpoolFixture
    let order: Order
    /// Whether segments are written past the page cache.
    let isDirect: Bool
    let state: Sync.Monitor<State>

    init(seed: UInt64, order: Order = .inOrder) throws {
        fixture = try SpoolFixture(under: Self.memory)
        self.order = order
        isDirect = seed % 2 == 0
        state = .init(State(random: SplitMix(state: seed)))
    }

    // MARK: Control

    /// Begins an operation of the test, which a fault meets.
    func begin(_ fault: Fault) {
        state.withLock {
            $0.fault = fault
            $0.steps = 0
        }
    }

    /// Whether the power is gone.
    var isOff: Bool { state.withLock { $0.isOff } }

    /// From now on nothing changes, as the process is dead; ``revive()`` is its next start.
    func turnOff() { state.withLock { $0.isOff = true } }

    func revive() { state.withLock { $0.isOff = false } }

    /// The files, by a number each, of which a sync failed.
    var failedSyncs: Set<Int> { state.withLock { $0.failedSyncs } }

    /// Whether a sync ever failed; then what a restart finds may be gone after a power cut, although
    /// the restart has synced it.
    var hasSyncFailed: Bool { state.withLock { $0.hasSyncFailed } }

    /// Whether a failed write could not be cut off or removed either.
    var hasCleanupFailed: Bool { state.withLock { $0.hasCleanupFailed } }

    /// The number of the file that has a name now.
    func node(_ name: String) -> Int? { state.withLock { $0.names[name] } }

    /// Lets the next step wait, so that a group gathers behind it.
    func hold() {
        state.withLock {
            $0.isHolding = true
            $0.isHeld = false
        }
    }

    /// - Returns: Whether a step came.
    func waitUntilHeld() -> Bool {
        let deadline = Clock.deadline(inMilliseconds: 30_000)
        return state.wait(until: deadline) { $0.isHeld ? true : nil } ?? false
    }

    func letGo() {
        state.withLock { $0.isHolding = false }
        state.broadcast()
    }

    /// A change that needs no sync: the disk itself goes wrong.
    func flip(_ name: String, at offset: Int, bit: UInt8) throws {
        let file = try File(fixture.path + "/" + name, .readWrite)
        let byte = try file.read(count: 1, at: offset)[0] ^ (1 << bit)
        try file.write([byte].span, at: offset)
        state.withLock { state in
            guard let node = state.names[name] else { return }
            if state.nodes[node]!.durable.count > offset {
                state.nodes[node]!.durable[offset] = byte
            }
            state.nodes[node]!.pending.append(.write(offset: offset, [byte]))
        }
    }

    // MARK: Power

    static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .truncate(let count):
            if count < bytes.count { bytes.removeSubrange(count...) }
        case .write(let offset, let new):
            let end = offset + new.count
            if bytes.count < end { bytes += Array(repeating: 0, count: end - bytes.count) }
            bytes.replaceSubrange(offset..<end, with: new)
        }
    }

    /// Some of what is pending reaches the disk; the rest never will.
    static func settle(_ node: inout Node, _ order: Order, _ random: inout SplitMix) {
        var whole = node.durable
        for change in node.pending { apply(change, to: &whole) }
        switch order {
        case .inOrder:
            let kept = Int.random(in: 0...node.pending.count, using: &random)
            for change in node.pending.prefix(kept) { apply(change, to: &node.durable) }
            if kept < node.pending.count, case .write(let offset, let bytes) = node.pending[kept] {
                let torn = Int.random(in: 0...bytes.count, using: &random)
                if torn > 0 {
                    apply(.write(offset: offset, Array(bytes.prefix(torn))), to: &node.durable)
                }
                if Int.random(in: 0..<4, using: &random) == 0, whole.count > node.durable.count {
                    // The size was written, and the data was not.
                    node.durable += Array(repeating: 0, count: whole.count - node.durable.count)
                }
            }
        case .any:
            for change in node.pending {
                guard case .write(let offset, let bytes) = change else {
                    if Bool.random(using: &random) { apply(change, to: &node.durable) }
                    continue
                }
                for start in stride(from: 0, to: bytes.count, by: 64)
                where Bool.random(using: &random) {
                    let part = Array(bytes[start..<min(start + 64, bytes.count)])
                    apply(.write(offset: offset + start, part), to: &node.durable)
                }
            }
        }
        node.pending = []
    }

    static func apply(_ entry: Entry, to names: inout [String: Int]) {
        switch entry {
        case .link(let name, let node): names[name] = node
        case .unlink(let name): names[name] = nil
        case .rename(let from, let to, let node):
            if names[from] == node { names[from] = nil }
            names[to] = node
        }
    }

    /// A disk with what a power cut may leave: of the unsynced changes of each file, and of creations,
    /// renames and removals, some.
    func afterPowerCut(seed: UInt64) throws -> FakeDisk {
        let next = try FakeDisk(seed: seed, order: order)
        let files: [(String, [UInt8])] = state.withLock { state in
            var random = SplitMix(state: seed)
            var names = state.durableNames
            for entry in state.entries where Bool.random(using: &random) {
                Self.apply(entry, to: &names)
            }
            return names.sorted { $0.key < $1.key }.map { name, number in
                var node = state.nodes[number]!
                Self.settle(&node, order, &random)
                return (name, node.durable)
            }
        }
        for (name, bytes) in files { try next.put(name, bytes) }
        let (hasSyncFailed, hasCleanupFailed) = (hasSyncFailed, hasCleanupFailed)
        next.state.withLock {
            $0.hasSyncFailed = hasSyncFailed
            $0.hasCleanupFailed = hasCleanupFailed
        }
        return next
    }

    private func put(_ name: String, _ bytes: [UInt8]) throws {
        let path = fixture.path + "/" + name
        try Directory.create(Directory.parent(of: path))
        try File(path, .createNew).write(bytes.span, at: 0)
        state.withLock { state in
            state.lastNode += 1
            state.nodes[state.lastNode] = Node(durable: bytes)
            state.names[name] = state.lastNode
            state.durableNames[name] = state.lastNode
        }
    }
}
