import Event

/// Keys with their contents: exact, 32 bytes an entry and its place in the index.
typealias KeyTable = FlatTable<Identity, EventContent>

extension FlatTable where Key == Identity, Value == EventContent {
    /// The content stored with `key`, or nil.
    func content(of key: Identity) -> EventContent? { value(of: key) }

    /// Adds `key` unless it is there.
    ///
    /// - Returns: The content already stored with it, or nil when it was added.
    @discardableResult
    mutating func insert(_ key: Identity, _ content: EventContent) -> EventContent? {
        let (slot, isNew) = slot(adding: key, content)
        return isNew ? nil : self[slot]
    }
}
