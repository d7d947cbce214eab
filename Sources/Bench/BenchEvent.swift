import Event
import Platform
import Sample

/// One event of a run, a function of the plan and its number alone.
///
/// Eight numbers in a row are a *story*: a message on a device, what became of it, and what the device
/// did beside it. Ids are the prefix of the run, a letter and a number: `m` message, `d` device, `e`
/// event, `c` campaign.
package struct BenchEvent: Equatable, Sendable {
    /// What happens in a story.
    package enum Kind: Sendable {
        case sent, failed, received, displayed, consumed, clicked, action, dismissed, inboxOpen
        case launch, conversion, screenView, heartbeat, purchase
    }

    /// Numbers of a story.
    package static let perStory = 8
    /// Stories of a device.
    static let storiesPerDevice = 3
    /// Campaigns of a run; of the messages of each so many in a hundred are clicked.
    static let clickPercents = [4, 8, 12, 20, 35]

    package let number: Int
    package let kind: Kind
    /// Random bits of the story.
    private let story: UInt64
    /// Random bits of the event.
    private let own: UInt64
    /// Random bits of the device.
    private let phone: UInt64

    /// Makes the event of a number.
    package init(_ number: Int, of plan: BenchPlan) {
        func random(_ salt: UInt64, _ index: Int) -> UInt64 {
            let place = UInt64(index) &* 0xD1B5_4A32_D192_ED03
            var random = SplitMix64(seed: plan.seed &+ salt &+ place)
            return random.next()
        }
        self.number = number
        story = random(1, number / Self.perStory)
        own = random(2, number)
        phone = random(3, number / Self.perStory / Self.storiesPerDevice)
        kind = Self.kind(number % Self.perStory, story)
    }

    private static func kind(_ slot: Int, _ story: UInt64) -> Kind {
        let isFailed = part(story, 1) % 20 == 0
        let isClicked =
            !isFailed && part(story, 2) % 100 < clickPercents[campaign(of: story)]
        switch slot {
        case 0: return .sent
        case 1: return isFailed ? .failed : .received
        case 2:
            if isFailed { return .screenView }
            return [.displayed, .consumed, .screenView][part(story, 3) % 3]
        case 3:
            if isClicked { return .clicked }
            return part(story, 4) % 10 == 0 ? .dismissed : .heartbeat
        case 4:
            // A second tap on one message: one click in every rate, two in clicks_total.
            if isClicked, part(story, 5) % 4 == 0 { return .clicked }
            return part(story, 6) % 16 == 0 ? .action : .purchase
        case 5: return .launch
        case 6: return part(story, 7) % 10 == 0 ? .inboxOpen : .conversion
        default: return .screenView
        }
    }

    /// One byte of random bits, 0 to 7, as a number.
    private static func part(_ bits: UInt64, _ byte: UInt64) -> Int {
        Int(bits >> (byte * 8) & 0xFF)
    }

    private static func campaign(of story: UInt64) -> Int {
        part(story, 0) % clickPercents.count
    }

    /// The message it is about: one a story.
    package var message: Int? {
        switch kind {
        case .launch, .conversion: nil
        default: number / Self.perStory
        }
    }

    /// Senders often log a `sent` without a device.
    package var device: Int? {
        if kind == .sent, Self.part(story, 6) % 20 == 1 { return nil }
        return number / Self.perStory / Self.storiesPerDevice
    }

    /// The campaign of its message, even if it does not name it.
    package var campaignOfMessage: Int { Self.campaign(of: story) }

    /// Whether it names its campaign.
    package var namesCampaign: Bool {
        switch kind {
        case .sent, .failed, .received, .displayed, .consumed: true
        case .clicked: own & 1 == 0
        default: false
        }
    }

    /// Whether an id of its own is its identity. Without one it is a state of its message, or told from
    /// others by its time and properties.
    package var hasEventUID: Bool {
        switch kind {
        case .clicked, .launch, .conversion, .screenView: true
        default: false
        }
    }

    /// Whether it says what the device is.
    var namesPhone: Bool {
        switch kind {
        case .received, .displayed, .consumed, .clicked, .launch, .screenView: true
        default: false
        }
    }

    /// Its type, as the tables have it.
    package var type: EventType {
        switch kind {
        case .sent: .sent
        case .failed: .failed
        case .received: .received
        case .displayed: .displayed
        case .consumed: .consumed
        case .clicked: .clicked
        case .action: .action
        case .dismissed: .dismissed
        case .inboxOpen: .inboxOpen
        case .launch: .launch
        case .conversion: .conversion
        case .screenView, .heartbeat, .purchase: .custom
        }
    }

    /// Its word, as it is sent.
    package var word: StaticString {
        switch kind {
        case .screenView: "screen_view"
        case .heartbeat: "heartbeat"
        case .purchase: "purchase"
        default: type.word
        }
    }

    /// Whether its button opens the app.
    var opensApp: Bool? { kind == .action ? own & 1 == 0 : nil }

    /// Whether it is a click: what `clicked` and `clicks_total` count.
    package var isClick: Bool { kind == .clicked || opensApp == true }

    /// When it happened, to the millisecond, in microseconds since 1970 UTC.
    func occurredAt(_ plan: BenchPlan) -> Microseconds {
        let span = max(plan.delay / 1000, Int64(Self.perStory))
        let first = Int64(story % UInt64(span)) / Int64(Self.perStory) * Int64(Self.perStory)
        let milliseconds = plan.start / 1000 - span + first + Int64(number % Self.perStory)
        return milliseconds * 1000
    }

    /// Random bits that choose a text of the device.
    var phoneBits: UInt64 { phone }
    /// Random bits that choose its properties.
    var ownBits: UInt64 { own }
}
