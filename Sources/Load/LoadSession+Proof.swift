import Event
import Postgres

/// Telling a table that refuses everything from a row that is refused.
extension LoadSession {
    /// Whether the open segment still takes a row that this session has stored before.
    ///
    /// A constraint, a trigger or a dropped column may come at any time, and then every row fails alone:
    /// that earlier ones were stored says nothing any more. The row is taken back in every case.
    mutating func takesProvenRow(_ turn: Turn) throws(LoadError) -> Bool {
        guard !provenRow.isEmpty else { return false }
        _ = try connection.statement("SAVEPOINT proof")
        var isTaken = true
        do throws(PostgresError) {
            try connection.copyIn(Self.copyStatement(turn)) { writer throws(PostgresError) in
                try writer.writeBinaryHeader()
                try writer.write(Self.rowHead)
                try writer.write(provenRow.rawSpan.extracting(droppingFirst: 2))
                try writer.write(Self.rowTail(turn))
                try writer.write(Self.notFilled)
                try writer.writeBinaryTrailer()
            }
        } catch .refused(let report) where LoadError.blamesARow(report) {
            isTaken = false
        } catch {
            throw .postgres(error)
        }
        _ = try connection.statement("ROLLBACK TO SAVEPOINT proof")
        return isTaken
    }

    /// The COPY of the rows of a turn. It names the columns: by their places alone, the values of a row
    /// would go to other columns of a table in which one was dropped and added again.
    static func copyStatement(_ turn: Turn) -> String {
        "COPY tapline.event_\(turn.segment) (\(columns)) FROM STDIN (FORMAT binary)"
    }

    private static let columns =
        (EventColumn.allCases.map(\.name) + ["batch", "segment", "filled"]).joined(separator: ", ")

    /// How many columns a row has: those that are spooled, which begin with a count of their own, and what
    /// the loader adds: batch, segment and filled.
    static let rowHead: [UInt8] = [0, UInt8(EventRow.fieldCount + 1)]

    /// The column filled of a row that has nothing of its device.
    static let notFilled: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]

    /// The columns batch and segment, each with its length.
    static func rowTail(_ turn: Turn) -> [UInt8] {
        [0, 0, 0, 8] + turn.batch.bigEndianBytes
            + [0, 0, 0, 4] + Int32(truncatingIfNeeded: turn.segment).bigEndianBytes
    }
}
