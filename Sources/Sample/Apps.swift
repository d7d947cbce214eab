/// The apps of the sample, each with its own key, habits and faults.
package enum SampleApp: String, CaseIterable, Sendable {
    /// Logs `sent` with the device; every SDK event has an `event_uid`; conversions.
    case shop
    /// Logs `sent` without the device; buttons and an inbox; numbers as campaign ids.
    case news
    /// Never logs `sent`; an older SDK with other words for the same things.
    case games
}

/// A device platform.
enum Platform: String {
    case ios, android, web

    var provider: String {
        switch self {
        case .ios: "apns"
        case .android: "fcm"
        case .web: "webpush"
        }
    }

    /// Messages in a thousand that reach the device.
    var deliveredPerThousand: Int {
        switch self {
        case .ios: 930
        case .android: 890
        case .web: 800
        }
    }
}

/// One campaign: a push to many devices at one time.
struct Campaign {
    let id: String
    /// Days before the anchor, in tenths.
    let sentTenthsOfDaysAgo: Int
    /// Devices, at 100 percent.
    let audience: Int
    /// Clicks in a thousand deliveries on iOS; others differ by their platform.
    let clicksPerThousand: Int
    let isSilent: Bool

    init(_ id: String, ago: Int, audience: Int, clicks: Int, silent: Bool = false) {
        self.id = id
        sentTenthsOfDaysAgo = ago
        self.audience = audience
        clicksPerThousand = clicks
        isSilent = silent
    }
}

extension SampleApp {
    var campaigns: [Campaign] {
        switch self {
        case .shop:
            [
                Campaign("spring-sale", ago: 131, audience: 5200, clicks: 62),
                Campaign("cart-reminder", ago: 120, audience: 3100, clicks: 148),
                Campaign("back-in-stock", ago: 102, audience: 2400, clicks: 185),
                Campaign("weekend-deals", ago: 93, audience: 5600, clicks: 41),
                Campaign("loyalty-points", ago: 71, audience: 3800, clicks: 77),
                Campaign("price-drop", ago: 52, audience: 3500, clicks: 112),
                Campaign("order-shipped", ago: 33, audience: 2600, clicks: 263),
                Campaign("catalog-sync", ago: 24, audience: 2000, clicks: 0, silent: true),
            ]
        case .news:
            [
                Campaign("4101", ago: 125, audience: 4300, clicks: 93),
                Campaign("4102", ago: 108, audience: 4100, clicks: 58),
                Campaign("4107", ago: 86, audience: 3900, clicks: 34),
                Campaign("4110", ago: 64, audience: 3600, clicks: 126),
                Campaign("4113", ago: 45, audience: 3300, clicks: 21),
                Campaign("4118", ago: 29, audience: 3000, clicks: 88),
                Campaign("4120", ago: 17, audience: 2700, clicks: 67),
            ]
        case .games:
            [
                Campaign("EVENT:daily-bonus", ago: 114, audience: 6200, clicks: 138),
                Campaign("EVENT:new-level", ago: 88, audience: 5800, clicks: 71),
                Campaign("BROADCAST:season-3", ago: 60, audience: 6000, clicks: 49),
                Campaign("BROADCAST:come-back", ago: 37, audience: 5000, clicks: 27),
                Campaign("EVENT:friend-joined", ago: 15, audience: 4200, clicks: 204),
            ]
        }
    }

    /// A different stretch of random numbers for each app.
    var salt: UInt64 {
        switch self {
        case .shop: 0x73
        case .news: 0x6E
        case .games: 0x67
        }
    }

    var logsSent: Bool { self != .games }
    var hasEventUIDs: Bool { self != .news }

    /// The word that this app's SDK uses for a type.
    func word(_ type: String, _ platform: Platform, _ random: inout SplitMix64) -> String {
        guard self == .games else { return random.chance(5) ? type.uppercased() : type }
        switch type {
        case "received": return platform == .ios ? "push_receive" : "PushReceived"
        case "clicked":
            return platform == .ios ? "clickthru" : random.chance(500) ? "opened" : "click"
        case "dismissed": return "dismiss"
        default: return type
        }
    }
}

/// One installation.
struct Device {
    let id: String
    let platform: Platform
    let appVersion: String
    let osVersion: String
    let locale: String
    let country: String
    let isTest: Bool
    /// What its clock is off, in milliseconds; most are right.
    let skew: Int64
    /// Whether its SDK says when it sends, so that a wrong clock can be corrected.
    let saysSentAt: Bool

    init(app: SampleApp, orderFree: Bool, _ random: inout SplitMix64) {
        let share = random.below(100)
        platform = share < 46 ? .ios : share < (app == .news ? 84 : 94) ? .android : .web
        let high = String(random.next(), radix: 16)
        let low = String(random.next(), radix: 16)
        switch platform {
        case .ios: id = "\(high)-\(low)".uppercased()
        case .android: id = high
        case .web: id = "w-\(high)\(low.prefix(6))"
        }
        appVersion = ["5.2.0", "5.2.1", "5.3.0", "6.0.0-beta"][random.below(4)]
        osVersion =
            platform == .ios ? ["17.6", "18.1"][random.below(2)] : "\(random.below(5) + 11)"
        let place = random.below(6)
        locale = ["de_DE", "en_US", "en_GB", "fr_FR", "pt_BR", "ja_JP"][place]
        country = ["DE", "US", "GB", "FR", "BR", "JP"][place]
        isTest = random.chance(5)
        let isWrong = random.chance(30)
        let off = random.delay(upTo: 3 * 86_400_000) + 60_000
        let isFast = random.chance(300)
        // Every time with `sent_at` is corrected to when it arrives, so few devices have it.
        saysSentAt = random.chance(500) && isWrong && !orderFree
        // A fast clock without `sent_at` ends in server time, which only arrival decides.
        skew = !isWrong ? 0 : isFast && !orderFree ? off : -off
    }
}
