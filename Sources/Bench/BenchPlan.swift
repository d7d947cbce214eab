import Platform
import Sample

/// What a run sends. All of its events follow from these numbers, so that a check can make each one
/// again and the log need not hold them.
package struct BenchPlan: Equatable, Sendable {
    /// Chooses the events, and names them: two runs with one seed send the same ids.
    package var seed: UInt64
    /// How many.
    package var events: Int
    /// Events of a body; the last one has what is left.
    package var batch: Int
    /// When the run began, in microseconds since 1970 UTC. No event happened after it.
    package var start: Microseconds
    /// The events happened in so many microseconds before the start.
    package var delay: Microseconds
    /// Whether they are sent in an order that has nothing to do with their numbers.
    package var isShuffled: Bool

    /// Makes a plan.
    package init(
        seed: UInt64, events: Int, batch: Int = 500, start: Microseconds = Clock.now(),
        delay: Microseconds = 60_000_000, isShuffled: Bool = false
    ) {
        self.seed = seed
        self.events = events
        self.batch = batch
        self.start = start
        self.delay = delay
        self.isShuffled = isShuffled
    }

    /// How many bodies they make.
    package var bodies: Int { (events + batch - 1) / batch }

    /// What every id of the run begins with.
    package var prefix: String { "bench-\(String(seed, radix: 16))-" }

    /// Calls `take` with the number of each event of a body, in their order.
    package func forEachNumber(ofBody body: Int, _ take: (Int) -> Void) {
        let places = body * batch..<min((body + 1) * batch, events)
        guard isShuffled else { return places.forEach(take) }
        let permutation = Permutation(count: events, seed: seed)
        for place in places { take(permutation.number(at: place)) }
    }
}

/// An order of the numbers below a count that needs no memory: a Feistel network of four rounds,
/// walked until it is in range again (Black and Rogaway, "Ciphers with Arbitrary Finite Domains").
struct Permutation {
    private let count: Int
    private let halfBits: UInt64
    private let keys: [UInt64]

    init(count: Int, seed: UInt64) {
        self.count = count
        let bits = max(2, Int.bitWidth - max(count - 1, 1).leadingZeroBitCount)
        halfBits = UInt64(bits + 1) / 2
        var random = SplitMix64(seed: seed)
        keys = (0..<4).map { _ in random.next() }
    }

    /// The number at a place; each number below the count has one place below it.
    func number(at place: Int) -> Int {
        precondition(place >= 0 && place < count, "place \(place) outside 0..<\(count)")
        var value = UInt64(place)
        repeat { value = shuffled(value) } while value >= UInt64(count)
        return Int(value)
    }

    private func shuffled(_ value: UInt64) -> UInt64 {
        let mask = (1 << halfBits) - 1 as UInt64
        var left = value >> halfBits
        var right = value & mask
        for key in keys {
            var random = SplitMix64(seed: key ^ right)
            (left, right) = (right, left ^ (random.next() & mask))
        }
        return left << halfBits | right
    }
}
