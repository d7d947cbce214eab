import Event
import JSONLines

/// Everything the open segment holds that decides what becomes of the next event: its keys, the
/// states of its units, and what is known of their messages.
///
/// It is a function of the events in the database, so it can be thrown away and read again.
struct OpenSegment: ~Copyable {
    private(set) var number: Int
    /// The key of every event of the segment but those of ``unfolded``, and of the older events of its units.
    var keys = KeyTable()
    /// Those of ``keys`` that are of older segments.
    private var olderKeys = FlatTable<Identity, Void>()
    /// The states of all units with an event in the segment, older events included.
    private(set) var units = FlatTable<Unit, UnitState>()
    private(set) var messages = FlatTable<HashKey, MessageState>()
    /// What other daemons have stored and is in none of the tables yet.
    var unfolded = UnfoldedNews()
    /// Events of the segment that are in no unit.
    private(set) var keysOutsideUnits: [Identity] = []
    /// Which units name an inbox unit.
    private(set) var namers: [Unit: [Unit]] = [:]
    /// Whether an event of the segment names an inbox message.
    private(set) var hasInbox = false
    /// Whether any unit is heavy in older segments.
    private(set) var hasHeavy = false
    private var labels = Labels()
    /// Apps that have logged a `sent`, by the number of the label of a campaign of theirs.
    private var sendingLabels: Set<UInt32> = []

    init(number: Int) { self.number = number }

    /// Forgets everything and becomes the segment `number`, which is empty; keeps the memory, as the
    /// next segment grows as large.
    mutating func start(number: Int) {
        self.number = number
        keys.removeAll()
        units.removeAll()
        messages.removeAll()
        unfolded.removeAll()
        olderKeys.removeAll()
        keysOutsideUnits.removeAll(keepingCapacity: true)
        namers = [:]
        hasInbox = false
        hasHeavy = false
        labels = Labels()
        sendingLabels = []
    }

    /// Events of the segment that are known here.
    var rows: Int { keys.count - olderKeys.count + unfolded.count }

    // MARK: Events

    /// Adds an event of the segment to its unit.
    ///
    /// - Parameters:
    ///   - event: Its row is `row`; its key is added by ``addKey(_:_:)``.
    ///   - old: What older segments hold of the units and messages of these events.
    ///   - fold: Takes what changes, if anybody wants to know.
    mutating func add(
        _ event: UnitEvent, row: RawSpan, old: inout OlderUnits, to fold: inout Fold
    ) {
        let campaign = labels.campaign(of: event, row)
        let profile = labels.profile(of: event, row)
        add(event, campaign: campaign, profile: profile, old: &old, to: &fold)
    }

    /// Asks memory for what an event will be added to soon.
    func prefetch(_ event: UnitEvent) { prefetch(event.key, event.unit) }

    /// Adds an event of the segment, whose labels are known, to its unit.
    mutating func add(
        _ event: UnitEvent, campaign: UInt32, profile: UInt32, old: inout OlderUnits,
        to fold: inout Fold
    ) {
        fold.news?.append(event, campaign: campaign, profile: profile)
        if event.inbox != nil { hasInbox = true }
        guard event.unit.message != 0 else {
            keysOutsideUnits.append(event.key)
            return
        }
        let (slot, isNew) = units.slot(adding: event.unit, UnitState(campaign: campaign))
        if isNew {
            let message = messageSlot(event.unit.message, old)
            messages[message].units &+= 1
            if let known = old.take(event.unit) {
                for index in known.events.indices {
                    let event = known.events[index]
                    let bytes = known.rows[index]
                    let row = bytes.rawSpan
                    if keys.insert(event.key, EventContent(event, row)) == nil {
                        _ = olderKeys.slot(adding: event.key, ())
                    }
                }
                units[slot] = state(of: known)
                hasHeavy = hasHeavy || known.isHeavy
                fold.count(units[slot], -1)
            } else if !event.hasCampaign {
                messages[message].marks |= MessageState.orphan
            }
        } else {
            fold.count(units[slot], -1)
        }
        var state = units[slot]
        let before = (state.campaign, state.hasCertainCampaign)
        state.add(event, campaign: campaign, profile: profile, &labels)
        units[slot] = state
        fold.count(state, 1)
        if event.type == .sent { noteSent(event, campaign, old, &fold) }
        if event.unit.device == 0 || event.inbox != nil || event.type.isInboxStatus {
            noteLinks(event, old, &fold)
        }
        if state.isSpecial {
            if !state.isListed {
                fold.specials.append(event.unit)
            } else if (state.campaign, state.hasCertainCampaign) != before {
                fold.renamed.append(event.unit)
            }
        } else if state.isUnclear || isNew && fold.testDevices.contains(event.unit.device) {
            setSpecial(slot, &fold)
        } else if isNew || CampaignLabel.isNone(state.campaign) {
            let message = messages[messageSlot(event.unit.message, old)]
            if message.isLoose || CampaignLabel.isNone(state.campaign) && message.hasSender {
                setSpecial(slot, &fold)
            }
        }
    }

    mutating func addKey(_ key: Identity, _ content: EventContent) { keys.insert(key, content) }

    /// Calls `body` with the key of each event of the segment.
    func forEachKey(_ body: (Identity, EventContent) -> Void) {
        keys.forEachSlot { slot in
            let key = keys.key(at: slot)
            if olderKeys.count == 0 || olderKeys.slot(of: key) == nil { body(key, keys[slot]) }
        }
        unfolded.forEachKey(body)
    }

    /// Asks memory for the places of an event that will be added soon.
    func prefetch(_ key: Identity, _ unit: Unit) {
        keys.prefetch(key)
        units.prefetch(unit)
        messages.prefetch(HashKey(hash: unit.message))
    }

    private mutating func noteSent(
        _ event: UnitEvent, _ campaign: UInt32, _ old: borrowing OlderUnits,
        _ fold: inout Fold
    ) {
        if sendingLabels.insert(campaign).inserted {
            fold.senders.append(Fields(labels.campaignFields(campaign))[0] ?? [])
        }
        guard event.hasCampaign else { return }
        let message = messageSlot(event.unit.message, old)
        guard messages[message].marks & MessageState.senderHere == 0 else { return }
        messages[message].marks |= MessageState.sender | MessageState.senderHere
        if messages[message].hasOrphans { fold.orphanMessages.append(event.unit.message) }
    }

    /// Events without a device, and inbox events, may be counted with another unit.
    private mutating func noteLinks(
        _ event: UnitEvent, _ old: borrowing OlderUnits, _ fold: inout Fold
    ) {
        let inbox = event.inbox
        if event.unit.device == 0 {
            loosen(event.unit.message, old, &fold)
            if let inbox { loosen(inbox.message, old, &fold) }
        }
        if let inbox {
            var known = namers[inbox] ?? []
            if !known.contains(event.unit) {
                // Three tell as much as any number: that it is more than one.
                if known.count < 3 {
                    known.append(event.unit)
                    namers[inbox] = known
                }
                fold.links.append(Fold.Link(inbox: inbox, namer: event.unit))
            }
        }
        if event.type.isInboxStatus { fold.inboxUnits.append(event.unit) }
    }

    private mutating func loosen(
        _ message: UInt64, _ old: borrowing OlderUnits, _ fold: inout Fold
    ) {
        let slot = messageSlot(message, old)
        guard messages[slot].marks & MessageState.looseHere == 0 else { return }
        messages[slot].marks |= MessageState.loose | MessageState.looseHere
        fold.looseMessages.append(message)
    }

    /// The slot of a message, with what older segments say of it.
    private mutating func messageSlot(_ message: UInt64, _ old: borrowing OlderUnits) -> Int {
        let (slot, isNew) = messages.slot(adding: HashKey(hash: message), MessageState())
        if isNew { messages[slot].marks = old.marks(of: message) }
        return slot
    }

    // MARK: Special units

    /// Makes a unit special, if it is one of the segment.
    ///
    /// - Returns: Whether it is one of the segment.
    @discardableResult
    mutating func setSpecial(_ unit: Unit, _ fold: inout Fold) -> Bool {
        guard let slot = units.slot(of: unit) else { return false }
        setSpecial(slot, &fold)
        return true
    }

    private mutating func setSpecial(_ slot: Int, _ fold: inout Fold) {
        // Who only reads along learns it from the database.
        guard fold.isWriting, !units[slot].isSpecial else { return }
        fold.count(units[slot], -1)
        units[slot].isSpecial = true
        fold.specials.append(units.key(at: slot))
    }

    /// Notes what the database says: that a unit is special.
    mutating func readSpecial(_ unit: Unit, isListed: Bool) {
        guard let slot = units.slot(of: unit) else { return }
        units[slot].isSpecial = true
        if isListed { units[slot].isListed = true }
    }

    /// Notes that the database has been told that a special unit has events here.
    ///
    /// - Returns: Whether that is news.
    mutating func list(_ unit: Unit) -> Bool {
        guard let slot = units.slot(of: unit), !units[slot].isListed else { return false }
        units[slot].isListed = true
        return true
    }

    /// The campaigns that a unit's events name here and before: one or none; nil where that is not known, or
    /// where some of the events may count with another unit.
    func campaigns(of state: UnitState) -> [String]? {
        guard state.hasCertainCampaign else { return nil }
        return Fields(campaignFields(state.campaign)).text(1).map { [$0] } ?? []
    }

    /// The same of a unit by its name; nil also where the segment does not hold it.
    func campaigns(of unit: Unit) -> [String]? {
        guard let state = units.value(of: unit) else { return nil }
        return campaigns(of: state)
    }

    func isLoose(_ message: UInt64) -> Bool {
        messages.value(of: HashKey(hash: message))?.isLoose ?? false
    }

    /// The units of some messages, or those of them without a campaign.
    func units(of wanted: Set<UInt64>, withoutCampaign: Bool = false) -> [Unit] {
        var found: [Unit] = []
        units.forEachSlot { slot in
            guard wanted.contains(units.key(at: slot).message) else { return }
            if !withoutCampaign || CampaignLabel.isNone(units[slot].campaign) {
                found.append(units.key(at: slot))
            }
        }
        return found
    }

    // MARK: Labels

    /// The state of a unit of older segments.
    mutating func state(of known: OlderUnits.Known) -> UnitState {
        var state: UnitState?
        for index in known.events.indices {
            let event = known.events[index]
            let bytes = known.rows[index]
            let row = bytes.rawSpan
            let campaign = labels.campaign(of: event, row)
            let profile = labels.profile(of: event, row)
            var next = state ?? UnitState(campaign: campaign)
            next.add(event, campaign: campaign, profile: profile, &labels)
            state = next
        }
        var result = state ?? UnitState(campaign: 0)
        result.isSpecial = known.isSpecial
        result.isHeavy = known.isHeavy
        return result
    }

    /// The labels of texts that came as ``campaignFields(_:)`` and ``profileFields(_:)`` of another
    /// daemon, whose labels were these.
    mutating func campaignLabel(_ fields: RawSpan, as other: UInt32) -> UInt32 {
        labels.campaign(fields, as: other)
    }
    mutating func profileLabel(_ fields: RawSpan, as other: UInt32) -> UInt32 {
        labels.profile(fields, as: other)
    }

    /// The fields app and campaign_id of a label, as COPY takes them.
    borrowing func campaignFields(_ label: UInt32) -> [UInt8] { labels.campaignFields(label) }

    /// The fields of a profile, as COPY takes them.
    borrowing func profileFields(_ label: UInt32) -> [UInt8] { labels.profileFields(label) }

    /// Appends these fields; of a profile the details even if it has none.
    borrowing func appendFields(ofCampaign label: UInt32, to row: inout ByteBuffer) {
        labels.appendFields(ofCampaign: label, to: &row)
    }
    borrowing func appendFields(ofProfile label: UInt32, to row: inout ByteBuffer) {
        labels.appendFields(ofProfile: label, to: &row)
    }

    // MARK: The end

    /// The units with so many events that a closed segment is asked for single keys of theirs.
    func heavyUnits(events: Int) -> [Unit] {
        var found: [Unit] = []
        units.forEachSlot { slot in
            if units[slot].events >= events || units[slot].isHeavy {
                found.append(units.key(at: slot))
            }
        }
        return found
    }

    /// Whether a unit of the segment is heavy in older ones.
    func isHeavy(_ unit: Unit) -> Bool { units.value(of: unit)?.isHeavy ?? false }

    /// Whether anything is known of a unit or of others of its message.
    func mayKnow(_ unit: Unit) -> Bool {
        units.slot(of: unit) != nil || unfolded.holds(unit.message)
    }

    /// Takes out what of ``unfolded`` the filter cannot be made without.
    mutating func takeCrowded() -> [BatchNews.Reader.Entry] { unfolded.takeCrowded(messages) }

    /// The filter of the segment, once it is closed; of ``unfolded`` only events may be left whose message
    /// has one unit.
    ///
    /// - Parameters:
    ///   - rowsMax: What its size is computed from, so that those of all segments are alike.
    ///   - heavy: Units whose single keys are added by the caller.
    func makeFilter(rowsMax: Int, heavy: [Unit] = []) -> SegmentFilter {
        let heavyMessages = Set(heavy.map(\.message))
        var filter = SegmentFilter(rows: max(rowsMax, rows))
        for key in keysOutsideUnits { filter.insert(.key(key)) }
        for unit in namers.keys { filter.insert(.named(unit)) }
        unfolded.forEachMessage { filter.insert(.message($0)) }
        units.forEachSlot { slot in
            if slot &+ Decision.lookAhead < units.count {
                let ahead = units.key(at: slot &+ Decision.lookAhead)
                messages.prefetch(HashKey(hash: ahead.message))
            }
            let unit = units.key(at: slot)
            let message = messages.value(of: HashKey(hash: unit.message)) ?? MessageState()
            if message.units > 1 { filter.insert(.unit(unit)) }
        }
        messages.forEachSlot { slot in
            let (message, state) = (messages.key(at: slot).hash, messages[slot])
            if state.isLoose { filter.insert(.loose(message)) }
            if state.isLoose || state.units > 0 { filter.insert(.message(message)) }
            guard state.units > 1 || heavyMessages.contains(message) else { return }
            if state.units > 1 { filter.insert(.several(message)) }
            if state.hasSender { filter.insert(.sender(message)) }
            if state.hasOrphans { filter.insert(.orphan(message)) }
        }
        return filter
    }
}

/// A hash of 64 bits, such as the message half of a unit; never 0.
struct HashKey: FlatKey {
    let hash: UInt64
    var spread: UInt64 { hash }
}

/// What is known of a message.
struct MessageState: BitwiseCopyable {
    /// Units with an event in the open segment.
    var units: UInt32 = 0
    var marks: UInt32 = 0

    /// It has a `sent` event that names a campaign.
    static let sender: UInt32 = 1
    /// It has had a unit without a campaign.
    static let orphan: UInt32 = 2
    /// It has an event without a device, or one names it as its inbox message.
    static let loose: UInt32 = 4
    /// The same, known from events of the open segment: a filter may have made up the ones above, which
    /// makes units special without need, but must not keep others from it.
    static let senderHere: UInt32 = 8
    static let looseHere: UInt32 = 16

    var hasSender: Bool { marks & Self.sender != 0 }
    var hasOrphans: Bool { marks & Self.orphan != 0 }
    var isLoose: Bool { marks & Self.loose != 0 }
}

/// What a batch changes beyond its own units, and in the counts.
struct Fold: ~Copyable {
    private struct Change: BitwiseCopyable {
        var cell = CellKey(campaign: 0, profile: ProfileLabel.none, quarter: 0, states: 0)
        var sums = CellSums()
    }

    struct Link {
        /// The unit that is named,
        let inbox: Unit
        /// by an event of this one.
        let namer: Unit
    }

    /// Whether the changes are written; else the batch is one that another daemon has written.
    let isWriting: Bool
    /// The device halves of test devices.
    let testDevices: Set<UInt64>
    /// Signed changes of the cells; all of them are there after ``settle()``.
    private(set) var changes = FlatTable<CellKey, CellSums>()
    /// The newest changes: by the time that one is added to the others its place has come from memory.
    private var waiting = InlineArray<16, Change>(repeating: Change())
    /// How many changes there have been since all were settled.
    private var changed = 0
    /// Units that are special and not listed for the open segment yet.
    var specials: [Unit] = []
    /// Units that are listed for the open segment, and of whose campaign another thing is known now.
    var renamed: [Unit] = []
    /// Messages that have got their first event without a device.
    var looseMessages: [UInt64] = []
    /// Messages that have got their first `sent` with a campaign, after a unit without one.
    var orphanMessages: [UInt64] = []
    /// Which unit names which, for the first time in this segment.
    var links: [Link] = []
    /// Units with an inbox event.
    var inboxUnits: [Unit] = []
    /// Apps that have logged a `sent`.
    var senders: [[UInt8]] = []
    /// The events, for other daemons; nil when there are none.
    var news: BatchNews?

    init(isWriting: Bool, testDevices: Set<UInt64> = []) {
        self.isWriting = isWriting
        self.testDevices = testDevices
    }

    /// Counts a unit as it is now, or takes it out of the count; special ones never are in it.
    mutating func count(_ state: UnitState, _ sign: Int32) {
        guard isWriting, !state.isSpecial else { return }
        state.forEachCell { cell, sums in
            let signed = CellSums(
                units: sign &* sums.units, clicks: sign &* sums.clicks, late: sign &* sums.late)
            note(Change(cell: cell, sums: signed))
        }
    }

    private mutating func note(_ change: Change) {
        changes.prefetch(change.cell)
        if changed >= 8 { changes.prefetchEntry(waiting[(changed &- 8) & 15].cell) }
        if changed >= 16 { add(waiting[changed & 15]) }
        waiting[changed & 15] = change
        changed &+= 1
    }

    private mutating func add(_ change: Change) {
        let (slot, _) = changes.slot(adding: change.cell, CellSums())
        changes[slot].units &+= change.sums.units
        changes[slot].clicks &+= change.sums.clicks
        changes[slot].late &+= change.sums.late
    }

    /// Adds up the newest changes, too.
    mutating func settle() {
        for number in max(0, changed - 16)..<changed { add(waiting[number & 15]) }
        changed = 0
    }
}
