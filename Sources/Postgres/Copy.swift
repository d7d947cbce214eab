internal import CPostgres

extension PostgresConnection {
    /// Sends rows with COPY … FROM STDIN.
    ///
    /// - Parameters:
    ///   - sql: The statement.
    ///   - body: Writes the data; what it throws ends the COPY without a row.
    /// - Returns: How many rows were stored.
    /// - Throws: What `body` throws, or the error of the server; its `copyLine` is the row at fault.
    @discardableResult
    package func copyIn(
        _ sql: String, _ body: (inout CopyWriter) throws(PostgresError) -> Void
    ) throws(PostgresError) -> Int {
        _ = try expectCopy(sql, PGRES_COPY_IN)
        var writer = unsafe CopyWriter(raw, patience)
        do throws(PostgresError) {
            try body(&writer)
            try writer.flush()
        } catch {
            unsafe PQputCopyEnd(raw, "ended by the client")
            do throws(PostgresError) {
                _ = try lastResult()
            } catch let answer {
                // The server's own error came first, unless it only says what we just did.
                if answer.sqlstate != "57014" { throw answer }
            }
            throw error
        }
        guard unsafe PQputCopyEnd(raw, nil) == 1 else { throw lost() }
        return try lastResult().affectedRows
    }

    /// Reads rows with COPY … TO STDOUT (FORMAT binary).
    ///
    /// - Parameters:
    ///   - sql: The statement; its format has to be binary.
    ///   - body: Takes one row; what it throws ends the COPY.
    /// - Returns: The number of rows.
    /// - Throws: What `body` throws, or the error of the server. The session stays usable.
    @discardableResult
    package func copyOut(
        _ sql: String, _ body: (borrowing CopyRow) throws(PostgresError) -> Void
    ) throws(PostgresError) -> Int {
        let columns = try expectCopy(sql, PGRES_COPY_OUT)
        var failure: PostgresError?
        var reader = CopyReader(columns: columns)
        var buffer: UnsafeMutablePointer<CChar>?
        while true {
            let count = unsafe try patience.copyData(&buffer)
            guard count > 0, let data = unsafe buffer else { break }
            // SAFETY: libpq gives `count` bytes that are ours until PQfreemem.
            defer { unsafe PQfreemem(data) }
            if failure != nil { continue }  // The rest still has to be read.
            let span = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(data), byteCount: count)
            do throws(PostgresError) {
                try reader.take(span, body)
            } catch {
                failure = error
                // Without this a COPY of millions of rows would be read to its end for nothing.
                makeCanceller()?.cancel()
            }
        }
        do throws(PostgresError) {
            _ = try lastResult()
        } catch {
            if failure == nil || error.sqlstate != "57014" { throw failure ?? error }
        }
        if let failure { throw failure }
        guard reader.isComplete else {
            throw .misuse("cannot read the COPY: its data ended without the binary trailer")
        }
        return reader.rows
    }
}

/// Takes the data of a COPY … FROM STDIN, in pieces of about 256 KiB.
@safe
package struct CopyWriter: ~Copyable {
    // SAFETY: of a connection that outlives this value, since both live within `copyIn`.
    private let raw: OpaquePointer
    private let patience: Patience
    // SAFETY: `pieceBytes` bytes from `init` to `deinit`, of which the first `count` wait to be sent.
    private let pending: UnsafeMutableRawPointer
    private var count = 0
    private static let pieceBytes = 256 << 10

    @unsafe
    init(_ raw: OpaquePointer, _ patience: Patience) {
        unsafe self.raw = raw
        self.patience = patience
        unsafe pending = .allocate(byteCount: Self.pieceBytes, alignment: 16)
    }

    deinit { unsafe pending.deallocate() }

    /// Writes bytes; they may be part of a row.
    ///
    /// - Throws: That the session is gone. A row the server refuses shows at the end of the COPY.
    package mutating func write(_ bytes: RawSpan) throws(PostgresError) {
        if count &+ bytes.byteCount > Self.pieceBytes { try flush() }
        if bytes.byteCount >= Self.pieceBytes / 4 {
            try flush()
            return try send(bytes)
        }
        put(bytes)
    }

    /// Writes bytes; they may be part of a row.
    package mutating func write(_ bytes: [UInt8]) throws(PostgresError) {
        try unsafe write(bytes.span.bytes)
    }

    /// Writes bytes with others before and after them; where all are few, in one step.
    package mutating func write(
        _ head: RawSpan, _ bytes: RawSpan, _ tail: RawSpan
    ) throws(PostgresError) {
        let total = head.byteCount &+ bytes.byteCount &+ tail.byteCount
        if total >= Self.pieceBytes / 4 {
            try write(head)
            try write(bytes)
            return try write(tail)
        }
        if count &+ total > Self.pieceBytes { try flush() }
        put(head)
        put(bytes)
        put(tail)
    }

    /// Puts bytes behind those that wait; there is room for them.
    @inline(__always)
    private mutating func put(_ bytes: RawSpan) {
        // SAFETY: fewer than `pieceBytes` together, says the caller.
        unsafe bytes.withUnsafeBytes { source in
            if let first = source.baseAddress {
                unsafe (pending + count).copyMemory(from: first, byteCount: source.count)
            }
        }
        count &+= bytes.byteCount
    }

    /// Writes the head of the binary format: signature, flags, no extension.
    package mutating func writeBinaryHeader() throws(PostgresError) {
        try write(CopyReader.signature + [0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Writes the end of the binary format.
    package mutating func writeBinaryTrailer() throws(PostgresError) {
        try write([0xFF, 0xFF])
    }

    mutating func flush() throws(PostgresError) {
        guard count > 0 else { return }
        // SAFETY: the first `count` bytes are written.
        try unsafe send(RawSpan(_unsafeStart: pending, byteCount: count))
        count = 0
    }

    private func send(_ bytes: RawSpan) throws(PostgresError) {
        var rest = bytes
        while rest.byteCount > 0 {
            let piece = rest.extracting(first: min(rest.byteCount, 1 << 20))
            rest = rest.extracting(droppingFirst: piece.byteCount)
            let code = unsafe piece.withUnsafeBytes { buffer in
                unsafe PQputCopyData(
                    raw, buffer.baseAddress?.assumingMemoryBound(to: CChar.self),
                    Int32(buffer.count))
            }
            guard code == 1, try patience.flush() else {
                let reason = unsafe Dial.flatten(String(cString: PQerrorMessage(raw)))
                throw .connectionLost(reason: reason, sqlstate: nil)
            }
        }
    }
}

/// One row of a binary COPY: Int16 count of fields, then Int32 length (-1 is NULL) and bytes each.
package struct CopyRow: ~Copyable, ~Escapable {
    /// The whole row as sent.
    package let bytes: RawSpan

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan) { self.bytes = bytes }

    /// The bytes of a field; nil for NULL. Traps for an index out of range.
    @_lifetime(copy self)
    package func field(_ index: Int) -> RawSpan? {
        var offset = 2
        for _ in 0..<index { offset += 4 + max(0, length(at: offset)) }
        let count = length(at: offset)
        return count < 0 ? nil : bytes.extracting(offset + 4..<offset + 4 + count)
    }

    /// The bytes of a field, copied; nil for NULL.
    package func array(_ index: Int) -> [UInt8]? {
        guard let field = field(index) else { return nil }
        return unsafe field.withUnsafeBytes { unsafe [UInt8]($0) }
    }

    /// An integer field of 2, 4 or 8 bytes; nil for NULL.
    package func int64(_ index: Int) -> Int64? {
        field(index)?.bigEndianInteger
    }

    private func length(at offset: Int) -> Int {
        let four = bytes.extracting(offset..<offset + 4)
        // SAFETY: four bytes, by the checked call just above.
        return unsafe Int(four.unsafeLoadUnaligned(as: Int32.self).bigEndian)
    }
}

/// Finds the rows in the messages of a binary COPY TO STDOUT.
///
/// The server sends one row a message, the header before the first, the trailer by itself.
struct CopyReader {
    /// `PGCOPY\n\377\r\n\0`, the head of the binary format.
    static let signature: [UInt8] = [
        0x50, 0x47, 0x43, 0x4F, 0x50, 0x59, 0x0A, 0xFF, 0x0D, 0x0A, 0x00,
    ]

    private let columns: Int
    private var hasHeader = false
    private(set) var isComplete = false
    private(set) var rows = 0

    init(columns: Int) { self.columns = columns }

    mutating func take(
        _ message: RawSpan, _ body: (borrowing CopyRow) throws(PostgresError) -> Void
    ) throws(PostgresError) {
        var rest = message
        if !hasHeader {
            let head = Self.signature
            guard rest.byteCount >= 19,
                head.indices.allSatisfy({ rest.unsafeLoadByte(at: $0) == head[$0] })
            else { throw .misuse("cannot read the COPY: its format is not binary") }
            let extra = rest.extracting(15..<19).bigEndianInteger ?? 0
            guard extra >= 0, 19 + Int(extra) <= rest.byteCount else { throw Self.malformed }
            rest = rest.extracting(droppingFirst: 19 + Int(extra))
            hasHeader = true
        }
        while rest.byteCount > 0 {
            guard rest.byteCount >= 2, !isComplete else { throw Self.malformed }
            let count = rest.extracting(0..<2).bigEndianInteger ?? 0
            if count == -1 {
                isComplete = true
                rest = rest.extracting(droppingFirst: 2)
                continue
            }
            guard count == columns else { throw Self.malformed }
            var end = 2
            for _ in 0..<columns {
                guard end + 4 <= rest.byteCount else { throw Self.malformed }
                let length = Int(rest.extracting(end..<end + 4).bigEndianInteger ?? -1)
                end += 4 + max(0, length)
            }
            guard end <= rest.byteCount else { throw Self.malformed }
            rows += 1
            try body(CopyRow(rest.extracting(0..<end)))
            rest = rest.extracting(droppingFirst: end)
        }
    }

    private static let malformed = PostgresError.misuse("cannot read the COPY: malformed row")
}
