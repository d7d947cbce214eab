import Foundation
import Testing

/// The spool against a model, over a disk that loses what is not synced.
///
/// `SPOOL_MODEL_ROUNDS` runs more rounds, `SPOOL_MODEL_SEED` others.
struct ModelTests {
    static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    static func run(rounds: Int, _ make: (UInt64) -> Scenario) {
        let first = UInt64(number("SPOOL_MODEL_SEED") ?? 1)
        let rounds = number("SPOOL_MODEL_ROUNDS") ?? rounds
        for seed in first..<first + UInt64(rounds) {
            let scenario = make(seed)
            guard scenario.failure() != nil else { continue }
            let shortest = scenario.shortened()
            Issue.record("seed \(seed): \(shortest.failure() ?? "does not repeat")\n\(shortest)")
            return
        }
    }

    @Test func whatIsAcknowledgedIsReadOnceAndInOrder() {
        Self.run(rounds: 300) { Scenario(seed: $0, damages: false) }
    }

    @Test func damageCostsOnlyWhatItDamages() {
        Self.run(rounds: 200) { Scenario(seed: $0, damages: true) }
    }

    @Test func pagesMayReachTheDiskInAnyOrder() {
        Self.run(rounds: 200) { Scenario(seed: $0, order: .any, damages: false) }
    }
}
