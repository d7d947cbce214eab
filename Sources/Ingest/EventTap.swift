/// Whoever follows events while they come.
package protocol EventTap: Sendable {
    /// Whether anyone does. Asked for each body, on HTTP threads: it waits for nothing.
    var isOpen: Bool { get }
    /// Takes the payload of a ``Event/BodyRecord`` that has become durable, on the committer's thread,
    /// and must not block.
    func take(_ payload: [UInt8])
}
