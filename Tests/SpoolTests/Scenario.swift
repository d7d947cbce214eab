import Foundation
import Platform
import Spool

/// A sequence of operations on a spool over a ``FakeDisk``, held against what a queue must do.
///
/// It repeats exactly, so one that fails can be shortened and kept: print it, and it is a literal.
struct Scenario: CustomStringConvertible, Sendable {
    enum Operation: Equatable, Sendable {
        /// Appends a record alone, and the rest as one group behind it.
        case append(count: Int, bytes: Int)
        /// Reads on, up to so many records.
        case read(Int)
        /// The database has committed what was read.
        case release
        case restart(Ending)
        /// The disk changes a bit of a record that was not read yet.
        case damage(record: Int, bit: Int)
    }

    enum Ending: Equatable, Sendable {
        case close
        case kill
        case powerCut
    }

    struct Step: CustomStringConvertible, Sendable {
        var operation: Operation
        var fault = FakeDisk.Fault()

        var description: String {
            var parts: [String] = []
            if !fault.failing.isEmpty { parts.append("failing: \(fault.failing)") }
            if let cut = fault.cut { parts.append("cut: \(cut)") }
            if let kill = fault.kill { parts.append("kill: \(kill)") }
            if let free = fault.bytesFree { parts.append("bytesFree: \(free)") }
            if let most = fault.writeBytesMax { parts.append("writeBytesMax: \(most)") }
            let fault = parts.isEmpty ? "" : ", fault: .init(\(parts.joined(separator: ", ")))"
            var text = "\(operation)"
            if let name = text.range(of: "SpoolTests.Scenario.Ending") { text.removeSubrange(name) }
            return ".init(operation: .\(text)\(fault))"
        }
    }

    var seed: UInt64
    var steps: [Step]
    var order = FakeDisk.Order.inOrder

    var description: String {
        "Scenario(\n    seed: \(seed),\n    steps: [\n        "
            + steps.map(\.description).joined(separator: ",\n        ")
            + "\n    ], order: .\(order))"
    }

    // MARK: Making one

    /// Random steps, most of them without a fault.
    init(seed: UInt64, order: FakeDisk.Order = .inOrder, damages: Bool) {
        self.seed = seed
        self.order = order
        var random = SplitMix(state: seed)
        func pick(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        steps = (0..<pick(4...24)).map { _ in
            let operation: Operation =
                switch pick(0...19) {
                case 0...8:
                    .append(count: pick(1...4), bytes: pick(0...19) == 0 ? 70_000 : pick(0...150))
                case 9...11: .read(pick(1...9))
                case 12...14: .release
                case 15: .restart(.close)
                case 16: .restart(.kill)
                case 17: .restart(.powerCut)
                default:
                    damages
                        ? .damage(record: pick(0...50), bit: pick(0...10_000))
                        : .read(pick(1...9))
                }
            var fault = FakeDisk.Fault()
            switch pick(0...11) {
            case 0: fault.failing = [pick(0...9)]
            case 1: fault.failing = (0...pick(0...4)).map { _ in pick(0...9) }
            case 2, 3: fault.cut = pick(0...12)
            case 4: fault.kill = pick(0...12)
            case 5: fault.bytesFree = pick(0...300)
            case 6: fault.writeBytesMax = pick(1...50)
            default: break
            }
            return Step(operation: operation, fault: fault)
        }
    }

    /// A scenario that was found.
    init(seed: UInt64, steps: [Step], order: FakeDisk.Order = .inOrder) {
        self.seed = seed
        self.steps = steps
        self.order = order
    }

    // MARK: Shortening one

    /// The shortest scenario found by leaving out steps and faults that still fails.
    func shortened() -> Scenario {
        var best = self
        while let shorter = best.shorter().first(where: { $0.failure() != nil }) { best = shorter }
        return best
    }

    private func shorter() -> [Scenario] {
        var candidates: [Scenario] = []
        func add(_ change: (inout Scenario) -> Void) {
            var copy = self
            change(&copy)
            candidates.append(copy)
        }
        for place in steps.indices.reversed() {
            add { $0.steps.remove(at: place) }
        }
        for place in steps.indices {
            let step = steps[place]
            if step.fault != .init() { add { $0.steps[place].fault = .init() } }
            for index in step.fault.failing.indices where step.fault.failing.count > 1 {
                add { $0.steps[place].fault.failing.remove(at: index) }
            }
            if case .append(let count, let bytes) = step.operation {
                if count > 1 {
                    add { $0.steps[place].operation = .append(count: count - 1, bytes: bytes) }
                }
                if bytes > 0 {
                    add { $0.steps[place].operation = .append(count: count, bytes: bytes / 2) }
                }
            }
        }
        return candidates
    }

    // MARK: Running one

    /// Runs it.
    ///
    /// - Returns: How the spool broke its promise; nil when it kept it.
    func failure() -> String? {
        do {
            var run = try ScenarioRun(self)
            return run.failure()
        } catch {
            return "the test itself: \(error)"
        }
    }
}
