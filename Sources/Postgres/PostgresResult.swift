internal import CPostgres

/// The rows that a statement gave, held in memory until the value ends.
///
/// Rows and columns count from 0; one out of range traps.
@safe
package struct PostgresResult: ~Copyable, @unchecked Sendable {
    // SAFETY: non-null until `deinit`, never changed; pointers into it leave only as spans that
    // borrow this value.
    private let raw: OpaquePointer

    /// Takes over a result.
    @unsafe
    init(_ raw: OpaquePointer) { unsafe self.raw = raw }

    deinit { unsafe PQclear(raw) }

    /// The number of rows.
    package var rows: Int { Int(unsafe PQntuples(raw)) }

    /// The number of columns.
    package var columns: Int { Int(unsafe PQnfields(raw)) }

    /// What the statement did: `INSERT 0 5`, `COMMIT`, `SELECT 3`.
    package var commandTag: String { unsafe String(cString: PQcmdStatus(raw)) }

    /// How many rows an INSERT, UPDATE, DELETE, COPY, … touched; 0 for other statements.
    package var affectedRows: Int { Int(unsafe String(cString: PQcmdTuples(raw))) ?? 0 }

    /// The name of a column.
    package func name(ofColumn column: Int) -> String {
        checkColumn(column)
        return unsafe String(cString: PQfname(raw, Int32(column)))
    }

    /// The object id of the type of a column (`pg_type.oid`).
    package func type(ofColumn column: Int) -> UInt32 {
        checkColumn(column)
        return unsafe PQftype(raw, Int32(column))
    }

    /// Whether a column is in binary format.
    package func isBinary(column: Int) -> Bool {
        checkColumn(column)
        return unsafe PQfformat(raw, Int32(column)) == 1
    }

    /// Whether a value is NULL.
    package func isNull(_ row: Int, _ column: Int) -> Bool {
        check(row, column)
        return unsafe PQgetisnull(raw, Int32(row), Int32(column)) == 1
    }

    /// The bytes of a value as the server sent them; none for NULL.
    @_lifetime(borrow self)
    package func bytes(_ row: Int, _ column: Int) -> RawSpan {
        check(row, column)
        let count = Int(unsafe PQgetlength(raw, Int32(row), Int32(column)))
        // SAFETY: never null for a row and a column in range; lives as long as the result.
        let start = unsafe UnsafeRawPointer(PQgetvalue(raw, Int32(row), Int32(column))!)
        let span = unsafe RawSpan(_unsafeStart: start, byteCount: count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// The bytes of a value, copied; nil for NULL.
    package func array(_ row: Int, _ column: Int) -> [UInt8]? {
        guard !isNull(row, column) else { return nil }
        return unsafe bytes(row, column).withUnsafeBytes { unsafe [UInt8]($0) }
    }

    /// The text of a value; nil for NULL.
    ///
    /// For columns in text format, and for binary ones of a text type (text, json, name, …).
    package func string(_ row: Int, _ column: Int) -> String? {
        guard !isNull(row, column) else { return nil }
        return unsafe bytes(row, column).withUnsafeBytes {
            unsafe String(decoding: $0, as: UTF8.self)
        }
    }

    /// An integer of 2, 4 or 8 bytes, or digits in text format; nil for NULL and for anything else.
    package func int64(_ row: Int, _ column: Int) -> Int64? {
        guard !isNull(row, column) else { return nil }
        guard isBinary(column: column) else { return string(row, column).flatMap(Int64.init) }
        return bytes(row, column).bigEndianInteger
    }

    /// A boolean; nil for NULL.
    package func bool(_ row: Int, _ column: Int) -> Bool? {
        guard !isNull(row, column) else { return nil }
        let bytes = bytes(row, column)
        guard bytes.byteCount == 1 else { return nil }
        let byte = bytes.unsafeLoadByte(at: 0)
        return isBinary(column: column) ? byte != 0 : byte == UInt8(ascii: "t")
    }

    /// A number of type real, double precision, or any number in text format; nil for NULL.
    package func double(_ row: Int, _ column: Int) -> Double? {
        guard !isNull(row, column) else { return nil }
        guard isBinary(column: column) else { return string(row, column).flatMap(Double.init) }
        guard let bits = bytes(row, column).bigEndianInteger else { return nil }
        switch type(ofColumn: column) {
        case 700: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
        case 701: return Double(bitPattern: UInt64(bitPattern: bits))
        default: return Double(bits)
        }
    }

    /// A timestamptz in binary format, as microseconds since 1970 UTC; nil for NULL.
    ///
    /// `infinity` and `-infinity` are the largest and the smallest Int64.
    package func timestamp(_ row: Int, _ column: Int) -> Int64? {
        guard let time = int64(row, column) else { return nil }
        if time == .max || time == .min { return time }
        let (shifted, overflow) = time.addingReportingOverflow(microsecondsTo2000)
        return overflow ? .max : shifted
    }

    private func checkColumn(_ column: Int) {
        precondition(column >= 0 && column < columns, "column \(column) outside 0..<\(columns)")
    }

    private func check(_ row: Int, _ column: Int) {
        precondition(row >= 0 && row < rows, "row \(row) outside 0..<\(rows)")
        checkColumn(column)
    }
}

extension RawSpan {
    /// The byte at an index, which is checked.
    func unsafeLoadByte(at index: Int) -> UInt8 {
        precondition(index >= 0 && index < byteCount, "byte \(index) outside 0..<\(byteCount)")
        // SAFETY: checked just above.
        return unsafe unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
    }

    /// A big-endian integer of 2, 4 or 8 bytes.
    var bigEndianInteger: Int64? {
        // SAFETY: the count is that of the type loaded.
        switch byteCount {
        case 2: unsafe Int64(unsafeLoadUnaligned(as: Int16.self).bigEndian)
        case 4: unsafe Int64(unsafeLoadUnaligned(as: Int32.self).bigEndian)
        case 8: unsafe unsafeLoadUnaligned(as: Int64.self).bigEndian
        default: nil
        }
    }
}
