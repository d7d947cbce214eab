import Event
import JSONLines

/// Numbers for the texts that many units share: app and campaign, and profiles.
///
/// A profile is the six dimensions of devices and, behind them where an event has any, four details: action,
/// category, push group and topic. They mean something only beside the segment they were made for.
struct Labels: ~Copyable {
    private var campaigns = Interner()
    private var profiles = Interner()
    /// What ``merge(_:_:)`` has found out.
    private var merges: [UInt64: ProfileMerge] = [:]

    init() {
        // The number of ``ProfileLabel/none`` is nobody else's.
        _ = label([[UInt8]?](repeating: nil, count: 10))
    }

    /// The label of the app and campaign of an event; ``CampaignLabel/isNone(_:)`` if it names none.
    mutating func campaign(of event: UnitEvent, _ row: RawSpan) -> UInt32 {
        let number = campaigns.number(
            of: row.extracting(event.app), row.extracting(event.campaign))
        return CampaignLabel.make(number, isNone: !event.hasCampaign)
    }

    /// The label of the profile of an event.
    mutating func profile(of event: UnitEvent, _ row: RawSpan) -> UInt32 {
        let (device, place) = (row.extracting(event.device), row.extracting(event.place))
        guard event.hasDetail else {
            guard event.pattern != 0 else { return ProfileLabel.none }
            return ProfileLabel.make(profiles.number(of: device, place), pattern: event.pattern)
        }
        var rest = unsafe place.withUnsafeBytes { unsafe [UInt8]($0) }
        event.appendDetail(row, to: &rest)
        if rest.suffix(Self.noDetail.count) == Self.noDetail[...] {
            rest.removeLast(Self.noDetail.count)
        }
        return ProfileLabel.make(
            profiles.number(of: device, rest.rawSpan), pattern: event.pattern)
    }

    private static let null = [UInt8](repeating: 0xFF, count: 4)
    private static let noDetail = [UInt8](repeating: 0xFF, count: 16)

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
        profile(fields, pattern: ProfileLabel.pattern(other))
    }

    private mutating func profile(_ fields: RawSpan, pattern: UInt8) -> UInt32 {
        let end = fields.end(ofFields: 3)
        let number = profiles.number(
            of: fields.extracting(0..<end), fields.extracting(end..<fields.byteCount))
        return ProfileLabel.make(number, pattern: pattern)
    }

    /// How many numbers of campaigns and profiles there are.
    var counts: (campaigns: Int, profiles: Int) { (campaigns.count, profiles.count) }

    /// The fields app and campaign_id of a label, as COPY takes them.
    borrowing func campaignFields(_ label: UInt32) -> [UInt8] {
        campaigns.content(CampaignLabel.number(label))
    }

    /// The fields of a profile, as COPY takes them: six dimensions, and four details if it has any.
    borrowing func profileFields(_ label: UInt32) -> [UInt8] {
        profiles.content(ProfileLabel.number(label))
    }

    /// Appends the fields app and campaign_id of a label, as COPY takes them.
    borrowing func appendFields(ofCampaign label: UInt32, to row: inout ByteBuffer) {
        row.append(campaigns.bytes(CampaignLabel.number(label)))
    }

    /// Appends the fields of a profile, as COPY takes them: six dimensions and four details.
    borrowing func appendFields(ofProfile label: UInt32, to row: inout ByteBuffer) {
        let fields = profiles.bytes(ProfileLabel.number(label))
        row.append(fields)
        if fields.end(ofFields: 7) == fields.end(ofFields: 6) {
            row.append(Self.noDetail.rawSpan)
        }
    }

    /// What two profiles, neither of which is none, are together.
    mutating func merge(_ ours: UInt32, _ theirs: UInt32) -> ProfileMerge {
        let pair = UInt64(ours) << 32 | UInt64(theirs)
        if let known = merges[pair] { return known }
        let (mine, other) = (Fields(profileFields(ours)), Fields(profileFields(theirs)))
        let (details, detailsDisagree) = Self.union(mine, other, 6..<10)
        let (dimensions, disagree) = Self.union(mine, other, 0..<6)
        let result = ProfileMerge(
            ours: label((0..<6).map { mine[$0] } + details),
            theirs: label((0..<6).map { other[$0] } + details), union: label(dimensions + details),
            isOfSameDimensions: (0..<6).allSatisfy { mine[$0] == other[$0] },
            dimensionsDisagree: disagree, detailsDisagree: detailsDisagree)
        merges[pair] = result
        return result
    }

    private static func union(
        _ ours: Fields, _ theirs: Fields, _ range: Range<Int>
    ) -> (values: [[UInt8]?], disagree: Bool) {
        let disagree = range.contains {
            if let mine = ours[$0], let other = theirs[$0] { mine != other } else { false }
        }
        return (range.map { ours[$0] ?? theirs[$0] }, disagree)
    }

    private mutating func label(_ values: [[UInt8]?]) -> UInt32 {
        var bytes: [UInt8] = []
        var pattern: UInt8 = 0
        let hasDetail = values[6...].contains { $0 != nil }
        for (index, value) in values.enumerated() where index < 6 || hasDetail {
            if index < 6, value != nil { pattern |= 1 << UInt8(index) }
            bytes += value.map { UInt32($0.count).bigEndianBytes + $0 } ?? Self.null
        }
        return profile(bytes.rawSpan, pattern: pattern)
    }
}

/// What two profiles are together.
struct ProfileMerge: BitwiseCopyable {
    /// The dimensions of the first, of the second, and of both with the first before the second; each with
    /// the details of both.
    let ours, theirs, union: UInt32
    let isOfSameDimensions: Bool
    /// Whether both name one and differ in it.
    let dimensionsDisagree: Bool
    let detailsDisagree: Bool
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

/// The label of a profile, of which the lowest six bits say which dimensions have a value.
enum ProfileLabel {
    /// Nothing has a value.
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

    @_lifetime(borrow self)
    func bytes(_ number: Int) -> RawSpan {
        bytes.rawSpan.extracting(ends[number]..<ends[number + 1])
    }
}
