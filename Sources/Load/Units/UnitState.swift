import Event

/// The merge of a unit's events: what is needed to count the unit, 48 bytes.
///
/// It is free of order: the same events give the same state, whatever way they came, as long as it
/// is not ``isUnclear``. Which makes it possible to fold the events of an old unit again and get what
/// was counted of it.
struct UnitState: BitwiseCopyable {
    /// Time and identity of the event that the dimensions of the profile are of.
    private var profileTime: Int64 = .max
    private var profileKey: UInt64 = .max
    private var late = LateEvents()
    /// The quarter hours since 1970 of the earliest event and of the earliest `sent`.
    private(set) var first: Int32 = .max
    private(set) var sent: Int32 = .max
    /// See ``UnitEvent/states``; the bits from 24 on are marks.
    private var bits: UInt32 = 0
    /// Labels of ``Labels``.
    private(set) var campaign: UInt32
    private(set) var profile: UInt32 = ProfileLabel.none
    /// How many there are; the most that fits stands for more.
    private(set) var events: UInt16 = 0
    private var clicked: UInt8 = 0
    private var opening: UInt8 = 0

    /// Clicks of one type, from which on a unit is unclear: more do not fit.
    static let clicksMax: UInt8 = 255

    private enum Mark {
        static let mixed: UInt32 = 1 << 24
        static let disagrees: UInt32 = 1 << 25
        static let twoCampaigns: UInt32 = 1 << 26
        static let special: UInt32 = 1 << 27
        static let listed: UInt32 = 1 << 28
        static let heavy: UInt32 = 1 << 29
        static let unclear: UInt32 = 1 << 30
        static let named: UInt32 = 1 << 31
    }

    /// Of no event yet.
    init(campaign: UInt32) { self.campaign = campaign }

    private func has(_ mark: UInt32) -> Bool { bits & mark != 0 }

    var states: UInt32 { bits & 0xFF_FFFF }

    /// Whether the merge does not say what the rules of a report would: two campaigns; dimensions that
    /// disagree and are of events that name different ones; details that disagree; or more clicks or late
    /// events than fit.
    var isUnclear: Bool {
        bits & (Mark.twoCampaigns | Mark.unclear) != 0 || has(Mark.mixed) && has(Mark.disagrees)
    }

    /// Whether all that its events say of a campaign is ``campaign``, and events say so that count with no
    /// other unit: one without a device, or of an inbox, may. False where some events are not known.
    var hasCertainCampaign: Bool {
        bits & (Mark.twoCampaigns | Mark.heavy) == 0
            && (has(Mark.named) || CampaignLabel.isNone(campaign))
    }

    /// Whether reports compute the unit from its events.
    var isSpecial: Bool {
        get { has(Mark.special) }
        set { if newValue { bits |= Mark.special } else { bits &= ~Mark.special } }
    }

    /// Whether the database has been told that the open segment holds events of this special unit.
    var isListed: Bool {
        get { has(Mark.listed) }
        set { if newValue { bits |= Mark.listed } else { bits &= ~Mark.listed } }
    }

    /// Whether closed segments hold events of it whose keys are not known here, so that they have to be
    /// asked for single ones.
    var isHeavy: Bool {
        get { has(Mark.heavy) }
        set { if newValue { bits |= Mark.heavy } else { bits &= ~Mark.heavy } }
    }

    /// Calls with each cell that the unit is in: it is counted in the first one, and its clicks and late
    /// events in that of their type.
    func forEachCell(_ body: (CellKey, CellSums) -> Void) {
        func put(_ type: EventType, isFirst: Bool) {
            let clicks =
                type == .clicked ? clicked : type == .action ? opening : 0
            body(
                CellKey(
                    campaign: campaign, profile: profile, quarter: sent != .max ? sent : first,
                    states: states | UInt32(type.rawValue) << CellKey.typeShift),
                CellSums(units: isFirst ? 1 : 0, clicks: Int32(clicks), late: late[type]))
        }
        let main: EventType =
            clicked > 0 ? .clicked : opening > 0 ? .action : late.lowestType ?? .custom
        put(main, isFirst: true)
        guard !late.isEmpty || clicked > 0 && opening > 0 else { return }
        for type in EventType.allCases
        where type != main && (late[type] > 0 || type == .action && opening > 0) {
            put(type, isFirst: false)
        }
    }

    /// Adds an event.
    mutating func add(
        _ event: UnitEvent, campaign label: UInt32, profile other: UInt32,
        _ labels: inout Labels
    ) {
        let quarter = Self.quarter(event.time)
        first = min(first, quarter)
        if event.type == .sent { sent = min(sent, quarter) }
        bits |= event.states
        if events < .max { events &+= 1 }
        if event.isClick {
            if event.type == .clicked {
                clicked &+= clicked < Self.clicksMax ? 1 : 0
            } else {
                opening &+= opening < Self.clicksMax ? 1 : 0
            }
            if max(clicked, opening) == Self.clicksMax { bits |= Mark.unclear }
        }
        if event.isLate, !late.add(event.type) { bits |= Mark.unclear }
        if !CampaignLabel.isNone(label) {
            if event.unit.device != 0, !event.type.isInboxStatus { bits |= Mark.named }
            if CampaignLabel.isNone(campaign) {
                campaign = label
            } else if label != campaign {
                bits |= Mark.twoCampaigns
            }
        }
        if other != ProfileLabel.none { add(profile: other, of: event, &labels) }
    }

    /// While all events name the same dimensions, those of the earliest count; else they are united, as
    /// details always are.
    private mutating func add(
        profile other: UInt32, of event: UnitEvent, _ labels: inout Labels
    ) {
        let (pattern, theirs) = (ProfileLabel.pattern(profile), ProfileLabel.pattern(other))
        let isEarlier =
            theirs != 0
            && (event.time != profileTime
                ? event.time < profileTime : event.key.high < profileKey)
        if profile == ProfileLabel.none {
            profile = other
        } else if profile != other {
            let merge = labels.merge(profile, other)
            if merge.detailsDisagree { bits |= Mark.unclear }
            if theirs == 0 || merge.isOfSameDimensions {
                profile = merge.ours
            } else if pattern == 0 {
                profile = merge.theirs
            } else if !has(Mark.mixed), pattern == theirs {
                bits |= Mark.disagrees
                profile = isEarlier ? merge.theirs : merge.ours
            } else {
                bits |= Mark.mixed
                profile = merge.union
                if merge.dimensionsDisagree { bits |= Mark.disagrees }
            }
        }
        if isEarlier {
            profileTime = event.time
            profileKey = event.key.high
        }
    }

    /// The quarter hour of a time, rounded down.
    static func quarter(_ microseconds: Int64) -> Int32 {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 900_000_000)
        return Int32(truncatingIfNeeded: remainder < 0 ? quotient - 1 : quotient)
    }
}

/// How many events of each type came late, and how many of all: three bits a type, and four.
private struct LateEvents: BitwiseCopyable {
    /// More make a unit unclear: then those of one type might not fit.
    static let most: UInt64 = 7
    private var bits: UInt64 = 0

    var isEmpty: Bool { bits == 0 }

    /// - Returns: Whether there is room for it.
    mutating func add(_ type: EventType) -> Bool {
        guard bits >> 60 < Self.most else { return false }
        bits &+= 1 << 60 | 1 << UInt64(type.rawValue * 3)
        return true
    }

    subscript(type: EventType) -> Int32 { Int32(bits >> UInt64(type.rawValue * 3) & 7) }

    var lowestType: EventType? {
        isEmpty ? nil : EventType(rawValue: Int16(bits.trailingZeroBitCount / 3))
    }
}

/// Units that are counted together.
struct CellKey: FlatKey {
    let campaign: UInt32
    let profile: UInt32
    let quarter: Int32
    /// Never 0: each event has a type. From bit 26 on the type that the clicks and late events are of.
    let states: UInt32

    static let typeShift: UInt32 = 26

    /// ``states`` without the type.
    var plainStates: UInt32 { states & (1 << Self.typeShift - 1) }

    var spread: UInt64 {
        var hash = UInt64(campaign) << 32 | UInt64(profile)
        hash = hash &* 0x9E37_79B9_7F4A_7C15
        hash ^= UInt64(UInt32(bitPattern: quarter)) << 32 | UInt64(states)
        hash = (hash ^ hash >> 32) &* 0xD6E8_FEB8_6659_FD93
        return hash ^ hash >> 32
    }
}

/// How many units, and how many clicks and late events of theirs.
struct CellSums: BitwiseCopyable {
    var units: Int32 = 0
    var clicks: Int32 = 0
    var late: Int32 = 0

    var isZero: Bool { units == 0 && clicks == 0 && late == 0 }
}
