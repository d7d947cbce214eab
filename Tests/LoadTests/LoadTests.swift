import Event
import Testing

@testable import Load

/// A repeatable source of keys (SplitMix64, Sebastiano Vigna, public domain).
struct KeySource {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    mutating func key() -> Identity { Identity(high: next(), low: next()) }
}

@Suite struct KeyTableTests {
    @Test func agreesWithADictionaryThroughGrowth() {
        var source = KeySource(state: 1)
        var table = KeyTable()
        var reference: [Identity: EventContent] = [:]
        var disagreements = 0
        for round in 0..<50_000 {
            // A narrow range of seeds makes repeats.
            var seeded = KeySource(state: source.next() % 30_000)
            let key = seeded.key()
            let content = EventContent(campaign: UInt64(round), properties: 0)
            if table.insert(key, content) != reference[key] { disagreements += 1 }
            if reference[key] == nil { reference[key] = content }
        }
        #expect(disagreements == 0)
        #expect(table.count == reference.count)
        let zero = Identity(high: 0, low: 0)
        #expect(table.insert(zero, EventContent(campaign: 9, properties: 0)) == nil)
        #expect(table.content(of: zero)?.campaign == 9)
        let absent = table.content(of: Identity(high: 8, low: 1))
        #expect(absent == nil)
    }

    @Test func removeAllForgetsEveryKey() {
        var table = KeyTable()
        let key = Identity(high: 3, low: 4)
        table.insert(key, EventContent(campaign: 1, properties: 2))
        table.removeAll()
        let content = table.content(of: key)
        let count = table.count
        #expect(content == nil && count == 0)
    }
}

@Suite struct FilterTests {
    @Test func neverForgetsAndSeldomInvents() throws {
        var source = KeySource(state: 2)
        var stack = FilterStack()
        // More than one word of 64 segments, and of two sizes.
        var entries: [(segment: Int, key: Identity)] = []
        for segment in 1...70 {
            var filter = SegmentFilter(rows: segment == 7 ? 4_000 : 1_000)
            for _ in 0..<600 {
                let key = source.key()
                filter.insert(.key(key))
                entries.append((segment, key))
            }
            stack.add(try #require(SegmentFilter(bytes: filter.bytes)), segment: segment)
        }
        let (count, all) = (stack.count, stack.all.sorted())
        #expect(count == 70 && all == Array(1...70))
        var missing = 0
        for entry in entries
        where !stack.segments(holding: .key(entry.key)).contains(entry.segment) { missing += 1 }
        #expect(missing == 0)
        var invented = 0
        for _ in 0..<10_000 { invented += stack.segments(holding: .key(source.key())).count }
        #expect(invented < 300, "false positives in 700 000: \(invented)")
    }

    @Test func theTransposeOfEachBitIsItsMirror() {
        var wrong = 0
        for row in 0..<8 {
            for column in 0..<8
            where transposed(1 << UInt64(row * 8 + column)) != 1 << UInt64(column * 8 + row) {
                wrong += 1
            }
        }
        #expect(wrong == 0)
        #expect(transposed(.max) == .max)
        let some: UInt64 = 0x0123_4567_89AB_CDEF
        #expect(transposed(transposed(some)) == some)
    }

    /// Filters added in groups answer as if each had been added by itself.
    @Test(arguments: [[1], [8], [3, 8, 8, 8, 8], [70], [5, 1, 64, 9]], [0, 70])
    func groupsOfFiltersAreSlicedAsSingleOnes(groups: [Int], ahead: Int) {
        var source = KeySource(state: 3)
        var single = FilterStack()
        var grouped = FilterStack()
        var keys: [Identity] = []
        var number = 0
        for group in groups {
            var filters: [(segment: Int, filter: SegmentFilter)] = []
            for _ in 0..<group {
                number += 1
                var filter = SegmentFilter(rows: number % 5 == 0 ? 64 : 32)
                for _ in 0..<10 {
                    keys.append(source.key())
                    filter.insert(.key(keys[keys.count - 1]))
                }
                filters.append((number, filter))
                single.add(filter, segment: number)
            }
            grouped.add(filters, ahead: ahead)
        }
        let counts = [single.count, grouped.count]
        #expect(counts == [number, number])
        var wrong = 0
        for key in keys + (0..<1000).map({ _ in source.key() })
        where Set(single.segments(holding: .key(key)))
            != Set(grouped.segments(holding: .key(key)))
        {
            wrong += 1
        }
        #expect(wrong == 0)
    }

    @Test func entriesOfDifferentKindsAreDifferent() {
        var stack = FilterStack()
        var filter = SegmentFilter(rows: 1_000)
        filter.insert(.message(42))
        stack.add(filter, segment: 1)
        let unit = Unit(message: 42, device: 42)
        let holds = stack.mayHold(.message(42))
        #expect(holds)
        let others: [FilterEntry] = [
            .several(42), .sender(42), .orphan(42), .loose(42), .unit(unit), .named(unit),
            .key(Identity(high: 42, low: 42)),
        ]
        let wrong = others.filter { stack.mayHold($0) }
        #expect(wrong.isEmpty)
    }

    @Test func bytesThatAreNoFilterAreRefused() {
        #expect(SegmentFilter(bytes: []) == nil)
        #expect(SegmentFilter(bytes: Array(repeating: 0, count: 100)) == nil)
    }
}

@Suite struct RequestsTests {
    /// Small numbers, so that ranges repeat and lie in each other.
    @Test(arguments: 0..<20 as Range<UInt64>) func eachUnitIsAskedForOnce(seed: UInt64) {
        var source = KeySource(state: seed)
        func small(_ bound: UInt64) -> UInt64 { source.next() % bound }
        var requests = Requests()
        var expected: Set<[UInt64]> = []
        for _ in 0..<small(60) {
            let (segment, message) = (small(3), small(4) + 1)
            if small(4) == 0 {
                requests.insert(.all(of: message), in: Int(segment))
                for device: UInt64 in 0..<6 { expected.insert([segment, message, device]) }
            } else {
                let unit = Unit(message: message, device: small(6))
                requests.insert(.only(unit), in: Int(segment))
                expected.insert([segment, message, unit.device])
            }
        }
        requests.settle()
        var asked: [[UInt64]] = []
        var segments: [Int] = []
        requests.forEachSegment { segment, list in
            segments.append(segment)
            for request in list {
                let (first, last) = (request.range.first, request.range.last)
                for device in first.device...min(last.device, 5) {
                    asked.append([UInt64(segment), first.message, device])
                }
            }
        }
        #expect(asked.count == expected.count && Set(asked) == expected)
        #expect(segments == Set(segments).sorted())
        #expect(asked.elementsEqual(asked.sorted { $0.lexicographicallyPrecedes($1) }))
    }

    @Test func aMessageIsWantedOnlyIfItIsFound() {
        var requests = Requests()
        requests.insert(.all(of: 7), in: 1)
        requests.insert(.only(Unit(message: 9, device: 3)), in: 2)
        var asked = AskedMessages()
        asked.insert(requests)
        asked.setWanted(7)
        asked.setWanted(8)
        let early = asked.isWanted(7)
        asked.setFound(7)
        asked.setFound(8)
        asked.setFound(9)
        asked.setFound(0)
        let wanted = [7, 8, 9, 0].map { asked.isWanted($0) }
        let found = [7, 8, 9, 0].map { asked.isFound($0) }
        #expect(!early && wanted == [true, false, false, false])
        #expect(found == [true, false, true, false])
    }
}

@Suite struct EventContentTests {
    @Test(arguments: 0..<40) func everyByteOfACampaignCounts(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + 11) }
        var hashes: Set<UInt64> = [contentHash(bytes.rawSpan)]
        for index in 0..<count {
            var other = bytes
            other[index] ^= 1
            hashes.insert(contentHash(other.rawSpan))
        }
        for more in [0, 11] as [UInt8] { hashes.insert(contentHash((bytes + [more]).rawSpan)) }
        #expect(hashes.count == count + 3 && !hashes.contains(0))
        // Wherever the bytes lie.
        let moved = [7] + bytes
        #expect(contentHash(moved.rawSpan.extracting(1..<count + 1)) == contentHash(bytes.rawSpan))
    }

    @Test(arguments: [
        // stored campaign, properties; incoming campaign, properties; conflict?
        (1, 1, 1, 1, false), (1, 0, 2, 0, true), (0, 0, 2, 0, false), (1, 0, 0, 0, false),
        (1, 5, 1, 6, true), (1, 5, 1, 0, false), (1, 0, 1, 6, false), (1, 5, 2, 5, true),
    ])
    func onlyAFieldThatBothCarryMakesAConflict(
        _ row: (UInt64, UInt64, UInt64, UInt64, Bool)
    ) {
        let stored = EventContent(campaign: row.0, properties: row.1)
        let verdict = stored.verdict(for: EventContent(campaign: row.2, properties: row.3))
        #expect((verdict == .conflict) == row.4)
    }
}
