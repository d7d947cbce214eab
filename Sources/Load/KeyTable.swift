import Event

/// Keys with their contents: exact, 32 bytes an entry.
typealias KeyTable = FlatTable<Identity, EventContent>

extension FlatTable where Key == Identity, Value == EventContent {
    /// The content stored with `key`, or nil.
    func content(of key: Identity) -> EventContent? { value(of: key.storable) }

    /// Adds `key` unless it is there.
    ///
    /// - Returns: The content already stored with it, or nil when it was added.
    @discardableResult
    mutating func insert(_ key: Identity, _ content: EventContent) -> EventContent? {
        let (slot, isNew) = slot(adding: key.storable, content)
        return isNew ? nil : self[slot]
    }
}

extension Identity {
    /// The all-zero key marks an empty slot, so it is kept as its neighbour: one key in 2^128.
    var storable: Identity { isVacant ? Identity(high: 0, low: 1) : self }
}
