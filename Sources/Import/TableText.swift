/// What texts of campaigns and categories may be.
package enum TableText {
    /// Bytes of an id.
    package static let idBytesMax = 128
    /// Bytes of any other text.
    package static let textBytesMax = 512

    /// The text, if it is no longer than the limit and has no NUL, which no text in the database may have.
    ///
    /// - Throws: ``RowError`` with its name.
    package static func checked(
        _ text: String, _ name: String, bytesMax: Int
    ) throws(RowError) -> String {
        guard text.utf8.count <= bytesMax else {
            throw RowError("\(name) is \(text.utf8.count) bytes, limit is \(bytesMax)")
        }
        guard !text.utf8.contains(0) else { throw RowError("\(name) has a NUL") }
        return text
    }
}
