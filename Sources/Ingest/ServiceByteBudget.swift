import Synchronization

/// Bytes that many requests hold together.
final class ByteBudget: Sendable {
    private let total = Atomic(0)

    /// The bytes held now.
    var used: Int { total.load(ordering: .relaxed) }

    /// Adds to the bytes held.
    ///
    /// - Returns: The bytes that are then held.
    func add(_ count: Int) -> Int {
        total.wrappingAdd(count, ordering: .relaxed).newValue
    }

    /// Gives bytes back.
    func release(_ count: Int) { total.wrappingSubtract(count, ordering: .relaxed) }
}
