import Event

/// A range of units, both ends included, to be read from one segment.
struct UnitRange: Hashable, BitwiseCopyable {
    let first: Unit
    let last: Unit

    static func only(_ unit: Unit) -> UnitRange { UnitRange(first: unit, last: unit) }

    /// All units of a message.
    static func all(of message: UInt64) -> UnitRange {
        UnitRange(
            first: Unit(message: message, device: 0), last: Unit(message: message, device: .max))
    }
}

/// Ranges of units to be read from closed segments: of each a unit, or all units of a message.
///
/// A flat list, sorted before it is read: thousands of ranges come with a batch, and in the order of
/// the index a page of it is visited once.
struct Requests {
    struct Request: BitwiseCopyable {
        let segment: Int
        let range: UnitRange

        /// By segment and then as in the index; a whole message comes before its units.
        static func isBefore(_ left: Request, _ right: Request) -> Bool {
            if left.segment != right.segment { return left.segment < right.segment }
            let (first, other) = (left.range.first, right.range.first)
            if first.message != other.message { return first.message < other.message }
            if first.device != other.device { return first.device < other.device }
            return left.range.last.device > right.range.last.device
        }
    }

    private(set) var list: [Request] = []
    private var isSettled = true

    var isEmpty: Bool { list.isEmpty }

    mutating func insert(_ range: UnitRange, in segment: Int) {
        list.append(Request(segment: segment, range: range))
        isSettled = false
    }

    mutating func insert(_ requests: Requests) {
        list += requests.list
        isSettled = isSettled && requests.isEmpty
    }

    /// Sorts the list and drops from it what is asked already, by itself or with its message.
    mutating func settle() {
        guard !isSettled else { return }
        list.sort(by: Request.isBefore)
        var kept = 0
        for request in list {
            if kept > 0 {
                let last = list[kept - 1]
                if last.segment == request.segment,
                    last.range.first.message == request.range.first.message,
                    last.range.last.device >= request.range.last.device
                {
                    continue
                }
            }
            list[kept] = request
            kept += 1
        }
        list.removeSubrange(kept...)
        isSettled = true
    }

    /// Keeps what of the list is wanted.
    mutating func filter(_ isWanted: (UnitRange) -> Bool) { list.removeAll { !isWanted($0.range) } }

    /// Calls `body` with each segment and its ranges; call ``settle()`` before.
    func forEachSegment(_ body: (Int, ArraySlice<Request>) -> Void) {
        precondition(isSettled)
        var rest = list[...]
        while let segment = rest.first?.segment {
            let end = rest.firstIndex { $0.segment != segment } ?? rest.endIndex
            body(segment, rest[..<end])
            rest = rest[end...]
        }
    }
}

/// The messages that older segments are asked for, and what is known of them.
struct AskedMessages: ~Copyable {
    private static let found: UInt8 = 1
    private static let wanted: UInt8 = 2

    private var marks = FlatTable<HashKey, UInt8>()

    mutating func insert(_ requests: Requests) {
        for request in requests.list {
            _ = marks.slot(adding: HashKey(hash: request.range.first.message), 0)
        }
    }

    private mutating func add(_ mark: UInt8, to message: UInt64) {
        guard message != 0, let slot = marks.slot(of: HashKey(hash: message)) else { return }
        marks[slot] |= mark
    }

    private func has(_ mark: UInt8, _ message: UInt64) -> Bool {
        guard message != 0, let slot = marks.slot(of: HashKey(hash: message)) else { return false }
        return marks[slot] & mark == mark
    }

    /// Notes that a segment holds events of a message: a filter may have made it up.
    mutating func setFound(_ message: UInt64) { add(Self.found, to: message) }
    func isFound(_ message: UInt64) -> Bool { has(Self.found, message) }

    /// Notes that the events of a message are needed, not only their keys.
    mutating func setWanted(_ message: UInt64) { add(Self.wanted, to: message) }
    func isWanted(_ message: UInt64) -> Bool { has(Self.found | Self.wanted, message) }
}
