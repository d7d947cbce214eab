import Testing

/// Scenarios by which ``ModelTests`` once found a fault, shortened. What a power cut leaves is random,
/// so each runs many times.
struct FoundTests {
    static func expectKept(
        _ steps: [Scenario.Step], order: FakeDisk.Order = .inOrder,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for seed in 0..<100 {
            let failure = Scenario(seed: UInt64(seed), steps: steps, order: order).failure()
            #expect(failure == nil, "seed \(seed)", sourceLocation: sourceLocation)
            if failure != nil { return }
        }
    }

    @Test func aRecordFoundAfterAKillIsNotLostOnceItIsLoaded() {
        for kill in 0...9 {
            for order in [FakeDisk.Order.inOrder, .any] {
                Self.expectKept(
                    [
                        .init(operation: .append(count: 2, bytes: 0), fault: .init(kill: kill)),
                        .init(operation: .read(4)),
                        .init(operation: .release),
                    ], order: order)
            }
        }
    }

    @Test func whatAKilledProcessHadNotSyncedIsNoDamageAfterAPowerCut() {
        for kill in 0...9 {
            Self.expectKept([
                .init(operation: .append(count: 2, bytes: 150), fault: .init(kill: kill)),
                .init(operation: .append(count: 2, bytes: 0), fault: .init(cut: 7)),
            ])
        }
    }

    @Test func whatWasCutOffAFailedSegmentIsNoDamageAfterAPowerCut() {
        for step in 0...2 {
            Self.expectKept([
                .init(operation: .append(count: 1, bytes: 0)),
                .init(operation: .append(count: 1, bytes: 0), fault: .init(failing: [step])),
                .init(operation: .append(count: 2, bytes: 0), fault: .init(cut: 7)),
            ])
        }
    }

    @Test func aSegmentThatNeverHeldARecordIsNoDamageAfterAPowerCut() {
        for cut in 0...4 {
            Self.expectKept([
                .init(operation: .append(count: 1, bytes: 0), fault: .init(cut: 2)),
                .init(operation: .append(count: 1, bytes: 73), fault: .init(bytesFree: 140)),
                .init(operation: .append(count: 1, bytes: 0), fault: .init(cut: cut)),
            ])
        }
    }
}
