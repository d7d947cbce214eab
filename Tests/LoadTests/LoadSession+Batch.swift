@testable import Load

extension LoadSession {
    /// Loads a batch that is of no further use.
    mutating func load(_ batch: consuming LoadBatch) throws(LoadError) -> [StoredVerdict] {
        var batch = batch
        return try load(&batch)
    }
}
