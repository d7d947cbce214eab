/// The headers of one request, copied from the connection so that any thread may read them.
package struct HeaderFields: Sendable {
    private struct Entry {
        var name: Range<Int>
        var value: Range<Int>
    }
    private var bytes: [UInt8] = []
    private var entries: [Entry] = []

    /// No headers.
    package init() {}

    /// Adds one header.
    package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        let start = bytes.count
        unsafe bytes.append(contentsOf: name)
        let middle = bytes.count
        unsafe bytes.append(contentsOf: value)
        entries.append(Entry(name: start..<middle, value: middle..<bytes.count))
    }

    /// Adds one header given as text.
    package mutating func append(name: String, value: String) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let middle = bytes.count
        bytes.append(contentsOf: value.utf8)
        entries.append(Entry(name: start..<middle, value: middle..<bytes.count))
    }

    /// The number of headers.
    package var count: Int { entries.count }

    /// How often a header is there, whatever the case of its name.
    package func count(of name: StaticString) -> Int {
        entries.reduce(0) { $0 + (matches($1, name) ? 1 : 0) }
    }

    /// The value of the first header of that name, without spaces around it.
    ///
    /// - Returns: The bytes as sent, or nil when there is none.
    package func first(_ name: StaticString) -> ArraySlice<UInt8>? {
        for entry in entries where matches(entry, name) { return trimmed(bytes[entry.value]) }
        return nil
    }

    /// The names and values, in the order sent.
    var all: some Sequence<(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)> {
        entries.lazy.map { (bytes[$0.name], bytes[$0.value]) }
    }

    private func matches(_ entry: Entry, _ name: StaticString) -> Bool {
        guard entry.name.count == name.utf8CodeUnitCount else { return false }
        var index = entry.name.lowerBound
        for offset in 0..<name.utf8CodeUnitCount {
            // SAFETY: offset is below the static string's count.
            let wanted = unsafe name.utf8Start[offset]
            if lowercased(bytes[index]) != lowercased(wanted) { return false }
            index += 1
        }
        return true
    }

    private func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var value = value
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        return value
    }
}

/// An ASCII letter in lower case, any other byte as it is.
func lowercased(_ byte: UInt8) -> UInt8 {
    (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
}

/// Whether `bytes` are the ASCII text of `text`, letters in any case.
package func equalsIgnoringCase(_ bytes: some Collection<UInt8>, _ text: StaticString) -> Bool {
    guard bytes.count == text.utf8CodeUnitCount else { return false }
    var offset = 0
    for byte in bytes {
        // SAFETY: offset is below the static string's count, which is the count of `bytes`.
        if lowercased(byte) != lowercased(unsafe text.utf8Start[offset]) { return false }
        offset += 1
    }
    return true
}
