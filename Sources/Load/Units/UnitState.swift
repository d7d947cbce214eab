import Event

/// The merge of a unit's events: what is needed to count the unit, 48 bytes.
///
/// It is free of order: the same events give the same state, whatever way they came, as long as it
/// is not ``isUnclear``. Which makes it possible to fold the events of an old unit again and get what
/// was counted of it.
struct UnitState: BitwiseCopyable {
    /// The quarter hours since 1970 of the earliest event and of the earliest `sent`.
    private(set) var first: Int32 = .max
    private(set) var sent: Int32 = .max
    /// See ``UnitEvent/states``; the bits from 24 on are marks.
    private var bits: UInt32 = 0
    private(set) var events: UInt32 = 0
    private(set) var clicks: UInt32 = 0
    private(set) var late: UInt32 = 0
    /// Labels of ``Labels``.
    private(set) var campaign: UInt32
    private(set) var profile: UInt32 = ProfileLabel.none
    /// Time and identity of the event that the profile is of.
    private var profileTime: Int64 = .max
    private var profileKey: UInt64 = .max

    private enum Mark {
        static let mixed: UInt32 = 1 << 24
        static let disagrees: UInt32 = 1 << 25
        static let twoCampaigns: UInt32 = 1 << 26
        static let special: UInt32 = 1 << 27
        static let listed: UInt32 = 1 << 28
        static let heavy: UInt32 = 1 << 29
    }

    /// Of no event yet.
    init(campaign: UInt32) { self.campaign = campaign }

    private func has(_ mark: UInt32) -> Bool { bits & mark != 0 }

    var states: UInt32 { bits & 0xFF_FFFF }

    /// Whether the merge does not say what the rules of a report would: two campaigns, or dimensions
    /// that disagree and are of events that name different ones.
    var isUnclear: Bool { has(Mark.twoCampaigns) || has(Mark.mixed) && has(Mark.disagrees) }

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

    /// What it is counted under.
    var cell: CellKey {
        CellKey(
            campaign: campaign, profile: profile, quarter: sent != .max ? sent : first,
            states: states)
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
        events &+= 1
        if event.isClick { clicks &+= 1 }
        if event.isLate { late &+= 1 }
        if label != campaign, !CampaignLabel.isNone(label) {
            if CampaignLabel.isNone(campaign) {
                campaign = label
            } else {
                bits |= Mark.twoCampaigns
            }
        }
        if other != ProfileLabel.none { add(profile: other, of: event, &labels) }
    }

    /// While all events name the same dimensions, those of the earliest count; else they are united.
    private mutating func add(
        profile other: UInt32, of event: UnitEvent, _ labels: inout Labels
    ) {
        let isEarlier =
            event.time != profileTime ? event.time < profileTime : event.key.high < profileKey
        if profile == ProfileLabel.none || profile == other {
            profile = other
        } else if !has(Mark.mixed),
            ProfileLabel.pattern(profile) == ProfileLabel.pattern(other)
        {
            bits |= Mark.disagrees
            if isEarlier { profile = other }
        } else {
            bits |= Mark.mixed
            let union = labels.union(profile, other)
            profile = union.profile
            if union.disagrees { bits |= Mark.disagrees }
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

/// Units that are counted together.
struct CellKey: FlatKey {
    let campaign: UInt32
    let profile: UInt32
    let quarter: Int32
    /// Never 0: each event has a type.
    let states: UInt32

    var isVacant: Bool { states == 0 }

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
