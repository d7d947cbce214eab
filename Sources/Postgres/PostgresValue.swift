/// A parameter of a statement, sent in PostgreSQL's binary format.
package enum PostgresValue: Equatable, Sendable {
    /// NULL, of the type the statement expects there.
    case null
    /// boolean.
    case bool(Bool)
    /// smallint.
    case int16(Int16)
    /// integer.
    case int32(Int32)
    /// bigint.
    case int64(Int64)
    /// double precision.
    case double(Double)
    /// text. A NUL in it is refused by the server (22021).
    case text(String)
    /// text, from UTF-8 bytes.
    case utf8([UInt8])
    /// A value in its text form, of the type the statement expects there: `'…'` in SQL.
    ///
    /// Never for text of a client: words such as `infinity` and `now` are values of timestamptz.
    case untyped(String)
    /// bytea.
    case bytes([UInt8])
    /// timestamptz: microseconds since 1970 UTC.
    case timestamp(Int64)
    /// uuid: 16 bytes.
    case uuid([UInt8])
    /// bigint[].
    case int64Array([Int64])
    /// integer[].
    case int32Array([Int32])
    /// uuid[]: the 16 bytes of each, one after the other.
    case uuidArray([UInt8])
    /// text[]; nil is NULL.
    case textArray([String?])
    /// bytea[].
    case bytesArray([[UInt8]])
}

/// Microseconds from 1970 to 2000, where the time of PostgreSQL begins.
package let microsecondsTo2000: Int64 = 946_684_800_000_000

/// The parameters of one call, flat: types, lengths, formats and the bytes of all in one buffer.
struct EncodedParameters {
    private(set) var types: [UInt32] = []
    private(set) var lengths: [Int32] = []
    private(set) var formats: [Int32] = []
    /// Where each begins in `bytes`; -1 for NULL.
    private(set) var starts: [Int] = []
    private(set) var bytes: [UInt8] = []

    /// - Throws: ``PostgresError/misuse(_:)`` for a value that has no form on the wire.
    init(_ values: [PostgresValue]) throws(PostgresError) {
        for value in values { try append(value) }
    }

    private mutating func append(_ value: PostgresValue) throws(PostgresError) {
        let start = bytes.count
        var format: Int32 = 1
        var length: Int?
        switch value {
        case .null: break
        case .bool(let value): bytes.append(value ? 1 : 0)
        case .int16(let value): put(value)
        case .int32(let value): put(value)
        case .int64(let value): put(value)
        case .double(let value): put(Int64(bitPattern: value.bitPattern))
        case .text(let text): bytes.append(contentsOf: text.utf8)
        case .utf8(let text): bytes.append(contentsOf: text)
        case .untyped(let text):
            guard !text.utf8.contains(0) else {
                throw .misuse("cannot send an untyped parameter with a NUL in it")
            }
            format = 0
            bytes.append(contentsOf: text.utf8)
            length = bytes.count - start
            bytes.append(0)
        case .bytes(let value): bytes.append(contentsOf: value)
        case .timestamp(let time):
            let (shifted, overflow) = time.subtractingReportingOverflow(microsecondsTo2000)
            guard !overflow else { throw .misuse("cannot send time \(time) as timestamptz") }
            put(shifted)
        case .uuid(let value):
            guard value.count == 16 else {
                throw .misuse("cannot send \(value.count) bytes as uuid")
            }
            bytes.append(contentsOf: value)
        case .int64Array(let values):
            putArrayHeader(element: 20, count: values.count)
            for value in values {
                put(Int32(8))
                put(value)
            }
        case .int32Array(let values):
            putArrayHeader(element: 23, count: values.count)
            for value in values {
                put(Int32(4))
                put(value)
            }
        case .uuidArray(let flat):
            guard flat.count % 16 == 0 else {
                throw .misuse("cannot send \(flat.count) bytes as uuid[]")
            }
            putArrayHeader(element: 2950, count: flat.count / 16)
            bytes.reserveCapacity(bytes.count + flat.count / 16 * 20)
            for index in stride(from: 0, to: flat.count, by: 16) {
                put(Int32(16))
                bytes.append(contentsOf: flat[index..<index + 16])
            }
        case .textArray(let values):
            putArrayHeader(element: 25, count: values.count, hasNull: values.contains(nil))
            for value in values {
                put(value.map { Int32($0.utf8.count) } ?? -1)
                if let value { bytes.append(contentsOf: value.utf8) }
            }
        case .bytesArray(let values):
            putArrayHeader(element: 17, count: values.count)
            for value in values {
                put(Int32(value.count))
                bytes.append(contentsOf: value)
            }
        }
        let size = length ?? bytes.count - start
        guard size <= Int(Int32.max) else {
            throw .misuse("cannot send a parameter of \(size) bytes")
        }
        types.append(value.type)
        formats.append(format)
        lengths.append(Int32(size))
        starts.append(value == .null ? -1 : start)
    }

    private mutating func put(_ value: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: value.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// The head of a one-dimensional array, as `array_recv` of PostgreSQL reads it.
    private mutating func putArrayHeader(element: Int32, count: Int, hasNull: Bool = false) {
        put(Int32(count == 0 ? 0 : 1))
        put(Int32(hasNull ? 1 : 0))
        put(element)
        guard count > 0 else { return }
        put(Int32(count))
        put(Int32(1))
    }
}

extension PostgresValue {
    /// The object id of the type (`pg_type.oid`); 0 leaves it to the server.
    var type: UInt32 {
        switch self {
        case .null, .untyped: 0
        case .bool: 16
        case .bytes: 17
        case .int64: 20
        case .int16: 21
        case .int32: 23
        case .text, .utf8: 25
        case .double: 701
        case .bytesArray: 1001
        case .int32Array: 1007
        case .textArray: 1009
        case .int64Array: 1016
        case .timestamp: 1184
        case .uuid: 2950
        case .uuidArray: 2951
        }
    }
}
