import Event
import JSONLines

/// Numbers for the texts that many units share: app and campaign, and the six dimensions.
///
/// They mean something only beside the segment they were made for.
struct Labels: ~Copyable {
    private var campaigns = Interner()
    private var profiles = Interner()
    /// What ``union(_:_:)`` has found out.
    private var unions: [UInt64: (profile: UInt32, disagrees: Bool)] = [:]

    /// The label of the app and campaign of an event; ``CampaignLabel/isNone(_:)`` if it names none.
    mutating func campaign(of event: UnitEvent, _ row: RawSpan) -> UInt32 {
        let number = campaigns.number(
            of: row.extracting(event.app), row.extracting(event.campaign))
        return CampaignLabel.make(number, isNone: !event.hasCampaign)
    }

    /// The label of the dimensions of an event.
    mutating func profile(of event: UnitEvent, _ row: RawSpan) -> UInt32 {
        guard event.pattern != 0 else { return ProfileLabel.none }
        let number = profiles.number(of: row.extracting(event.device), row.extracting(event.place))
        return ProfileLabel.make(number, pattern: event.pattern)
    }

    /// The label of the fields of another daemon's label.
    ///
    /// Split where rows are: a content has one number only if it always comes in the same two runs.
    mutating func campaign(_ fields: RawSpan, as other: UInt32) -> UInt32 {
        let end = fields.end(ofFields: 1)
        let number = campaigns.number(
            of: fields.extracting(0..<end), fields.extracting(end..<fields.byteCount))
        return CampaignLabel.make(number, isNone: CampaignLabel.isNone(other))
    }
    mutating func profile(_ fields: RawSpan, as other: UInt32) -> UInt32 {
        guard other != ProfileLabel.none else { return other }
        let end = fields.end(ofFields: 3)
        let number = profiles.number(
            of: fields.extracting(0..<end), fields.extracting(end..<fields.byteCount))
        return ProfileLabel.make(number, pattern: ProfileLabel.pattern(other))
    }

    /// How many numbers of campaigns and profiles there are.
    var counts: (campaigns: Int, profiles: Int) { (campaigns.count, profiles.count) }

    /// The fields app and campaign_id of a label, as COPY takes them.
    borrowing func campaignFields(_ label: UInt32) -> [UInt8] {
        campaigns.content(CampaignLabel.number(label))
    }

    /// The fields of the six dimensions of a label, as COPY takes them.
    borrowing func profileFields(_ label: UInt32) -> [UInt8] {
        label == ProfileLabel.none
            ? [UInt8](repeating: 0xFF, count: 24) : profiles.content(ProfileLabel.number(label))
    }

    /// The profile with the values of both, and whether the two disagree in one.
    mutating func union(_ left: UInt32, _ right: UInt32) -> (profile: UInt32, disagrees: Bool) {
        let pair = UInt64(left) << 32 | UInt64(right)
        if let known = unions[pair] { return known }
        let (ours, theirs) = (Fields(profileFields(left)), Fields(profileFields(right)))
        var bytes: [UInt8] = []
        var half = 0
        var pattern: UInt8 = 0
        var disagrees = false
        for index in 0..<6 {
            if index == 3 { half = bytes.count }
            let (mine, other) = (ours[index], theirs[index])
            if let mine, let other, mine != other { disagrees = true }
            guard let value = mine ?? other else {
                bytes += [0xFF, 0xFF, 0xFF, 0xFF]
                continue
            }
            pattern |= 1 << UInt8(index)
            bytes += UInt32(value.count).bigEndianBytes + value
        }
        let span = bytes.rawSpan
        let number = profiles.number(
            of: span.extracting(0..<half), span.extracting(half..<bytes.count))
        let result = (ProfileLabel.make(number, pattern: pattern), disagrees)
        unions[pair] = result
        return result
    }
}

/// The label of an app and a campaign.
enum CampaignLabel {
    /// The highest bit says that there is no campaign, only an app.
    private static let none: UInt32 = 1 << 31

    static func make(_ number: Int, isNone: Bool) -> UInt32 {
        UInt32(number) | (isNone ? none : 0)
    }
    static func isNone(_ label: UInt32) -> Bool { label & none != 0 }
    static func number(_ label: UInt32) -> Int { Int(label & ~none) }
}

/// The label of the six dimensions, of which the lowest six bits say which have a value.
enum ProfileLabel {
    /// No dimension has a value.
    static let none: UInt32 = 0

    static func make(_ number: Int, pattern: UInt8) -> UInt32 {
        UInt32(number) << 6 | UInt32(pattern)
    }
    static func pattern(_ label: UInt32) -> UInt8 { UInt8(label & 63) }
    static func number(_ label: UInt32) -> Int { Int(label >> 6) }
}

/// The fields of a COPY row: Int32 length, -1 for a null, and bytes.
struct Fields {
    private var values: [[UInt8]?] = []

    init(_ bytes: [UInt8]) {
        var index = 0
        while index + 4 <= bytes.count {
            let length = bytes[index..<index + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            index += 4
            guard length != .max else {
                values.append(nil)
                continue
            }
            let end = min(index + Int(length), bytes.count)
            values.append(Array(bytes[index..<end]))
            index = end
        }
    }

    subscript(index: Int) -> [UInt8]? { index < values.count ? values[index] : nil }

    func text(_ index: Int) -> String? { self[index].map { String(decoding: $0, as: UTF8.self) } }
}

extension RawSpan {
    /// Where the first `count` fields of a COPY row end; the end of all if there are fewer.
    func end(ofFields count: Int) -> Int {
        var index = 0
        for _ in 0..<count {
            guard byteCount - index >= 4 else { return byteCount }
            let length = Int(Int32(bitPattern: halfWord(at: index).byteSwapped))
            index = min(index + 4 + max(0, length), byteCount)
        }
        return index
    }
}

/// Gives equal contents one number, from 0; a content is two runs of bytes.
struct Interner: ~Copyable {
    private var numbers = FlatTable<HashKey, UInt32>()
    private var bytes: [UInt8] = []
    private var ends: [Int] = [0]
    /// Most events have the content of the one before.
    private var last: Int?

    mutating func number(of first: RawSpan, _ second: RawSpan) -> Int {
        if let last, isContent(last, first, second) { return last }
        var hash = contentHash(first) ^ contentHash(second) &* 0x9E37_79B9_7F4A_7C15
        while true {
            if hash == 0 { hash = 1 }
            let next = ends.count - 1
            let (slot, isNew) = numbers.slot(adding: HashKey(hash: hash), UInt32(next))
            if isNew {
                unsafe first.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
                unsafe second.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
                ends.append(bytes.count)
                last = next
                return next
            }
            let number = Int(numbers[slot])
            if isContent(number, first, second) {
                last = number
                return number
            }
            // Another content with this hash: it is looked for at the next one.
            hash &+= 0x9E37_79B9_7F4A_7C15
        }
    }

    /// How many contents have a number.
    var count: Int { ends.count - 1 }

    private func isContent(_ number: Int, _ first: RawSpan, _ second: RawSpan) -> Bool {
        let (start, end) = (ends[number], ends[number + 1])
        guard end - start == first.byteCount + second.byteCount else { return false }
        let content = bytes.rawSpan.extracting(start..<end)
        return content.extracting(0..<first.byteCount).isEqual(to: first)
            && content.extracting(first.byteCount..<content.byteCount).isEqual(to: second)
    }

    func content(_ number: Int) -> [UInt8] { Array(bytes[ends[number]..<ends[number + 1]]) }
}
